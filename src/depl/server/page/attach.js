// The field that adds a label: it finds labels by any of their names while one types.

import { $, debounced, h, otherNameWith, plural, toast, wording } from "./dom.js";
import { service } from "./api.js";

const WAIT = 150; // milliseconds without a keystroke before the labels are searched
const FOUND = 8; // labels that a search shows

/** A field that finds labels by any of their names while one types; arrows choose, Enter takes. */
export class LabelSearch {
  #found = [];
  #at = -1;
  #searching = null;
  #take;

  constructor(take) {
    this.#take = take;
    const field = $("attach");
    const soon = debounced(() => this.#search(field.value.trim()), WAIT);
    field.addEventListener("input", soon);
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("blur", () => this.#show([]));
  }

  async #search(search) {
    this.#searching?.abort();
    $("attach-none").hidden = true;
    if (!search) return this.#show([]);
    const searching = (this.#searching = new AbortController());
    try {
      const { labels } = await service.labels({ search, limit: FOUND }, searching.signal);
      this.#show(labels, search);
      $("live").textContent = labels.length ? `${plural(labels.length, "label")} found.` : "";
      $("attach-none").hidden = labels.length > 0;
      $("attach-none").textContent = labels.length ? "" : `No label has “${search}” in its names.`;
    } catch (error) {
      if (error.name !== "AbortError") toast(wording(error));
    }
  }

  /** What was searched for one document is not meant for the next. */
  clear() {
    this.#searching?.abort();
    $("attach").value = "";
    $("attach-none").hidden = true;
    this.#show([]);
  }

  #show(labels, search = "") {
    this.#found = labels;
    const option = (label, i) => {
      const take = (event) => {
        event.preventDefault(); // the field keeps the focus
        this.#choose(i);
      };
      const about = { id: `attach-${i}`, role: "option", "aria-selected": false, onmousedown: take };
      const id = label.id === label.name ? null : h("small", { class: "muted" }, label.id);
      const other = otherNameWith(label, search);
      const also = other && h("small", { class: "also" }, `also called ${other}`);
      return h("li", about, label.name, " ", id, also);
    };
    $("attach-options").replaceChildren(...labels.map(option));
    $("attach-options").hidden = !labels.length;
    $("attach").setAttribute("aria-expanded", labels.length > 0);
    if (labels.length) $("attach-options").scrollIntoView({ block: "nearest" });
    this.#move(labels.length ? 0 : -1);
  }

  #move(to) {
    this.#at = to;
    [...$("attach-options").children].forEach((option, i) => {
      option.setAttribute("aria-selected", i === to);
    });
    if (to < 0) return $("attach").removeAttribute("aria-activedescendant");
    $("attach").setAttribute("aria-activedescendant", `attach-${to}`);
    $("attach-options").children[to].scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    const { length } = this.#found;
    if (!length && event.key === "Escape") {
      $("attach").blur(); // even where no suggestion is shown that could have the focus
      $("list").querySelector("li:not([hidden]) button.label[tabindex='0']")?.focus();
      event.stopPropagation();
    }
    if (!length) return;
    if (event.key === "ArrowDown") this.#move((this.#at + 1) % length);
    else if (event.key === "ArrowUp") this.#move((this.#at + length - 1) % length);
    else if (event.key === "Enter") this.#choose(this.#at);
    else if (event.key === "Escape") this.#show([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #choose(i) {
    const label = this.#found[i];
    this.clear();
    this.#take(label);
  }
}
