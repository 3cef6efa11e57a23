// Moving partitions: a plan, its beginning, how far it has got; and throttles.

import { el } from "../dom.js";
import { Room, button, bytes, card, count, field, ids, namesIn, numbersIn, table } from "./parts.js";

export class Moves {
  constructor(desk) {
    this.desk = desk;
    this.title = "Moves";
    this.key = "moves";
    this.everyMs = 1500;
    this.room = new Room();
    this.topics = el("input", { type: "text", placeholder: "all", id: "move-topics" });
    this.brokers = el("input", { type: "text", placeholder: "all that serve", id: "move-brokers" });
    this.without = el("input", { type: "text", placeholder: "nobody" });
    this.replicas = el("input", { type: "number", min: 1, max: 99, placeholder: "as now" });
    this.throttle = el("input", { type: "text", placeholder: "none: 10MB, 500KB", id: "move-throttle" });
    this.rate = el("input", { type: "text", placeholder: "10MB", required: true, id: "throttle-rate" });
    this.slowed = el("input", { type: "text", placeholder: "those throttled already", id: "throttle-topics" });
    const plan = el("form", { class: "line tools", id: "move", onsubmit: (event) => { event.preventDefault(); this.plan(); } },
      field("Topics", this.topics), field("To brokers", this.brokers), field("Off brokers", this.without), field("Replicas of each", this.replicas), field("At most, a second", this.throttle), el("button", { type: "submit", class: "next" }, "Plan…"));
    const slow = el("form", { class: "line tools", id: "throttle", onsubmit: (event) => { event.preventDefault(); this.slow(); } },
      field("At most, a second", this.rate), field("Topics", this.slowed), el("button", { type: "submit", class: "next" }, "Throttle…"), button("Lift every throttle…", () => this.desk.act("unthrottle"), { id: "unthrottle" }));
    this.root = el("div", { class: "room" }, card("Move partitions", el("p", { class: "note" }, "As little moves as can: replicas stay where they are allowed to, are kept in different racks, and are spread evenly. The plan is shown before anything moves."), plan),
      card("Throttle replicas that catch up", slow), this.room.root);
  }

  show({ topics }) {
    this.topics.value = topics;
  }

  async load() {
    const told = await this.desk.ask("moving");
    this.room.draw(told, () => this.make(told));
  }

  plan() {
    this.desk.act("reassign", { topics: namesIn(this.topics.value), brokers: numbersIn(this.brokers.value), without: numbersIn(this.without.value), replicas: Number(this.replicas.value) || 0, throttle: this.throttle.value });
  }

  slow() {
    this.desk.act("throttle", { throttle: this.rate.value, topics: namesIn(this.slowed.value) });
  }

  make(told) {
    const rows = told.moving.map((each) => {
      const done = each.bytes ? (each.bytes - each.bytes_left) / each.bytes : 1;
      const at = `${each.topic}-${each.partition}`;
      return [at, ids(each.replicas), ids(each.adding), ids(each.removing), el("span", { class: "line" }, el("progress", { max: 1, value: done, "aria-label": `${at}, copied` }), ` ${bytes(each.bytes_left)} of ${bytes(each.bytes)} left`),
        button("Stop…", () => this.desk.act("cancel-reassign", { partitions: [[each.topic, each.partition]] }), { class: "small risky", "data-key": `stop-${at}` })];
    });
    const throttles = [...told.brokers.map((each) => [`broker ${each.node_id}`, `${count(each.leader_rate)} B/s out, ${count(each.follower_rate)} B/s in`]), ...told.topics.map((each) => [`topic ${each.topic}`, `as leaders ${each.leaders || "none"}; as followers ${each.followers || "none"}`])];
    return [card("Under way", table("Moves under way", ["Partition", "Replicas", "Adding", "Removing", "Copied", ""], rows, "Nothing is being moved.")),
      card("Throttles", table("Throttles", ["Of", "What"], throttles, "Nothing is throttled."))];
  }
}
