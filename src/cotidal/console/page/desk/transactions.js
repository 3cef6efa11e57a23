// Transactions: those that coordinators know, what is open in partitions, and what hangs.

import { el, pill } from "../dom.js";
import { Room, ago, button, card, counted, count, moment, table } from "./parts.js";

export class Transactions {
  constructor(desk) {
    this.desk = desk;
    this.title = "Transactions";
    this.key = "transactions";
    this.everyMs = 3000;
    this.room = new Room();
    this.detail = new Room();
    this.root = el("div", { class: "room" }, this.room.root, this.detail.root);
  }

  async load() {
    const told = await this.desk.ask("transactions");
    const shown = { ...told, open: told.open.map((each) => ({ ...each, idle_ms: Math.floor(each.idle_ms / 1000) * 1000 })) };
    this.room.draw(shown, () => this.make(shown));
    const one = this.chosen ? await this.desk.ask("transaction", { id: this.chosen }) : null;
    this.detail.draw(one, () => (one ? [this.makeOne(one)] : []));
  }

  make(told) {
    const hanging = told.open.filter((each) => each.hangs).length;
    const verdict = hanging
      ? el("p", { class: "verdict bad" }, `${counted(hanging, "open transaction")} hang${hanging === 1 ? "s" : ""}: no coordinator knows of it, so nobody will end it, and read_committed consumers stand still below it.`)
      : el("p", { class: "verdict good" }, `${counted(told.open.length, "transaction")} open in partitions; none hangs.`);
    return [card("Open in partitions", verdict,
      table("Open transactions", ["Partition", "Producer", "First offset", "Last written", ""], told.open.map((each) => [each.partition, `${each.producer} / ${each.epoch}`, count(each.first_offset), ago(each.idle_ms), each.hangs ? pill("hangs", "bad") : pill("known to its coordinator", "good")]), "Nothing is open."),
      el("div", { class: "line" }, button("Abort what hangs…", () => this.desk.act("abort-hanging"), { class: "risky", "data-key": "abort" }))),
    card("Transactional ids", table("Transactional ids", ["Transactional id", "State", "Producer", "Coordinator"], told.transactions.map((each) => [
      button(each.transactional_id, () => { this.chosen = each.transactional_id; this.desk.refresh(); }, { class: "text", "data-key": `txn-${each.transactional_id}` }), each.state, String(each.producer_id), String(each.coordinator)]), "Nobody has written in transactions."),
    told.left_out ? el("p", { class: "note" }, `${counted(told.left_out, "more")} left out.`) : "")];
  }

  makeOne(told) {
    return card(`Transactional id ${told.transactional_id}`, table("What its coordinator knows", [], [
      ["State", told.state], ["Producer", `${told.producer_id}, epoch ${told.producer_epoch}`], ["Time-out", `${count(told.timeout_ms)} ms`],
      ["Begun", told.started_ms < 0 ? "–" : `${moment(told.started_ms)} UTC`], ["Partitions", told.partitions.join(", ") || "none"]]));
  }
}
