// Elements, made without HTML: text from a topic is never more than text.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

export const el = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
  return node;
}

export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
  return node;
}

export const show = (node, is) => { if (node.hidden === is) node.hidden = !is; };

// Children by key: those that stay are kept, so that nothing flickers and focus is not lost.
export class Keyed {
  constructor(parent, make, update) {
    this.parent = parent;
    this.make = make;
    this.update = update;
    this.nodes = new Map();
  }

  draw(items) {
    const seen = new Set();
    let before = null;
    for (const [key, value] of items) {
      seen.add(key);
      let node = this.nodes.get(key);
      if (!node) {
        node = this.make(key, value);
        this.nodes.set(key, node);
      }
      const place = before ? before.nextSibling : this.parent.firstChild;
      if (place !== node) this.parent.insertBefore(node, place);
      this.update(node, key, value);
      before = node;
    }
    for (const [key, node] of this.nodes) {
      if (!seen.has(key)) {
        node.remove();
        this.nodes.delete(key);
      }
    }
  }
}

export const pill = (text, kind, title) => el("span", { class: `pill ${kind}`, title }, text);

// Of this machine's clock, where the world has one.
export const clockTime = (us) => new Date(us / 1000).toTimeString().slice(0, 8);

export function seconds(us) {
  return `${(us / 1e6).toFixed(3)} s`;
}
