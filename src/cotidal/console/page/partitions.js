// All partitions at a glance: a strip of them for each broker, and a table that bears thousands.

import { el, set, say, show, Keyed } from "./dom.js";
import { Rows } from "./rows.js";

const ROW = 28;
const HEADS = ["Partition", "Leader", "Epoch", "ISR", "ELR", "Replicas", "End", "High watermark", "Min ISR"];
const TOOLS_FROM = 8; // partitions: fewer need no search

const WORST = ["without a leader", "below min ISR", "with replicas out of sync", "not led by the preferred replica"];

// What the page knows of each partition, from an outline or from partitions that are there whole.
const known = new WeakMap();

export function rowsOf(picture) {
  const { outline, partitions = {}, brokers = {} } = picture;
  if (!outline) return Object.entries(partitions).map(([name, p]) => whole(name, p, brokers));
  return Object.entries(outline.rows).map(([name, told]) => {
    if (!known.has(told)) known.set(told, outlined(name, told));
    return known.get(told);
  });
}

function whole(name, p, brokers) {
  const leader = p.logs[p.leader];
  const offline = p.replicas.filter((node) => ["down", "silent"].includes(brokers[node]?.state) || p.logs[node]?.role === "offline");
  return outlined(name, [p.leader, p.leader_epoch, p.replicas, p.isr, p.elr, leader?.end ?? -1, leader?.high_watermark ?? -1, p.min_isr ?? 0, offline]);
}

function outlined(name, [leader, epoch, replicas, isr, elr, end, watermark, minIsr, offline]) {
  const row = { name, leader, epoch, replicas, isr, elr, end, watermark, minIsr, offline };
  row.severity = leader < 0 ? 0 : isr.length < minIsr ? 1 : isr.length < replicas.length ? 2 : leader !== replicas[0] ? 3 : 4;
  return row;
}

export class PartitionTable {
  constructor(parent, page) {
    this.page = page;
    this.fleet = new Fleet(el("div", { class: "fleet" }), page);
    this.note = el("p", { class: "note" });
    const again = () => { this.drawn = undefined; page.redraw(); };
    this.search = el("input", { type: "search", placeholder: "search", "aria-label": "Search partitions", oninput: again });
    this.worst = el("input", { type: "checkbox", onchange: again });
    this.tools = el("div", { class: "tools" }, this.search, el("label", { class: "check" }, this.worst, "unhealthy first"));
    const body = el("tbody");
    const scroll = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "partitions-title" },
      el("table", {}, el("thead", {}, el("tr", {}, HEADS.map((head) => el("th", { scope: "col" }, head)))), body));
    parent.replaceChildren(el("div", { class: "head" }, el("h2", { id: "partitions-title" }, "Partitions"), this.tools), this.note, this.fleet.root, scroll);
    this.rows = new Rows({ scroll, body, height: ROW, make: () => this.make(), update: (tr, row) => this.drawRow(tr, row) });
  }

  make() {
    const button = el("button", { type: "button", class: "text", onclick: () => this.page.choosePartition(button.textContent) });
    return el("tr", {}, el("th", { scope: "row" }, button), ...HEADS.slice(1).map(() => el("td")));
  }

  draw(store) {
    const { outline, partitions, brokers } = store.picture;
    const drawn = [outline?.rows ?? partitions, outline ? null : brokers, store.partition];
    if (this.drawn?.every((each, index) => each === drawn[index])) return;
    this.drawn = drawn;
    this.chosen = store.partition;
    const all = rowsOf(store.picture);
    this.fleet.draw(store, all);
    const total = outline?.of ?? all.length;
    show(this.tools, total >= TOOLS_FROM);
    say(this.note, told(all, total));
    this.rows.draw(this.sought(all));
  }

  sought(all) {
    const text = this.search.value.trim().toLowerCase();
    const found = text ? all.filter((row) => row.name.toLowerCase().includes(text)) : all;
    return this.worst.checked ? [...found].sort((one, other) => one.severity - other.severity) : found; // sorts are stable
  }

  drawRow(tr, row) {
    say(tr.firstChild.firstChild, row.name);
    const values = [row.leader < 0 ? "none" : `${row.leader}${row.leader === row.replicas[0] ? " ★" : ""}`, row.epoch, row.isr.join(", ") || "nobody",
      row.elr.join(", "), row.replicas.join(", "), row.end < 0 ? "" : row.end, row.watermark < 0 ? "" : row.watermark, row.minIsr || ""];
    values.forEach((value, index) => say(tr.children[index + 1], String(value)));
    set(tr, { class: `${row.name === this.chosen ? "chosen" : ""}${row.isr.length < row.replicas.length ? " short" : ""}${row.leader < 0 ? " none" : ""}` });
  }
}

function told(all, total) {
  const counts = WORST.map((what, severity) => [all.filter((row) => row.severity === severity).length, what]).filter(([count]) => count);
  const listed = all.length < total ? ` (the ${all.length} that are worst off are listed)` : "";
  return `${total} partition${total === 1 ? "" : "s"}${listed}: ${counts.map(([count, what]) => `${count} ${what}`).join("; ") || `in sync, led by ${total === 1 ? "its preferred replica" : "their preferred replicas"}`}.`;
}

// A strip for each broker, a cell for each partition: what this broker is to it.

const CELLS = [14, 10, 8, 6, 5, 4, 3]; // pixels; the largest that fits
const STRIP_MAX = 54;
const STATES = { l: "--accent", s: "--good", b: "--warn", o: "--bad", n: "--faint" };

class Fleet {
  constructor(root, page) {
    this.root = root;
    this.page = page;
    this.strips = el("div");
    const keys = [["l", "leads"], ["s", "in sync"], ["b", "behind"], ["o", "offline"], ["n", "elsewhere"]];
    root.replaceChildren(this.strips, el("div", { class: "legend", "aria-hidden": "true" },
      keys.map(([state, text]) => el("span", { class: "key" }, el("i", { class: "swatch", style: `background: var(${STATES[state]})` }), text))));
    this.keyed = new Keyed(this.strips, (id) => this.make(id), (strip, id, value) => this.drawStrip(strip, id, value));
    new ResizeObserver(() => { this.width = this.strips.clientWidth; this.again(); }).observe(this.strips);
  }

  make(id) {
    const canvas = el("canvas", { role: "img", onclick: (event) => this.at(event, canvas, (row) => this.page.choosePartition(row.name)),
      onpointermove: (event) => this.at(event, canvas, (row) => { canvas.title = `${row.name}: leader ${row.leader}, ISR ${row.isr.join(", ")}`; }) });
    return el("div", { class: "strip-row" }, el("div", { class: "who" }, el("b", {}, `Broker ${id}`), el("span", { class: "note" })), canvas);
  }

  draw(store, rows) {
    this.store = store;
    this.all = rows;
    show(this.root, rows.length > 1);
    if (rows.length < 2) return;
    const width = Math.max(60, (this.width || 400) - 4);
    this.cell = CELLS.find((size) => Math.ceil(rows.length / Math.floor(width / size)) * size <= STRIP_MAX) ?? CELLS.at(-1);
    this.across = Math.floor(width / this.cell);
    this.chosen = rows.findIndex((row) => row.name === store.partition);
    const counts = store.picture.outline?.brokers;
    this.keyed.draw(Object.keys(store.picture.brokers).map((id) => [id, { states: rows.map((row) => stateOf(row, Number(id))).join(""), counts: counts?.[id] }]));
  }

  again() {
    for (const strip of this.strips.children) strip.drawn = undefined;
    if (this.all) this.draw(this.store, this.all);
  }

  drawStrip(strip, id, { states, counts }) {
    const key = `${this.cell}/${this.across}/${this.chosen}/${document.documentElement.dataset.theme}/${states}`;
    if (strip.drawn === key) return;
    strip.drawn = key;
    const count = (state) => states.split(state).length - 1;
    const { leads, in_sync: inSync, behind, offline } = counts ?? { leads: count("l"), in_sync: count("s"), behind: count("b"), offline: count("o") };
    const text = [`leads ${leads}`, `in sync ${inSync}`, behind && `behind ${behind}`, offline && `offline ${offline}`].filter(Boolean).join(" · ");
    say(strip.firstChild.lastChild, text);
    const canvas = strip.lastChild;
    set(canvas, { "aria-label": `Broker ${id} of all partitions: ${text}` });
    this.paint(canvas, states);
  }

  paint(canvas, states) {
    const { cell, across } = this;
    const sharp = devicePixelRatio || 1;
    const height = Math.ceil(states.length / across) * cell;
    canvas.width = across * cell * sharp;
    canvas.height = height * sharp;
    canvas.style.cssText = `width: ${across * cell}px; height: ${height}px`;
    const colours = getComputedStyle(canvas);
    const pen = canvas.getContext("2d");
    pen.scale(sharp, sharp);
    const gap = cell > 5 ? 1.5 : 0.7;
    for (const [state, name] of Object.entries(STATES)) {
      pen.fillStyle = colours.getPropertyValue(name);
      for (let at = states.indexOf(state); at >= 0; at = states.indexOf(state, at + 1)) {
        pen.fillRect((at % across) * cell, Math.floor(at / across) * cell, cell - gap, cell - gap);
      }
    }
    if (this.chosen < 0) return;
    pen.strokeStyle = colours.getPropertyValue("--ink");
    pen.lineWidth = 1.5;
    pen.strokeRect((this.chosen % across) * cell, Math.floor(this.chosen / across) * cell, cell - gap, cell - gap);
  }

  at(event, canvas, act) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.cell);
    const row = this.all[Math.floor((event.clientY - box.top) / this.cell) * this.across + column];
    if (row && column < this.across) act(row);
  }
}

function stateOf(row, id) {
  if (!row.replicas.includes(id)) return "n";
  if (row.offline.includes(id)) return "o";
  if (row.leader === id) return "l";
  return row.isr.includes(id) ? "s" : "b";
}
