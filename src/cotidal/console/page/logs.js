// Every replica's log, record by record, offsets under each other: colour is the leader epoch,
// faint is not committed, the line is the high watermark.

import { el, set, svg, say, pill, Keyed } from "./dom.js";

const CELL = 22;
const HEIGHT = 46;
export const EPOCHS = 8; // colours, in turn

export class Logs {
  constructor(parent, page) {
    this.page = page;
    this.rows = el("div", { class: "rows" });
    parent.replaceChildren(this.rows);
    this.keyed = new Keyed(this.rows, (id) => this.makeRow(id), (row, id, value) => this.drawRow(row, id, value));
    this.width = 600;
    this.base = 0;
    new ResizeObserver(([entry]) => {
      this.width = entry.contentRect.width;
      if (this.store) this.draw(this.store);
    }).observe(this.rows);
  }

  draw(store) {
    this.store = store;
    const partition = store.chosen();
    this.partition = partition;
    if (!partition) {
      this.keyed.draw([]);
      return;
    }
    const logs = Object.values(partition.logs);
    const end = Math.max(1, ...logs.map((log) => log.end));
    const fits = Math.max(6, Math.floor((this.width - (this.width < 560 ? 10 : 200)) / CELL) - 2);
    this.fits = fits;
    // The window moves in leaps of a quarter, so that cells stand still most of the time.
    if (end > this.base + fits || end < this.base) this.base = Math.max(0, end - Math.ceil((fits * 3) / 4));
    const ids = [...partition.replicas].sort((one, other) => one - other);
    this.keyed.draw(ids.map((id) => [String(id), partition.logs[id]]));
  }

  makeRow(id) {
    const strip = svg("svg", { class: "strip", height: HEIGHT, role: "group" },
      svg("line", { class: "floor" }), svg("g", { class: "cells" }),
      svg("g", { class: "hw" }, svg("line", { y1: 2, y2: HEIGHT - 12 }), svg("text", { y: HEIGHT - 2 })),
      svg("text", { class: "end", y: 25 }), svg("text", { class: "more", x: 0, y: HEIGHT - 2 }));
    const row = el("div", { class: "row" },
      el("div", { class: "who" }, el("div", { class: "name" }), el("div", { class: "pills" }), el("div", { class: "acts" })), strip);
    row.cells = new Keyed(strip.children[1], (key) => this.makeCell(id, key), (cell, key, value) => drawCell(cell, key, value));
    return row;
  }

  makeCell(id, key) {
    const look = () => this.page.choose({ kind: "record", node: Number(id), offset: key, partition: this.store.partition });
    return svg("g", { class: "cell", onclick: look }, svg("rect", { width: CELL - 2, height: 22, y: 9, rx: 3 }),
      svg("text", { x: (CELL - 2) / 2, y: 24 }), svg("title"));
  }

  drawRow(row, id, log) {
    const broker = this.store.picture.brokers[id];
    this.drawWho(row.firstChild, id, broker, log);
    const strip = row.lastChild;
    const [floor, , hw, end, more] = strip.children;
    const width = (this.fits + 2) * CELL;
    set(strip, { viewBox: `0 0 ${width} ${HEIGHT}`, width });
    set(floor, { x1: 0, x2: this.fits * CELL, y1: 34, y2: 34 });
    row.classList.toggle("down", broker?.state === "down");
    const known = { start: 0, end: 0, high_watermark: 0, epochs: [], ...log };
    const marked = log?.high_watermark !== undefined; // a follower of another make does not tell
    const first = Math.max(this.base, known.start);
    const cells = [];
    for (let offset = first; offset < known.end; offset++) {
      cells.push([offset, { x: (offset - this.base) * CELL, epoch: epochAt(known.epochs, offset), committed: !marked || offset < known.high_watermark }]);
    }
    row.cells.draw(cells);
    const at = Math.max(0, known.high_watermark - this.base) * CELL - 1;
    set(hw, { transform: `translate(${at} 0)` });
    say(hw.lastChild, `HW ${known.high_watermark}`);
    set(hw.lastChild, { "text-anchor": at < 30 ? "start" : "middle" });
    set(end, { x: Math.max(0, known.end - this.base) * CELL + 4 });
    say(end, log ? (known.end > known.high_watermark || known.end === 0 ? `end ${known.end}` : "") : "no log");
    const hidden = first - known.start;
    const away = log && known.end > 0 && known.end <= this.base; // it ends before what is shown
    set(hw, { visibility: marked && !away ? "visible" : "hidden" });
    if (away) say(end, `‹ ends at ${known.end}, high watermark ${known.high_watermark}`);
    say(more, away ? "" : hidden > 0 && at > 90 ? `‹ ${known.start}…${first - 1}` : known.start > 0 && at > 90 ? `starts at ${known.start}` : "");
    set(strip, { "aria-label": `Broker ${id}: offsets ${known.start} to ${known.end}, high watermark ${known.high_watermark}` });
  }

  drawWho(who, id, broker, log) {
    const partition = this.partition;
    const number = Number(id);
    const [name, pills, acts] = who.children;
    const isIn = partition.isr.includes(number);
    const told = [];
    if (partition.leader === number && broker?.state !== "down") told.push(["leader", "leader", `of epoch ${partition.leader_epoch}`]);
    else if (log?.role === "leader") told.push(["old leader", "warn", `believes that it leads, in epoch ${log.epoch}`]);
    const isQuorum = this.store.partition.startsWith("__cluster_metadata");
    if (isQuorum) told.push(isIn ? ["voter", "good", "a majority of voters commits"] : ["observer", "dim", "copies, and does not vote"]);
    else if (isIn) told.push(["ISR", "good", "in sync: the high watermark waits for it"]);
    else if (partition.elr.includes(number)) told.push(["ELR", "elr", "not in sync, but holds all that is committed (KIP-966)"]);
    else told.push(["out of ISR", "dim", partition.why_out?.[id] ?? "not in sync"]);
    if (partition.proposed && partition.proposed.includes(number) !== isIn) told.push([isIn ? "leaving" : "joining", "proposed", "an ISR is proposed and not decided yet"]);
    if (partition.preferred === number) told.push(["★", "plain", "preferred leader"]);
    if (broker?.quorum?.role === "leader") told.push([`controller ${broker.quorum.epoch}`, "control", `active controller, term ${broker.quorum.epoch}`]);
    else if (["candidate", "prospective"].includes(broker?.quorum?.role)) told.push([broker.quorum.role, "control", `of term ${broker.quorum.epoch}`]);
    if (broker && broker.state !== "up") told.push([broker.state, "bad", ""]);
    const key = JSON.stringify(told);
    if (pills.dataset.key !== key) {
      pills.dataset.key = key;
      pills.replaceChildren(...told.map((each) => pill(...each)));
    }
    say(name, `Broker ${id}`);
    const actions = broker ? this.page.brokerActs(id, broker).slice(0, 2) : [];
    const acting = actions.map(([text]) => text).join();
    if (acts.dataset.key !== acting) {
      acts.dataset.key = acting;
      acts.replaceChildren(...actions.map(([text, command]) => el("button", {
        type: "button", class: "small", "aria-label": `${text} broker ${id}`, onclick: () => this.page.act(command),
      }, text)));
    }
  }
}

export function epochAt(epochs, offset) {
  let found = -1;
  for (const [epoch, start] of epochs) if (start <= offset) found = epoch;
  return found;
}

function drawCell(cell, offset, { x, epoch, committed }) {
  const [, text, title] = cell.children;
  set(cell, { transform: `translate(${x} 0)`, class: `cell e${((epoch % EPOCHS) + EPOCHS) % EPOCHS}${committed ? "" : " open"}` });
  say(text, String(offset % 1000));
  say(title, `offset ${offset}, epoch ${epoch}, ${committed ? "committed" : "not committed"}`);
}
