// Records of a partition: read, looked through, laid side by side replica by replica, and written.

import { el, pill } from "../dom.js";
import { Line, Room, button, card, choice, count, field, moment, table } from "./parts.js";

const NO_TOPIC = "There is no topic yet: create one under Topics.";

export class Records {
  constructor(desk) {
    this.desk = desk;
    this.title = "Records";
    this.key = "records";
    this.room = new Room();
    this.topic = el("input", { type: "text", list: "desk-topics", required: true, id: "records-topic" });
    this.known = el("datalist", { id: "desk-topics" });
    this.partition = el("input", { type: "number", min: 0, value: 0, id: "records-partition" });
    this.from = el("input", { type: "text", value: "-50", id: "records-from" });
    this.most = el("input", { type: "number", min: 1, max: 200, value: 50 });
    this.form = choice([["auto", "text or hex"], ["text", "text"], ["json", "JSON"], ["hex", "hex"]], { id: "records-form" });
    this.text = el("input", { type: "text", maxlength: 200, id: "records-text" });
    this.replica = choice([["", "the leader"]], { id: "records-replica" });
    this.line = new Line();
    const reader = el("form", { class: "line tools", id: "read", onsubmit: (event) => { event.preventDefault(); this.read(); } },
      field("Topic", this.topic), this.known, field("Partition", this.partition),
      field("From", this.from, "an offset, -50 (before the end), earliest, 2026-01-31T12:00Z, or @milliseconds"), field("At most", this.most),
      field("Show as", this.form), field("With this text in key or value", this.text), field("Read from", this.replica),
      el("button", { type: "submit", class: "next" }, "Read"), button("Compare replicas", () => this.compare(), { id: "compare" }));
    this.root = el("div", { class: "room" }, card("Records", reader, el("p", { class: "note" }, "From: an offset, -50 before the end, earliest, a time such as 2026-01-31T12:00Z, or @milliseconds."), this.line.root, this.room.root), this.makeProduce());
  }

  show({ topic, partition = 0, compare = false }) {
    this.topic.value = topic;
    this.partition.value = partition;
    this.from.value = "-50";
    this.text.value = "";
    this.replica.value = "";
    this.wanted = compare ? "compare" : "read";
    this.room.forget();
  }

  async load() {
    const names = (await this.desk.ask("topics")).topics;
    this.known.replaceChildren(...names.map((each) => el("option", { value: each.topic })));
    const first = names.find((each) => !each.internal)?.topic ?? "";
    if (!this.topic.value && document.activeElement !== this.topic) this.topic.value = first; // not while somebody types
    if (!this.topic.value) { if (!first) this.line.tell(NO_TOPIC); return; }
    const wanted = this.wanted ?? (this.room.key ? undefined : "read");
    this.wanted = undefined;
    if (wanted === "compare") await this.compare();
    else if (wanted === "read") await this.read();
  }

  // Doing

  given(from = this.from.value) {
    return { topic: this.topic.value.trim(), partition: Number(this.partition.value), from: from.trim(), most: Number(this.most.value) || 50 };
  }

  // ``find`` asks, ``draw`` shows what came; of several under way only the last one is shown.
  async attempt(find, draw) {
    const turn = this.turn = (this.turn ?? 0) + 1;
    this.line.tell("…");
    try {
      const told = await find();
      if (turn === this.turn) draw(told);
    } catch (error) {
      if (turn === this.turn) this.line.tell(error.message, "bad");
    }
  }

  read(from) {
    const given = { ...this.given(from), form: this.form.value, text: this.text.value };
    if (this.replica.value) given.replica = Number(this.replica.value);
    return this.attempt(() => Promise.all([this.desk.ask("records", given), this.desk.ask("topic", { topic: given.topic })]), ([told, topic]) => {
      this.drawReplicas(topic, given.partition);
      this.drawRecords(told, given);
    });
  }

  compare() {
    const given = this.given();
    return this.attempt(() => this.desk.ask("compare", { ...given, most: Math.min(given.most, 100) }), (told) => this.drawComparison(told));
  }

  // Who can be read from: whoever has a replica.
  drawReplicas(topic, partition) {
    const nodes = topic.partitions.find((each) => each.partition === partition)?.replicas ?? [];
    const key = nodes.join();
    if (this.nodes === key) return;
    this.nodes = key;
    const chosen = this.replica.value;
    this.replica.replaceChildren(el("option", { value: "" }, "the leader"), ...nodes.map((node) => el("option", { value: node }, `broker ${node}`)));
    if (nodes.includes(Number(chosen))) this.replica.value = chosen;
  }

  // Drawing

  drawRecords(told, given) {
    const found = told.records;
    const looked = given.text ? `, ${count(told.scanned)} looked through` : "";
    this.line.tell(`${told.partition} on broker ${told.replica} has offsets ${count(told.start)} to ${count(told.end)}; ${count(found.length)} shown${looked}.`);
    const older = Math.max(told.start, told.first - given.most);
    const pages = el("div", { class: "line" },
      button("◀ Older", () => this.leaf(older), { id: "older", disabled: told.first <= told.start }), button("Newer ▶", () => this.leaf(told.next), { id: "newer", disabled: told.next >= told.end }));
    this.room.draw([told, given], () => [table("Records", ["Offset", "Time (UTC)", "Key", "Value", "Headers", "Epoch", "Producer"], found.map((each) => this.row(each, given)), "No record there."), pages]);
  }

  leaf(offset) {
    this.from.value = String(offset);
    this.read();
  }

  row(each, given) {
    const more = (part) => this.bytes(each[part], () => this.whole(each.offset, given, part));
    const producer = each.producer ? `${each.producer.id} / ${each.producer.epoch} #${each.producer.sequence}` : "–";
    const value = each.marker ? pill(`${each.marker} marker`, each.marker === "abort" ? "bad" : "control") : more("value");
    const row = [count(each.offset), moment(each.timestamp), each.marker ? "" : more("key"), value,
      el("span", {}, each.headers.map((header) => el("span", { class: "header" }, el("b", {}, header.name), " ", this.bytes(header.value)))), String(each.epoch), each.transactional ? `${producer} in a transaction` : producer];
    row.kind = "record";
    return row;
  }

  // ``whole``: asks for all of it, where it was cut.
  bytes(shown, whole) {
    if (shown.form === "null") return pill("null", "none");
    const text = el("span", { class: `bytes ${shown.form}` }, shown.text);
    const note = shown.note ? el("span", { class: "note" }, shown.note) : "";
    if (!shown.cut) return el("div", {}, text, note);
    const more = button(`Show more of ${count(shown.bytes)} bytes`, async () => {
      more.disabled = true;
      try {
        const all = await whole();
        text.textContent = all.text;
        more.replaceWith(el("span", { class: "note" }, all.cut ? `The first part of ${count(all.bytes)} bytes: a page shows no more.` : `${count(all.bytes)} bytes`));
      } catch (error) {
        more.disabled = false;
        this.line.tell(error.message, "bad");
      }
    }, { class: "small" });
    return el("div", {}, text, whole ? more : el("span", { class: "note" }, `… ${count(shown.bytes)} bytes`), note);
  }

  async whole(offset, { topic, partition, form, replica }, part) {
    const given = { topic, partition, offset, form };
    if (replica !== undefined) given.replica = replica;
    return (await this.desk.ask("record", given))[part];
  }

  drawComparison(told) {
    this.line.tell(told.sentence, told.differ ? "bad" : "good");
    const heads = ["Offset", ...told.replicas.map((each) => `Broker ${each.broker}${each.leads ? " (leader)" : ""}`)];
    const failures = told.replicas.filter((each) => each.failure).map((each) => el("p", { class: "note warn" }, `Broker ${each.broker}: ${each.failure}.`));
    const rows = told.rows.map((row) => {
      const cells = [el("span", {}, count(row.offset), row.differs ? [" ", pill("differs", "bad")] : ""), ...told.replicas.map((each) => this.cell(row.cells, each))];
      cells.kind = row.differs ? "differs" : "record";
      return cells;
    });
    this.room.draw(told, () => [...failures, table("Replicas side by side", heads, rows, "No replica serves a record there.")]);
  }

  cell(cells, { broker }) {
    if (!(broker in cells)) return el("span", { class: "note" }, "not served yet");
    const cell = cells[broker];
    if (cell === null) return pill("no record", "warn");
    return el("div", {}, el("span", { class: "note" }, `epoch ${cell.epoch} `), cell.form === "null" ? pill("null", "none") : el("span", { class: `bytes short ${cell.form}` }, cell.text));
  }

  // Writing

  makeProduce() {
    const topic = el("input", { type: "text", list: "desk-topics", required: true });
    const partition = el("input", { type: "number", min: 0, placeholder: "by key" });
    const key = el("input", { type: "text", placeholder: "null" });
    const headers = el("input", { type: "text", placeholder: "name=value, …" });
    const acks = choice([["all", "all in-sync replicas"], ["1", "the leader"], ["0", "nobody"]]);
    const isNull = el("input", { type: "checkbox" });
    const value = el("textarea", { rows: 3, "aria-label": "Value" });
    const line = new Line();
    const send = async (event) => {
      event.preventDefault();
      const given = { topic: topic.value.trim(), acks: acks.value, headers: headers.value.split(",").map((each) => each.trim()).filter(Boolean).map((each) => { const [name, ...rest] = each.split("="); return [name, rest.length ? rest.join("=") : null]; }) };
      if (partition.value !== "") given.partition = Number(partition.value);
      if (key.value !== "") given.key = key.value;
      if (!isNull.checked) given.value = value.value;
      try {
        const told = await this.desk.ask("produce", given);
        line.tell(told.sentence, "good");
        if (given.topic === this.topic.value.trim()) this.read();
      } catch (error) {
        line.tell(error.message, "bad");
      }
    };
    const form = el("form", { id: "produce", onsubmit: send }, el("div", { class: "line tools" }, field("Topic", topic), field("Partition", partition), field("Key", key), field("Headers", headers), field("Acknowledged by", acks)),
      value, el("div", { class: "line tools" }, el("button", { type: "submit", class: "next" }, "Produce"), el("label", { class: "check" }, isNull, " a null value (a tombstone)")), line.root);
    const opened = () => { if (!topic.value) topic.value = this.topic.value; };
    return el("details", { class: "card new", ontoggle: opened }, el("summary", {}, "Produce a record"), form);
  }
}
