// Consumer groups: how far each is behind, who is in it, and partition by partition.

import { el, pill } from "../dom.js";
import { Room, button, card, count, counted, table } from "./parts.js";

const STATES = { Stable: "good", Empty: "none", Dead: "bad" };

export class Groups {
  constructor(desk) {
    this.desk = desk;
    this.title = "Groups";
    this.key = "groups";
    this.everyMs = 3000;
    this.list = new Room();
    this.detail = new Room();
    this.root = el("div", { class: "room" }, card("Consumer groups", this.list.root), this.detail.root);
  }

  show(name) {
    this.chosen = name;
    this.detail.forget();
  }

  async load() {
    const told = await this.desk.ask("groups");
    this.list.draw(told, () => [table("Consumer groups", ["Group", "State", "Behind, records", "Protocol", "Coordinator"], told.groups.map((each) => this.row(each)), "There is no consumer group."),
      told.left_out ? el("p", { class: "note" }, `${counted(told.left_out, "more group")} left out.`) : ""]);
    if (this.chosen && !told.groups.some((each) => each.group === this.chosen)) this.chosen = undefined;
    const one = this.chosen ? await this.desk.ask("group", { group: this.chosen }) : null;
    this.detail.draw(one, () => (one ? this.make(one) : []));
  }

  row(each) {
    return [button(each.group, () => { this.show(each.group); this.desk.refresh(); }, { class: "text", "data-key": `group-${each.group}` }), pill(each.state, STATES[each.state] ?? "warn"),
      each.lag ? el("b", {}, count(each.lag)) : count(each.lag), each.kind === "classic" ? `classic, ${each.type || "no type"}` : each.kind, String(each.coordinator)];
  }

  make(told) {
    const epoch = told.epoch === undefined ? "" : `, epoch ${told.epoch}${told.target_epoch < told.epoch ? " (a new assignment is being made)" : ""}`;
    const assignor = told.protocol ? `, assigned by ${told.protocol}` : "";
    const members = told.members.map((each) => [each.client, each.member, each.host, each.instance ?? "–", each.partitions.join(", ") || "nothing"]);
    const names = Object.fromEntries(told.members.map((each) => [each.member, each.client]));
    const partitions = told.partitions.map((each) => [button(`${each.topic}-${each.partition}`, () => this.desk.go("records", { topic: each.topic, partition: each.partition }), { class: "text" }),
      count(each.committed), count(each.end), each.lag ? el("b", {}, count(each.lag)) : count(each.lag), each.member ? names[each.member] : pill("nobody", "warn"), each.target && each.target !== each.member ? names[each.target] : ""]);
    return [card(`Group ${told.group}`, el("p", {}, `${told.state}${epoch}, ${counted(told.members.length, "member")}${assignor}, ${counted(told.lag, "record")} behind.`),
      table("Partitions", ["Partition", "Committed", "End", "Behind", "Read by", "Moves to"], partitions, "It has committed nothing, and nobody reads."),
      el("h3", {}, "Members"), table("Members", ["Client", "Member", "Host", "Instance", "Partitions"], members, "Nobody is in it."))];
  }
}
