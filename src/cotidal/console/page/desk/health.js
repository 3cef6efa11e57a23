// What the health pipeline found: the last window by partition and by broker, what is alarming, and how it was before.

import { el, pill } from "../dom.js";
import { Room, card, count, counted, moment, table } from "./parts.js";

const HOW = "cotidal pipeline run health --follow --publish";

export class Health {
  constructor(desk) {
    this.desk = desk;
    this.title = "Health";
    this.key = "health";
    this.everyMs = 5000;
    this.room = new Room();
    this.root = this.room.root;
  }

  async load() {
    const told = await this.desk.ask("health-rows");
    this.room.draw(told, () => this.make(told));
  }

  make(told) {
    if (!told.exists || !told.window) {
      return [card("Health over time", el("p", { class: "verdict" }, told.exists ? "The pipeline has written nothing yet: its first window ends half a minute after it began." : "No pipeline watches this cluster."),
        el("p", { class: "note" }, "Start it with ", el("code", {}, HOW), ": it reads what brokers tell, and writes how replication fared, window by window."))];
    }
    const { window, alarms, history } = told;
    const verdict = alarms.length ? `${counted(alarms.length, "alarm")} raised.` : "Nothing alarming.";
    return [card("Health over time", el("p", { class: `verdict ${alarms.length ? "warn" : "good"}` }, verdict),
      el("ul", { class: "troubles" }, alarms.map((each) => el("li", { class: "warn" }, alarm(each)))),
      el("p", { class: "note" }, `As of the window from ${moment(window.start)} to ${moment(window.end).slice(11)} UTC.`)),
    card("Partitions", table("Partitions in the last window", ["Partition", "Lag, records", "Lag", "Under-replicated", "Under min ISR", "Left", "Joined", "Elections", "Cut"], window.partitions.map(partition))),
    card("Brokers", table("Brokers in the last window", ["Broker", "Leads", "Replicas", "Under-replicated", "Acknowledged", "p50", "p99", "Longest", "Events lost"], window.brokers.map(broker))),
    card("Before that", table("Windows, newest first", ["Window", "Largest lag, records", "Partitions under-replicated", "Elections", "Records cut", "Acknowledged", "p99"],
      history.map((each) => [`${moment(each.start)}`, count(each.lag_records), count(each.under_replicated), count(each.elections), count(each.records_cut), count(each.acks), below(each.ack_p99_ms)])))];
  }
}

const below = (ms) => (ms === null || ms === undefined ? "–" : `< ${count(ms)} ms`);
const seconds = (value) => (value ? pill(`${count(value)} s`, "bad") : "–");

const alarm = (each) => (each.kind === "flapping"
  ? `Broker ${each.replica} has left the ISR of ${each.topic}-${each.partition} ${each.times} times within five minutes.`
  : `Broker ${each.broker} leads ${count(each.leads)} partitions; its share is ${count(each.share)}.`);

const partition = (each) => [`${each.topic}-${each.partition}`, count(each.lag_records), `${count(each.lag_ms)} ms`, seconds(each.under_replicated_s), seconds(each.under_min_isr_s),
  count(each.left), count(each.joined), each.unclean ? `${count(each.elections)}, ${count(each.unclean)} unclean` : count(each.elections), count(each.records_cut)];

const broker = (each) => [String(each.broker), count(each.leads), count(each.replicas), count(each.under_replicated), count(each.acks), below(each.ack_p50_ms), below(each.ack_p99_ms), below(each.ack_max_ms), count(each.events_dropped)];
