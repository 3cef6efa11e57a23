// The desk of a live console: what a person in an incident looks at and does, a tab each.
//
// A view has: title, key (its name in the address), root, load() (asks and draws), and optionally
// everyMs (how often load() is done again while it is open) and draw(store) (with every picture; such
// a view has the time line with it).

import { el, set, show } from "../dom.js";
import { Groups } from "./groups.js";
import { Health } from "./health.js";
import { Moves } from "./moves.js";
import { Overview } from "./overview.js";
import { QuorumView } from "./quorum.js";
import { Records } from "./records.js";
import { Settings } from "./settings.js";
import { Topics } from "./topics.js";
import { Trace } from "./trace.js";
import { Transactions } from "./transactions.js";
import { Line, button, table } from "./parts.js";

const PICTURE = "picture";
const READ_ONLY = "This console only shows: start it with --allow-changes to change anything.";

export class Desk {
  constructor(root, tabs, page) {
    this.root = root;
    this.tabs = tabs;
    this.page = page;
    this.at = PICTURE;
    this.views = [new Overview(this), new Topics(this), new Records(this), new Groups(this), new Transactions(this),
      new Settings(this), new Moves(this), new QuorumView(this), new Health(this), new Trace(this)];
    this.line = new Line();
    this.makeTabs();
    const asked = new URLSearchParams(location.hash.slice(1)).get("tab");
    if (this.views.some((view) => view.key === asked)) this.at = asked;
  }

  // What the page asks

  isOpen(store) {
    return store.world === "live" && this.at !== PICTURE;
  }

  hasTime(store) {
    return this.isOpen(store) && this.view?.draw !== undefined;
  }

  get mayChange() {
    return this.page.store.about.changes === true;
  }

  draw(store) {
    const isLive = store.world === "live";
    show(this.tabs, isLive);
    show(this.root, this.isOpen(store));
    if (isLive && this.drawnAt !== this.at) this.open(this.at);
    if (!isLive) this.drawnAt = undefined;
    if (this.hasTime(store)) this.view.draw(store);
  }

  // Tabs

  makeTabs() {
    const tab = (key, title) => {
      const made = el("button", { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": key === PICTURE ? "stage" : "desk", onclick: () => this.choose(key) }, title);
      made.dataset.tab = key;
      return made;
    };
    this.tabs.append(tab(PICTURE, "Picture"), ...this.views.map((view) => tab(view.key, view.title)));
    this.tabs.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const all = [...this.tabs.children];
      const next = all[(all.findIndex((each) => each.dataset.tab === this.at) + by + all.length) % all.length];
      event.preventDefault();
      event.stopPropagation();
      this.choose(next.dataset.tab);
      next.focus();
    });
  }

  choose(key) {
    this.at = key;
    const told = new URLSearchParams(location.hash.slice(1));
    if (key === PICTURE) told.delete("tab");
    else told.set("tab", key);
    this.page.written = `#${told}`;
    history.replaceState(null, "", this.page.written);
    this.page.redraw();
  }

  // To another view, with what it is to show.
  go(key, what) {
    this.views.find((view) => view.key === key).show(what);
    this.choose(key);
    this.tabs.querySelector(`[data-tab="${key}"]`).focus();
  }

  open(key) {
    this.drawnAt = key;
    for (const tab of this.tabs.children) {
      const chosen = tab.dataset.tab === key;
      set(tab, { "aria-selected": chosen, tabindex: chosen ? 0 : -1 });
    }
    this.view = this.views.find((view) => view.key === key);
    set(this.root, { role: "tabpanel", "aria-labelledby": `tab-${key}` });
    this.root.replaceChildren(this.line.root, this.view ? this.view.root : "");
    this.line.tell("");
    this.refresh();
  }

  // Asking

  async ask(what, given = {}) {
    const { tell, ask, ...found } = await this.page.link.ask({ do: "ask", what, arguments: given });
    return found;
  }

  // The open view anew, now and every so often; one question at a time.
  async refresh() {
    clearTimeout(this.waiting);
    const view = this.view;
    if (!view) return;
    try {
      await view.load();
      if (this.failed) this.line.tell("");
      this.failed = false;
    } catch (error) {
      this.failed = true;
      if (view === this.view) this.line.tell(error.message, "bad");
    }
    clearTimeout(this.waiting);
    if (view === this.view && view.everyMs) this.waiting = setTimeout(() => this.refresh(), view.everyMs);
  }

  // Runs something that a person asked for, and says what came of it.
  async attempt(work) {
    try {
      this.line.tell("");
      const told = await work();
      if (told?.sentence) this.line.tell(told.sentence, "good");
      return told;
    } catch (error) {
      this.line.tell(error.message, "bad");
      return undefined;
    }
  }

  // An action: its plan is shown, and it is done when a person confirms it. ``then``: afterwards.
  act(what, given = {}, then = () => {}) {
    return this.attempt(async () => this.confirm(await this.ask(`plan-${what}`, given), what, given, then));
  }

  confirm(plan, what, given, then) {
    const dialog = document.getElementById("dialog");
    const told = new Line();
    const accept = el("input", { type: "checkbox", id: "accept", onchange: () => update() });
    const go = button(plan.button, () => act(), { class: plan.loses ? "risky" : "next", id: "confirm" });
    const update = () => { go.disabled = !this.mayChange || (plan.loses && !accept.checked); };
    const act = async () => {
      go.disabled = true;
      try {
        const done = await this.ask(what, { ...given, ...plan.arguments });
        dialog.close();
        this.line.tell(done.sentence, "good");
        then();
        this.refresh();
      } catch (error) {
        told.tell(error.message, "bad");
        update();
      }
    };
    update();
    this.page.dialog(plan.title, el("div", { class: "plan" },
      plan.sentences.map((text) => el("p", {}, text)),
      plan.rows.length ? table("The plan", plan.head, plan.rows.map((row) => row.map(String))) : "",
      plan.loses ? el("label", { class: "check" }, accept, " I have read this, and there is no way back.") : "",
      this.mayChange ? "" : el("p", { class: "note" }, READ_ONLY), told.root,
      el("div", { class: "line" }, go, button("Leave it as it is", () => dialog.close()))), true);
  }
}
