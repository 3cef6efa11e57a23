// A lesson: its caption, what was done, what happened, and the way on. Always played by a running world.

import { el, say, set, show } from "./dom.js";

export class Lesson {
  constructor(parent, page) {
    this.page = page;
    this.root = parent;
    this.place = el("div", { class: "place" });
    this.caption = el("p", { class: "caption", "aria-live": "polite" });
    this.said = el("code", { class: "said" });
    this.next = el("button", { type: "button", class: "next", onclick: () => page.act({ do: "next" }) }, "Continue");
    this.after = el("button", { type: "button", onclick: () => page.open({ world: "story", story: this.lesson.after }) }, "Next lesson");
    this.before = el("button", { type: "button", onclick: () => page.open({ world: "story", story: this.lesson.before }) }, "Previous lesson");
    parent.replaceChildren(this.place, el("div", { class: "turns" }, this.next, this.after, this.before), this.caption, this.said);
  }

  draw(store) {
    const lesson = store.about.lesson;
    show(this.root, lesson !== undefined);
    if (!lesson) return;
    this.lesson = lesson;
    const { at = 0, of = 0, caption = "", command = "" } = store.picture.lesson ?? {};
    const where = lesson.number ? `Lesson ${lesson.number} of ${lesson.of}` : "Story";
    say(this.place, `${where} · ${lesson.name} · ${at} of ${of}`);
    say(this.caption, caption);
    say(this.said, command);
    this.next.disabled = at >= of || store.picture.state === "running";
    say(this.next, at === 0 ? "Begin" : at >= of ? "The end" : "Continue");
    show(this.after, lesson.after !== undefined);
    show(this.before, lesson.before !== undefined);
    set(this.after, { class: at >= of ? "next" : "" });
  }
}

export function lessons(page) {
  const { tour = [], all = [] } = page.store.about.library ?? {};
  const item = ({ title, name }) => el("li", {}, el("button", { type: "button", class: "text", onclick: () => { document.getElementById("dialog").close(); page.open({ world: "story", story: name }); } }, title));
  const toured = new Set(tour.map((each) => each.name));
  page.dialog("Lessons", el("div", {},
    el("p", {}, "A tour of replication. Each lesson is a script of the test suite or a scene in the sandbox, played by the protocol code itself."),
    el("ol", { class: "lessons" }, tour.map((each, index) => item({ ...each, title: `${index + 1}. ${each.title}` }))),
    el("details", {}, el("summary", {}, `All other stories (${all.length - toured.size})`), el("ul", { class: "lessons" }, all.filter((each) => !toured.has(each.name)).map(item)))), true);
}
