// Rows of a long table: only those that can be seen are in the document, whatever their number.

import { el, set } from "./dom.js";

const SPARE = 6; // rows above and below what is seen, so that scrolling shows no gap

export class Rows {
  // make() gives a tr, update(tr, item, index) fills it; all rows are `height` pixels high.
  constructor({ scroll, body, height, make, update }) {
    Object.assign(this, { body, height, make, update, items: [], pool: [] });
    this.above = el("tr", { "aria-hidden": "true", class: "spacer" });
    this.below = el("tr", { "aria-hidden": "true", class: "spacer" });
    body.replaceChildren(this.above, this.below);
    // Both are known before a redraw: to ask then would have everything laid out anew.
    this.top = 0;
    this.seen = 12;
    scroll.addEventListener("scroll", () => { this.top = scroll.scrollTop; this.place(); }, { passive: true });
    new ResizeObserver(([entry]) => { this.seen = Math.ceil(entry.contentRect.height / height); this.place(); }).observe(scroll);
  }

  draw(items) {
    this.items = items;
    set(this.body.parentNode, { "aria-rowcount": items.length + 1 });
    this.place();
  }

  place() {
    const seen = this.seen + 2 * SPARE;
    const last = Math.max(0, this.items.length - seen);
    const first = Math.min(last, Math.max(0, Math.floor(this.top / this.height) - SPARE));
    const shown = this.items.slice(first, first + seen);
    while (this.pool.length < shown.length) {
      const row = this.make();
      this.pool.push(row);
      this.below.before(row);
    }
    while (this.pool.length > shown.length) this.pool.pop().remove();
    shown.forEach((item, index) => {
      set(this.pool[index], { "aria-rowindex": first + index + 2 });
      this.update(this.pool[index], item, first + index);
    });
    high(this.above, first * this.height);
    high(this.below, (this.items.length - first - shown.length) * this.height);
  }
}

function high(row, pixels) {
  const text = `${pixels}px`;
  if (row.style.height !== text) row.style.height = text;
}
