// The cluster at a glance: one sentence, what troubles it, its brokers.

import { el, pill } from "../dom.js";
import { Room, button, bytes, card, count, counted, table } from "./parts.js";

export class Overview {
  constructor(desk) {
    this.desk = desk;
    this.title = "Overview";
    this.key = "overview";
    this.everyMs = 2000;
    this.room = new Room();
    this.root = this.room.root;
  }

  async load() {
    const told = await this.desk.ask("overview");
    this.room.draw(told, () => this.make(told));
  }

  make(told) {
    const rest = told.troubles.filter((each) => each.sentence !== told.sentence);
    const elect = told.not_preferred
      ? el("p", { class: "line" }, `${counted(told.not_preferred, "partition")} ${told.not_preferred === 1 ? "is" : "are"} not led by the preferred leader. `,
        button("Elect preferred leaders", () => this.desk.act("elect"), { "data-key": "elect" }))
      : "";
    return [
      card("Health", el("p", { class: `verdict ${told.state}` }, told.sentence), el("ul", { class: "troubles" }, rest.map((each) => el("li", { class: each.state }, each.sentence))), elect,
        el("p", { class: "note" }, `${counted(told.topics, "topic")}, ${counted(told.partitions, "partition")} with the cluster's own. Cluster id ${told.cluster_id ?? "unknown"}.`)),
      card("Brokers", table("Brokers", ["Broker", "Address", "Rack", "State", "Leads", "Replicas", "Size"], told.brokers.map((each) => this.row(each)))),
    ];
  }

  row(broker) {
    const well = broker.state === "serves";
    const state = el("span", {}, pill(broker.state, well ? "good" : "bad"), broker.controls ? [" ", pill("controller", "control")] : "");
    return [button(String(broker.id), () => this.desk.go("settings", { kind: "broker", name: String(broker.id) }), { class: "text", "data-key": `broker-${broker.id}`, title: "Its settings" }),
      `${broker.host}:${broker.port}`, broker.rack ?? "–", state, count(broker.leads), count(broker.replicas), bytes(broker.size_bytes)];
  }
}
