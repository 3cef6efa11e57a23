// What the views of the desk are made of: tables, fields, numbers that can be read.
// Text that comes from a topic reaches the page as text nodes only.

import { el, say, set } from "../dom.js";

const numbers = new Intl.NumberFormat("en");
const LAST_MS = 8.64e15; // of JavaScript's dates
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export const count = (value) => (value === null || value === undefined ? "–" : numbers.format(value));

export const counted = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit++; }
  return `${unit ? value.toFixed(1) : value} ${UNITS[unit]}`;
}

export function ago(ms) {
  if (ms < 0) return "–";
  if (ms < 1000) return "now";
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  return `${Math.floor(s / 3600)} h ago`;
}

// A record may say anything of its time: what no calendar has is told as a number.
export function moment(ms) {
  if (ms < 0) return "–";
  return ms > LAST_MS ? `${ms} ms` : new Date(ms).toISOString().replace("T", " ").replace("Z", "");
}

export const ids = (nodes) => (nodes.length ? nodes.join(", ") : "nobody");

// ``heads``: none where each row says by itself what it is. ``rows``: lists of texts or elements; a row may
// have a ``kind``, which becomes its class.
export function table(label, heads, rows, empty = "There is nothing.") {
  if (!rows.length) return el("p", { class: "note" }, empty);
  const head = el("tr", {}, heads.map((text) => (text ? el("th", { scope: "col" }, text) : el("td"))));
  const body = rows.map((row) => el("tr", { class: row.kind }, row.map((cell, at) => (at ? el("td", {}, cell) : el("th", { scope: "row" }, cell)))));
  return el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": label }, el("table", {}, heads.length ? el("thead", {}, head) : "", el("tbody", {}, body)));
}

export const field = (text, input, title) => el("label", { class: "field", title }, el("span", {}, text), input);

export const check = (text, input) => el("label", { class: "check" }, input, ` ${text}`);

export const button = (text, act, options = {}) => el("button", { type: "button", ...options, onclick: act }, text);

export const choice = (options, attributes = {}) => el("select", attributes, options.map(([value, text]) => el("option", { value }, text)));

export const card = (title, ...children) => el("section", { class: "card", "aria-label": title }, el("h2", {}, title), ...children);

// Numbers of brokers as people write them: "1, 2".
export const numbersIn = (text) => text.split(/[\s,]+/).filter(Boolean).map(Number);

export const namesIn = (text) => text.split(/[\s,]+/).filter(Boolean);

// A part of a view that is drawn anew only when what it shows has changed, and keeps the focus.
export class Room {
  constructor() {
    this.root = el("div", { class: "room" });
  }

  draw(shown, make) {
    const key = JSON.stringify(shown);
    if (key === this.key) return;
    this.key = key;
    const held = document.activeElement?.closest?.("[data-key]")?.dataset.key;
    this.root.replaceChildren(...make());
    if (held) this.root.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus();
  }

  forget() {
    this.key = undefined;
  }
}

export class Line {
  constructor() {
    this.root = el("p", { class: "told", role: "status", hidden: true });
  }

  tell(text, kind = "") {
    this.root.hidden = !text;
    set(this.root, { class: `told ${kind}` });
    say(this.root, text);
  }
}
