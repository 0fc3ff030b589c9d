// The ranked labels; below an opened one, why it is suggested.

import { $, code, h, moveByArrows, plural, showTrouble } from "./dom.js";
import { service } from "./api.js";
import { bandIcon, levelOf } from "./bands.js";
import { readable } from "./editor.js";
import { Verdicts } from "./verdicts.js";
import { explanation, spansOf, summary } from "./why.js";

export class RankedList {
  #items = new Map(); // rows by the labels' ids
  #labels = new Map(); // labels that are shown, by their ids
  #made = 0; // rows so far, for element ids: those of labels may contain spaces
  #open = null; // id of the label that is explained
  #explaining = null;
  #editor;
  #keepTabStop;
  #whenShown = null;

  constructor(editor) {
    this.#editor = editor;
    this.verdicts = new Verdicts(editor);
    this.#keepTabStop = moveByArrows($("list"), "button.label");
    document.addEventListener("keydown", (event) => {
      const elsewhere = document.querySelector("dialog[open]");
      if (event.key === "Escape" && this.#open !== null && !elsewhere) this.close();
    });
  }

  /**
   * Updates the rows, reusing those of labels that remain, so that nothing jumps.
   *
   * `look(label)` returns {weak, hidden, length, value}: how the row of a label should look.
   */
  show(labels, look) {
    const wanted = new Set(labels.map((label) => label.id));
    this.#labels = new Map(labels.map((label) => [label.id, label]));
    for (const [id, item] of this.#items) {
      if (wanted.has(id)) continue;
      item.remove();
      this.#items.delete(id);
    }
    if (this.#open !== null && !wanted.has(this.#open)) this.close();
    const focused = document.activeElement;
    labels.forEach((label, i) => {
      const item = this.#items.get(label.id) ?? this.#row(label);
      const { weak, hidden, length, value } = look(label);
      item.classList.toggle("weak", weak);
      item.hidden = hidden && label.id !== this.#open;
      item.style.setProperty("--p", Math.min(1, Math.max(0, length)));
      item.querySelector(".p").textContent = value;
      const there = $("list").children[i] ?? null;
      if (there !== item) $("list").insertBefore(item, there);
    });
    // An element that is moved loses the focus.
    if (focused !== document.activeElement && focused?.isConnected) focused.focus();
    this.#keepTabStop();
    this.verdicts.refresh(labels);
    if (!labels.length) return;
    this.#whenShown?.();
    this.#whenShown = null;
  }

  /** Calls `act` once, when the labels of the document that is being loaded are there. */
  whenShown(act) {
    this.#whenShown = act;
  }

  /** The first label gets the focus, unless somebody is typing: letters decide about labels. */
  focusFirst() {
    if (document.activeElement === $("attach")) return;
    // On a phone the document is above the labels, and is what is looked at first.
    $("list").querySelector("li:not([hidden]) button.label")?.focus({ preventScroll: true });
  }

  /** The label that had the focus last gets it again: somebody has clicked elsewhere. */
  focusStop() {
    $("list").querySelector("li:not([hidden]) button.label[tabindex='0']")?.focus();
  }

  /** Decides about the label that has the focus, and goes on to the next; without one, gives it. */
  decide(verdict) {
    const item = document.activeElement?.closest?.("#list > li");
    const label = item && this.#labels.get(item.dataset.id);
    if (!label) return this.focusStop();
    this.verdicts.decide(label, verdict);
    let next = item.nextElementSibling;
    while (next?.hidden) next = next.nextElementSibling;
    (next ?? item).querySelector("button.label").focus();
  }

  /** Opens the row of a label and moves the focus there; returns whether there is one. */
  goTo(id) {
    const item = this.#items.get(id);
    if (!item) return false;
    this.close();
    item.hidden = false;
    this.explain(id);
    item.querySelector("button.label").focus();
    return true;
  }

  close() {
    this.giveUp();
    const item = this.#items.get(this.#open);
    this.#open = null;
    this.#editor.dim();
    if (!item) return;
    const why = item.querySelector(".why");
    const button = item.querySelector("button.label");
    if (why.contains(document.activeElement)) button.focus();
    button.setAttribute("aria-expanded", "false");
    why.hidden = true;
    why.replaceChildren();
  }

  /** The text has changed: an explanation being loaded is no longer needed. */
  giveUp() {
    this.#explaining?.abort();
  }

  /** Loads the explanation of the open label again. */
  refresh() {
    if (this.#open !== null) this.explain(this.#open);
  }

  async explain(id) {
    const item = this.#items.get(id);
    const why = item.querySelector(".why");
    const text = readable(this.#editor.text);
    this.#open = id;
    this.giveUp();
    const explaining = (this.#explaining = new AbortController());
    item.querySelector("button.label").setAttribute("aria-expanded", "true");
    if (why.hidden) {
      why.replaceChildren(h("div", { class: "ghost" }), h("div", { class: "ghost tall" }));
    }
    why.hidden = false;
    try {
      const found = await service.explain(text, id, explaining.signal);
      if (explaining.signal.aborted) return;
      const jump = (start) => this.#editor.reveal(start, true);
      why.replaceChildren(...explanation(found, text, jump));
      const spans = spansOf(found, text);
      this.#editor.light(spans);
      if (spans.length) this.#editor.reveal(Math.min(...spans.map((span) => span.start)));
      $("live").textContent = summary(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      const box = h("div", { class: "trouble" });
      showTrouble(box, error, () => this.explain(id));
      why.replaceChildren(box);
    }
  }

  #row(label) {
    const id = `why-${(this.#made += 1)}`;
    const open = () => {
      const opened = this.#open === label.id;
      this.close();
      if (!opened) this.explain(label.id);
    };
    const seen = plural(label.training_documents, "doc");
    const state = { "aria-expanded": false, "aria-controls": id, onclick: open };
    const button = h(
      "button",
      { type: "button", class: "label", ...state },
      bandIcon(label.band),
      h("span", { class: "name" }, label.name, code(label)),
      h("span", { class: "seen muted number" }, seen),
      h("span", { class: "p number" }),
      h("span", { class: `bar band-${levelOf(label.band)}`, "aria-hidden": true }, h("i")),
    );
    const about = { role: "region", "aria-label": `Why ${label.name} is suggested` };
    const why = h("div", { id, class: "why", hidden: true, ...about });
    const item = h("li", { "data-id": label.id }, button, this.verdicts.buttons(label), why);
    this.#items.set(label.id, item);
    return item;
  }
}
