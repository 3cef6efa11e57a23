// Topics, and one of them partition by partition: who leads, who is out of sync and why, what an
// election of each replica would drop.

import { el, pill } from "../dom.js";
import { Room, button, bytes, card, check, count, counted, field, ids, table } from "./parts.js";

const NEW_MS = 8000;

export class Topics {
  constructor(desk) {
    this.desk = desk;
    this.title = "Topics";
    this.key = "topics";
    this.everyMs = 3000;
    this.list = new Room();
    this.detail = new Room();
    this.filter = el("input", { type: "text", placeholder: "part of a name", oninput: () => this.redraw() });
    this.internal = el("input", { type: "checkbox", onchange: () => this.redraw() });
    this.root = el("div", { class: "room" }, card("Topics",
      el("div", { class: "line tools" }, field("Find", this.filter), check("the cluster's own too", this.internal), this.makeNew()), this.list.root), this.detail.root);
  }

  show(name) {
    this.chosen = name;
    this.shownAt = performance.now();
    this.detail.forget();
  }

  async load() {
    this.told = await this.desk.ask("topics");
    this.redraw();
    const one = this.chosen ? await this.look() : null;
    this.detail.draw(one, () => (one ? [this.makeDetail(one)] : []));
  }

  // A topic that was just made is not known everywhere at once; one that is gone is let go.
  async look() {
    try {
      return await this.desk.ask("topic", { topic: this.chosen });
    } catch (error) {
      if (performance.now() - this.shownAt < NEW_MS) return null;
      this.chosen = undefined;
      throw error;
    }
  }

  redraw() {
    if (!this.told) return;
    const text = this.filter.value.trim();
    const rows = this.told.topics.filter((each) => each.topic.includes(text) && (this.internal.checked || !each.internal));
    this.list.draw([rows, this.told.left_out], () => [table("Topics", ["Topic", "Partitions", "Replicas", "Under-replicated", "No leader", "Offsets", "Size, all replicas"], rows.map((each) => this.row(each)),
      text ? `No topic has “${text}” in its name.` : "There is no topic yet: create one."),
    this.told.left_out ? el("p", { class: "note" }, `${counted(this.told.left_out, "more topic")} left out.`) : ""]);
  }

  row(each) {
    const row = [button(each.topic, () => { this.show(each.topic); this.desk.refresh(); }, { class: "text", "data-key": `topic-${each.topic}` }), count(each.partitions), count(each.replicas),
      each.under_replicated ? pill(count(each.under_replicated), "warn") : "0", each.without_leader ? pill(count(each.without_leader), "bad") : "0", count(each.offsets), bytes(each.size_bytes)];
    return row;
  }

  makeNew() {
    const name = el("input", { type: "text", required: true, maxlength: 249 });
    const partitions = el("input", { type: "number", min: 1, max: 10000, placeholder: "default" });
    const replicas = el("input", { type: "number", min: 1, max: 99, placeholder: "default" });
    const settings = el("input", { type: "text", placeholder: "min.insync.replicas=2, …" });
    const submit = (event) => {
      event.preventDefault();
      const configs = Object.fromEntries(settings.value.split(",").map((each) => each.trim()).filter(Boolean).map((each) => { const [key, ...rest] = each.split("="); return [key.trim(), rest.join("=").trim()]; }));
      this.desk.act("create-topic", { topic: name.value.trim(), partitions: Number(partitions.value) || -1, replicas: Number(replicas.value) || -1, configs }, () => this.show(name.value.trim()));
    };
    return el("details", { class: "new" }, el("summary", {}, "New topic"),
      el("form", { class: "line tools", id: "new-topic", onsubmit: submit }, field("Name", name), field("Partitions", partitions), field("Replicas", replicas), field("Settings", settings), el("button", { type: "submit", class: "next" }, "Create…")));
  }

  makeDetail(told) {
    const more = el("input", { type: "number", min: told.partitions.length + 1, max: 10000, value: told.partitions.length + 1, "aria-label": "Partitions in all" });
    return card(`Topic ${told.topic}`,
      el("div", { class: "line tools" }, button("Records", () => this.desk.go("records", { topic: told.topic, partition: 0 }), { "data-key": "records" }), button("Settings", () => this.desk.go("settings", { kind: "topic", name: told.topic }), { "data-key": "settings" }),
        button("Move…", () => this.desk.go("moves", { topics: told.topic }), { "data-key": "move" }),
        more, button("Add partitions…", () => this.desk.act("add-partitions", { topic: told.topic, partitions: Number(more.value) }), { "data-key": "grow" }),
        button("Delete…", () => this.desk.act("delete-topic", { topic: told.topic }, () => this.show(undefined)), { class: "risky", "data-key": "delete" })),
      ...told.partitions.map((each) => this.makePartition(told.topic, each)),
      told.left_out ? el("p", { class: "note" }, `${counted(told.left_out, "more partition")} left out.`) : "");
  }

  makePartition(topic, each) {
    const at = `${topic}-${each.partition}`;
    const unwell = each.leader === null || each.isr.length < each.replicas.length;
    const lead = each.leader === null ? pill("no leader", "bad") : el("span", {}, `led by ${each.leader} in epoch ${each.leader_epoch}`);
    const minimum = each.min_isr === null ? "" : ` of min ${each.min_isr}`;
    const summary = el("summary", { "data-key": `partition-${at}` }, el("b", {}, at), " ", lead, ", ", el("span", { class: unwell ? "warn" : "" }, `in sync: ${ids(each.isr)}${minimum}`),
      each.acks_all_refused ? [" ", pill("acks=all is refused", "bad")] : "", `, offsets ${count(each.start_offset)} to ${count(each.end_offset)}`);
    const act = (given) => this.desk.act("elect", { topic, partition: each.partition, ...given });
    const acts = el("div", { class: "line tools" }, button("Records", () => this.desk.go("records", { topic, partition: each.partition })), button("Compare replicas", () => this.desk.go("records", { topic, partition: each.partition, compare: true })),
      each.leader !== null && each.leader !== each.replicas[0] ? button("Elect preferred leader…", () => act({})) : "",
      each.leader === null ? button("Elect uncleanly…", () => act({ unclean: true }), { class: "risky" }) : "");
    const unheard = each.unheard.length ? el("p", { class: "note warn" }, `What only broker ${ids(each.unheard)} may hold nobody can tell.`) : "";
    const rows = each.standing.map((replica) => this.replica(replica));
    return el("details", { class: "partition", open: this.isOpen(at, unwell), ontoggle: (event) => { (this.opened ??= {})[at] = event.target.open; } }, summary, unheard,
      table(`Replicas of ${at}`, ["Broker", "Role", "Start", "High watermark", "End", "Epoch : end", "If elected now, lost", "Why not in sync"], rows), acts);
  }

  isOpen(at, unwell) {
    return this.opened?.[at] ?? unwell;
  }

  replica(each) {
    const kind = { leader: "leader", "in sync": "good", eligible: "elr" }[each.role] ?? "bad";
    const epochs = each.epochs === null ? "not told" : each.epochs.slice(-3).map((one) => `${one.epoch} : ${count(one.end_offset)}`).join(", ");
    const loss = each.loss_if_elected;
    const loses = loss && (loss.acknowledged_with_acks_all || loss.acknowledged_with_acks_1_at_most);
    return [String(each.broker), pill(each.role, kind), count(each.log_start_offset), count(each.high_watermark), count(each.log_end_offset), `${each.epochs?.length > 3 ? ".. " : ""}${epochs}`,
      el("span", { class: loses ? "bad" : "" }, each.loss ?? (each.role === "leader" ? "–" : "nobody can tell")), el("span", { class: "why" }, each.why_not_in_sync ?? "")];
  }
}
