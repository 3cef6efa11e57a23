// The time line: what happened when, and a slider over it. Any past moment can be gone to.

import { el, set, svg, say, Keyed } from "./dom.js";

const WIDTH = 1000;

export class Timeline {
  constructor(parent, page) {
    this.page = page;
    this.marks = svg("g");
    this.done = svg("rect", { class: "done", x: 0, y: 14, height: 4 });
    this.root = svg("svg", { viewBox: `0 0 ${WIDTH} 26`, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "track", x: 0, y: 14, width: WIDTH, height: 4 }), this.done, this.marks);
    this.slider = el("input", { type: "range", min: 0, max: 1000, value: 0, step: 1, "aria-label": "Moment in the run", oninput: () => this.seek() });
    this.label = el("output", { class: "ends" });
    parent.replaceChildren(el("div", { class: "head" }, el("h2", {}, "Time line"), this.label), el("div", { class: "rail" }, this.root, this.slider));
    this.keyed = new Keyed(this.marks, (key, item) => makeMark(item), (mark, key, item) => this.place(mark, item));
  }

  draw(store) {
    const picture = store.picture;
    this.first = 0;
    this.last = Math.max(1, picture.furthest_us ?? picture.now_us ?? 1);
    const big = store.logs.told.filter((item) => item.big);
    if (big.length !== this.drawn || this.last !== this.drawnLast) {
      this.drawn = big.length;
      this.drawnLast = this.last;
      this.keyed.draw(big.slice(-400).map((item, index) => [`${item.at}/${index}`, item]));
    }
    const part = (picture.now_us ?? 0) / this.last;
    set(this.done, { width: (part * WIDTH).toFixed(1) });
    if (document.activeElement !== this.slider || !this.asked) this.slider.value = Math.round(part * 1000);
    this.slider.setAttribute("aria-valuetext", this.page.when(picture.now_us ?? 0));
    say(this.label, `${this.page.when(picture.now_us ?? 0)} of ${this.page.when(this.last).replace("step ", "")}`);
    this.slider.disabled = !this.page.can("seek");
  }

  place(mark, item) {
    set(mark, { transform: `translate(${((item.at / this.last) * WIDTH).toFixed(1)} 0)` });
  }

  // Only the latest wish counts while one is being fulfilled.
  async seek() {
    this.wish = Math.round((Number(this.slider.value) / 1000) * this.last);
    if (this.asked) return;
    this.asked = true;
    while (this.wish !== null) {
      const us = this.wish;
      this.wish = null;
      await this.page.seek(us);
    }
    this.asked = false;
  }
}

function makeMark(item) {
  return svg("rect", { class: `mark ${item.kind}`, x: -1.2, y: 5, width: 2.4, height: 15 });
}
