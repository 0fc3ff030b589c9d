// Previous and next page of a list, with where one is and how much there is.

import { count, h } from "./dom.js";

export class Pager {
  #offset = 0;
  #size;
  #moved;

  /** `moved()` is called when another page is asked for. */
  constructor(box, size, moved) {
    this.#size = size;
    this.#moved = moved;
    const button = (name, by) => {
      const act = () => this.go(this.#offset + by * size);
      return h("button", { type: "button", class: "quiet", onclick: act }, name);
    };
    this.back = button("‹ Previous", -1);
    this.place = h("span", { class: "muted number" });
    this.on = button("Next ›", 1);
    box.replaceChildren(this.back, this.place, this.on);
    this.box = box;
  }

  get offset() {
    return this.#offset;
  }

  get size() {
    return this.#size;
  }

  go(offset) {
    this.#offset = Math.max(0, offset);
    this.#moved();
  }

  /** Shows where one is in a list of this length; returns the bounds of the page. */
  show(total) {
    if (this.#offset >= total) this.#offset = Math.max(0, total - 1 - ((total - 1) % this.#size));
    const start = this.#offset;
    const end = Math.min(total, start + this.#size);
    const pages = Math.ceil(total / this.#size);
    const page = Math.floor(start / this.#size) + 1;
    const range = `${count(start + 1)}–${count(end)} of ${count(total)}`;
    this.place.textContent = total ? `${range} · page ${count(page)} of ${count(pages)}` : "";
    this.box.hidden = total <= this.#size;
    this.back.disabled = start === 0;
    this.on.disabled = end >= total;
    return [start, end];
  }
}
