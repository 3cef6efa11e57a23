// What nodes do, line by line, as they do it: events, and what each node wants done about them.
// The lines of the moment that the page is at: it goes with the cluster, stays, or goes back on the time line.

import { el, say, set } from "../dom.js";
import { Rows } from "../rows.js";
import { card, choice, field } from "./parts.js";

const ROW = 22;
const SHOWN = 2000; // lines up to the moment
const UNHEARD = "Nodes that run on this machine under `cotidal up` tell what they do; of this cluster only what it answers is known.";

export class Trace {
  constructor(desk) {
    this.desk = desk;
    this.title = "Trace";
    this.key = "trace";
    const again = () => { this.drawn = undefined; desk.page.redraw(); };
    this.text = el("input", { type: "search", id: "trace-text", placeholder: "Fetch, orders-0, …", "aria-label": "Lines with these words", oninput: again });
    this.node = choice([["", "all nodes"]], { id: "trace-node", "aria-label": "Node", onchange: again });
    this.quiet = el("input", { type: "checkbox", id: "trace-quiet", checked: true, onchange: again });
    this.told = el("p", { class: "note", role: "status" });
    const body = el("tbody");
    const heads = ["Time", "Node", "What", ""].map((text) => (text ? el("th", { scope: "col" }, text) : el("td")));
    const scroll = el("div", { class: "scroll trace", tabindex: 0, role: "region", "aria-label": "What nodes do, newest first" },
      el("table", {}, el("thead", {}, el("tr", {}, heads)), body));
    this.root = el("div", { class: "room" }, card("What nodes do", el("div", { class: "line tools" }, field("Lines with", this.text), field("Node", this.node),
      el("label", { class: "check", title: "and what the cluster writes into its own events" }, this.quiet, " leave out heartbeats, fetches that bring nothing, and this console's questions")), this.told, scroll));
    this.rows = new Rows({ scroll, body, height: ROW, make: () => this.make(), update: (tr, line) => this.drawRow(tr, line) });
  }

  async load() {}

  draw(store) {
    if (!store.about.hears) { say(this.told, UNHEARD); return; }
    const { trace } = store.logs;
    const at = store.picture.state === "running" ? Infinity : store.picture.now_us ?? 0;
    const drawn = `${trace.gone}/${trace.length}/${at}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.drawNodes(store);
    const found = this.sought(trace, at);
    say(this.told, `${found.length === SHOWN ? "The newest " : ""}${found.length} line${found.length === 1 ? "" : "s"}${at === Infinity ? "" : ` up to ${this.desk.page.exactly(at)}`}. Click a time to see the picture of that moment.`);
    this.rows.draw(found);
  }

  sought(trace, at) {
    const words = this.text.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const node = this.node.value === "" ? null : Number(this.node.value);
    const found = [];
    for (let i = trace.length - 1; i >= 0 && found.length < SHOWN; i--) {
      const line = trace[i];
      if (line.at > at || (node !== null && line.node !== node) || (this.quiet.checked && isQuiet(line))) continue;
      const text = `${line.kind} ${line.text}`.toLowerCase();
      if (words.every((word) => text.includes(word))) found.push(line);
    }
    return found;
  }

  drawNodes(store) {
    const nodes = [...Object.keys(store.picture.brokers ?? {}), ...Object.keys(store.picture.controllers ?? {})];
    if (this.nodes === `${nodes}`) return;
    this.nodes = `${nodes}`;
    const chosen = this.node.value;
    this.node.replaceChildren(el("option", { value: "" }, "all nodes"), ...nodes.map((id) => el("option", { value: id }, `node ${id}`)));
    this.node.value = nodes.includes(chosen) ? chosen : "";
  }

  make() {
    const go = el("button", { type: "button", class: "when", onclick: () => this.desk.page.seek(go.at) });
    return el("tr", {}, el("th", { scope: "row" }, go), el("td"), el("td"), el("td"));
  }

  drawRow(tr, line) {
    const [head, node, kind, text] = tr.children;
    head.firstChild.at = line.at;
    say(head.firstChild, this.desk.page.exactly(line.at));
    say(node, String(line.node));
    say(kind, line.kind);
    say(text, line.text);
    set(text, { title: line.text });
    set(tr, { class: `${EVENTS.has(line.kind) ? "happened" : "wanted"} b${line.node}` });
  }
}

const EVENTS = new Set(["received", "replied", "appended", "persisted", "read-done", "connection-opened", "connection-lost", "call-failed",
  "peer-connected", "peer-lost", "log-opened", "log-failed", "started", "start-moved", "passed"]);

// An idle cluster says these all the time; some because it is looked at, passed on by whom we ask.
function isQuiet({ kind, text, own }) {
  if (own || text.includes("__cotidal_events") || text.includes("BrokerHeartbeat") || text.includes("DescribeQuorum") || kind === "connection-opened" || kind === "connection-lost") return true;
  if (!text.includes("Fetch")) return false;
  return kind === "received" || kind === "call" || !/\d+-\d+@|\d bytes|diverging|snapshot|[A-Z]{3}_/.test(text);
}
