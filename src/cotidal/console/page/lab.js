// The durability lab: settings side by side under the same faults, and a run that lost something.

import { el, say, set, show, Keyed } from "./dom.js";

const COLUMNS = ["Settings", "Runs", "Acknowledged", "Lost", "Runs that lost", "Unavailable", "p50", "p99", ""];

export class LabView {
  constructor(parent, page) {
    this.page = page;
    this.root = parent;
    this.own = []; // configurations that were added here
    this.plan = el("select", { id: "lab-plan" });
    this.seeds = el("input", { id: "lab-seeds", type: "number", min: 1, max: 200, value: 5 });
    this.presets = el("fieldset", { class: "presets" }, el("legend", {}, "Configurations"));
    this.run = el("button", { type: "submit", class: "next" }, "Measure");
    this.stop = el("button", { type: "button", onclick: () => page.act({ do: "stop" }) }, "Stop");
    this.progress = el("progress", { max: 1, value: 0, "aria-label": "Runs done" });
    this.told = el("output", { class: "note" });
    this.body = el("tbody");
    this.keyed = new Keyed(this.body, (key) => this.makeRow(key), (row, key, value) => drawRow(row, value));
    const form = el("form", { class: "card", onsubmit: (event) => { event.preventDefault(); this.measure(); } },
      el("h2", {}, "Durability lab"),
      el("p", { class: "note" }, "Which acknowledged records are lost, with these settings and these faults? Every configuration meets the same faults, seed by seed; every number is measured as you watch."),
      el("div", { class: "fields three" }, field("Faults", this.plan), field("Seeds", this.seeds)), this.presets, this.ownForm(),
      el("div", { class: "line" }, this.run, this.stop, this.progress, this.told));
    const table = el("section", { class: "card", "aria-label": "Results" }, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Results" },
      el("table", {}, el("thead", {}, el("tr", {}, COLUMNS.map((text) => text ? el("th", { scope: "col" }, text) : el("td")))), this.body)));
    parent.replaceChildren(form, table);
  }

  ownForm() {
    const acks = el("select", {}, ["all", "1", "0"].map((level) => el("option", { value: level }, level)));
    const number = (value, most) => el("input", { type: "number", min: 0, max: most, value });
    const minIsr = number(1, 3);
    const flush = number(0, 1000000);
    const region = number(0, 500);
    const unclean = el("input", { type: "checkbox" });
    const elr = el("input", { type: "checkbox", checked: true });
    const add = () => {
      const name = [`acks=${acks.value}`, `min ISR ${minIsr.value}`, unclean.checked && "unclean", !elr.checked && "no ELR",
        Number(flush.value) && `flush ${flush.value}`, Number(region.value) && `regions ${region.value} ms`].filter(Boolean).join(", ");
      this.own.push({ name: `${name} (yours)`, acks: acks.value, min_isr: Number(minIsr.value) || 1, unclean: unclean.checked, elr: elr.checked,
        flush_messages: Number(flush.value), region_ms: Number(region.value) });
      this.page.redraw();
    };
    return el("details", {}, el("summary", {}, "A configuration of your own"), el("div", { class: "fields three" },
      field("acks", acks), field("Min ISR", minIsr), field("flush.messages", flush), field("Regions apart, ms", region),
      el("label", { class: "field check" }, unclean, "Unclean election"), el("label", { class: "field check" }, elr, "ELR")),
      el("div", { class: "line" }, el("button", { type: "button", onclick: add }, "Add")));
  }

  choices() {
    return [...(this.page.store.about.presets ?? []), ...this.own];
  }

  measure() {
    const chosen = [...this.presets.querySelectorAll("input:checked")].map((box) => this.choices()[Number(box.value)]);
    this.page.act({ do: "measure", plan: this.plan.value, seeds: Number(this.seeds.value), configurations: chosen });
  }

  draw(store) {
    const isLab = store.world === "lab";
    show(this.root, isLab);
    if (!isLab) return;
    this.drawChoices(store);
    const { done = 0, total = 0, rows = [], state } = store.picture;
    set(this.progress, { max: Math.max(1, total), value: done });
    say(this.told, total ? `${done} of ${total} runs` : "");
    this.run.disabled = state === "running";
    this.stop.disabled = state !== "running";
    this.keyed.draw(rows.map((row, index) => [index, row]));
  }

  drawChoices(store) {
    const plans = Object.entries(store.about.plans ?? {});
    if (this.plan.options.length !== plans.length) {
      this.plan.replaceChildren(...plans.map(([name, about]) => el("option", { value: name }, `${name}: ${about}`)));
      this.plan.value = "ebb";
    }
    const all = this.choices();
    const presets = (store.about.presets ?? []).length;
    for (let index = this.presets.children.length - 1; index < all.length; index++) {
      const box = el("input", { type: "checkbox", value: index, checked: [1, 2, 5].includes(index) || index >= presets });
      this.presets.append(el("label", { class: "check" }, box, all[index].name));
    }
  }

  makeRow(index) {
    const open = el("button", { type: "button", class: "small", onclick: () => this.openLoss(index, 0) }, "Open a loss");
    const shortest = el("button", { type: "button", class: "small", onclick: () => this.openLoss(index, 40) }, "Shortest");
    return el("tr", {}, el("th", { scope: "row" }), ...Array.from({ length: 7 }, () => el("td")), el("td", {}, open, " ", shortest));
  }

  async openLoss(row, tries) {
    if (tries) this.page.note("All is left out of the run that the loss does not take. That can take minutes.");
    try {
      const { script } = await this.page.link.ask({ do: "story", row, tries });
      this.page.open({ world: "run", script });
    } catch (error) {
      this.page.note(error.message);
    }
  }
}

function drawRow(tr, row) {
  const values = [row.name, row.runs, row.believed, row.lost, `${row.losing} of ${row.runs - row.broken}`,
    row.unavailable === undefined ? "nobody would know" : `${row.unavailable} %`, row.p50_ms === undefined ? "" : `${row.p50_ms} ms`, row.p99_ms === undefined ? "" : `${row.p99_ms} ms`];
  values.forEach((value, i) => say(tr.children[i], String(value)));
  set(tr, { class: row.lost ? "lossy" : row.runs ? "kept" : "" });
  for (const button of tr.lastChild.children) button.disabled = !row.lost;
}

const field = (text, input) => el("label", { class: "field" }, el("span", {}, text), input);

// Any seed of any plan, or a script of a run.
export function runs(page) {
  const plans = Object.entries(page.store.about.library?.plans ?? {});
  const plan = el("select", {}, plans.map(([name, about]) => el("option", { value: name }, `${name}: ${about}`)));
  plan.value = "mild";
  const seed = el("input", { type: "number", min: 0, value: 1 });
  const script = el("textarea", { rows: 6, "aria-label": "Script", placeholder: "plan harsh\nseed 22\nat 1.250 kill 2 for 1.400" });
  const close = () => document.getElementById("dialog").close();
  page.dialog("Runs of the simulator", el("div", {},
    el("p", {}, "A seed of a plan, with its own clients and faults, as `cotidal sim run` runs it."),
    el("form", { onsubmit: (event) => { event.preventDefault(); close(); page.open({ world: "run", plan: plan.value, seed: Number(seed.value) }); } },
      el("div", { class: "fields" }, field("Plan", plan), field("Seed", seed)), el("div", { class: "line" }, el("button", { type: "submit", id: "open-run" }, "Open this seed"))),
    el("p", {}, "Or a script, as `cotidal sim shrink` writes it:"),
    el("form", { onsubmit: (event) => { event.preventDefault(); close(); page.open({ world: "run", script: script.value }); } }, script,
      el("div", { class: "line" }, el("button", { type: "submit", id: "open-script" }, "Open this script")))), true);
}
