// Settings of a topic or a broker: each value with where it comes from, and changing one.

import { el, pill } from "../dom.js";
import { Room, button, card, check, choice, field, table } from "./parts.js";

export class Settings {
  constructor(desk) {
    this.desk = desk;
    this.title = "Settings";
    this.key = "settings";
    this.room = new Room();
    this.kind = choice([["topic", "topic"], ["broker", "broker"]], { id: "settings-kind", onchange: () => { this.name.value = ""; this.desk.refresh(); } });
    this.name = el("input", { type: "text", list: "settings-names", id: "settings-name" });
    this.names = el("datalist", { id: "settings-names" });
    this.filter = el("input", { type: "text", placeholder: "part of a name", oninput: () => this.redraw() });
    this.changed = el("input", { type: "checkbox", onchange: () => this.redraw() });
    this.root = el("div", { class: "room" }, card("Settings", el("form", { class: "line tools", id: "settings-form", onsubmit: (event) => { event.preventDefault(); this.desk.refresh(); } },
      field("Of a", this.kind), field("Name", this.name), this.names, el("button", { type: "submit" }, "Show"), field("Find", this.filter), check("only what was changed", this.changed)), this.room.root));
  }

  show({ kind, name }) {
    this.kind.value = kind;
    this.name.value = name;
    this.room.forget();
  }

  // A person may choose anew before what was asked is answered: the last one counts.
  async load() {
    const turn = this.turn = (this.turn ?? 0) + 1;
    const names = this.kind.value === "topic"
      ? (await this.desk.ask("topics")).topics.filter((each) => !each.internal).map((each) => each.topic)
      : [...(await this.desk.ask("overview")).brokers.map((each) => String(each.id)), "all"];
    if (turn !== this.turn) return;
    this.names.replaceChildren(...names.map((value) => el("option", { value })));
    if (!this.name.value) this.name.value = names[0] ?? "";
    if (!this.name.value) { this.told = []; this.redraw(); return; }
    const { configs } = await this.desk.ask("configs", { kind: this.kind.value, name: this.name.value.trim() });
    if (turn !== this.turn) return;
    this.told = configs;
    this.redraw();
  }

  redraw() {
    const text = this.filter.value.trim();
    const found = (this.told ?? []).filter((each) => each.setting.includes(text) && (!this.changed.checked || each.from !== "default"));
    const target = { kind: this.kind.value, name: this.name.value.trim() };
    this.room.draw([target, found], () => [table("Settings", ["Setting", "Value", "From", "Meaning", ""], found.map((each) => this.row(each, target)), "No setting to show.")]);
  }

  row(each, target) {
    const value = each.sensitive ? pill("hidden", "none") : el("span", { class: "bytes" }, each.value ?? "not set");
    const change = each.changeable ? button("Change…", () => this.edit(each, target), { class: "small", "aria-label": `Change ${each.setting}`, "data-key": `set-${each.setting}` }) : el("span", { class: "note" }, "in server.properties");
    return [each.setting, value, pill(each.from, each.from === "default" ? "none" : "leader"), el("span", { class: "why" }, each.meaning ?? ""), change];
  }

  edit(each, target) {
    const value = el("input", { type: "text", value: each.value ?? "", "aria-label": `${each.setting}, new value` });
    const plan = (given) => this.desk.act("set-config", { ...target, setting: each.setting, ...given });
    this.desk.page.dialog(`${each.setting} of ${target.kind} ${target.name}`, el("form", { id: "set-config", onsubmit: (event) => { event.preventDefault(); plan({ value: value.value }); } },
      each.meaning ? el("p", { class: "note" }, each.meaning) : "", el("div", { class: "line" }, value), el("div", { class: "line" }, el("button", { type: "submit", class: "next" }, "Change…"), button("To its default…", () => plan({})))));
  }
}
