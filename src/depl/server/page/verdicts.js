// What people decide about labels of a document: accept, reject, add; each can be taken back.

import { $, debounced, h, plural, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { Desk } from "./desk.js";
import { digest, keep, recall } from "./drafts.js";
import { readable } from "./editor.js";

const WAIT = 150; // milliseconds without a keystroke before the labels are searched
const FOUND = 8; // labels that a search shows
const KEPT = "decisions";
const MOST_KEPT = 500; // documents whose decisions are still shown after a reload

const VERBS = { accepted: "Accepted", rejected: "Rejected", added: "Added" };

/** A key under which a decision counts once; randomUUID exists on secure pages only. */
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (x) => x.toString(16).padStart(2, "0")).join("");

/** Whether a label is in the list, and not hidden by the threshold. */
const isSeen = (id) => [...$("list").children].some((item) => item.dataset.id === id && !item.hidden);

/** Events: "decided" when something was decided about the current document, or taken back. */
export class Verdicts extends EventTarget {
  #editor;
  #given = new Map(); // by digest of a text: {number, verdict, label} by label id
  #shown = new Map(); // probabilities of the labels that are suggested, by id
  #waiting = new Set(); // ids of labels that a request is under way for
  #digests = new WeakMap(); // of open documents: a list of thousands asks for them often

  constructor(editor) {
    super();
    this.#editor = editor;
    this.#remember();
    new LabelSearch((label) => this.decide(label, isSeen(label.id) ? "accepted" : "added"));
    // Of all rows, only the one with the focus has buttons that Tab stops at.
    $("list").addEventListener("focusin", (event) => {
      for (const one of $("list").querySelectorAll(".verdict button")) {
        one.tabIndex = one.closest("li") === event.target.closest("li") ? 0 : -1;
      }
    });
  }

  /** Brings back what was decided before the page was loaded. */
  async #remember() {
    for (const [key, given] of (await recall(KEPT)) ?? []) {
      if (!this.#given.get(key)?.size) this.#given.set(key, new Map(given));
    }
    this.refresh();
  }

  /** Takes over what is kept about a document: decisions of `/v1/feedback`, the latest first. */
  restore(text, decisions) {
    const given = new Map();
    for (const { label, name, number, verdict, undone } of [...decisions].reverse()) {
      if (!undone) given.set(label, { number, verdict, label: { id: label, name: name ?? label } });
    }
    this.#given.set(digest(text), given);
  }

  /**
   * The labels of a document as far as they are known: what is suggested from a probability on and
   * was not rejected, and what was accepted or added. `decision` says which, and is empty else.
   */
  taken(document, least) {
    const { text, labels } = document;
    if (!this.#digests.has(document)) this.#digests.set(document, digest(text));
    const given = this.#given.get(this.#digests.get(document)) ?? new Map();
    const there = new Set(labels.map(({ id }) => id));
    const added = [...given.values()].map(({ label }) => label).filter(({ id }) => !there.has(id));
    const decided = (label) => ({ ...label, decision: given.get(label.id)?.verdict ?? "" });
    const counts = ({ decision, probability }) =>
      decision ? decision !== "rejected" : probability >= least;
    return [...labels, ...added].map(decided).filter(counts);
  }

  /** The two buttons beside a suggestion. */
  buttons(label) {
    const button = (verdict, sign, name) => {
      const about = { "data-verdict": verdict, "aria-pressed": false, "aria-label": name, title: name };
      const act = () => this.decide(label, verdict);
      return h("button", { type: "button", tabindex: -1, ...about, onclick: act }, sign);
    };
    return h(
      "div",
      { class: "verdict" },
      button("accepted", "✓", `Accept ${label.name}`),
      button("rejected", "✗", `Reject ${label.name}`),
    );
  }

  /** The suggestions have changed: shows what was decided about them, and what was added. */
  refresh(labels) {
    if (labels) this.#shown = new Map(labels.map(({ id, probability }) => [id, probability]));
    const given = this.#own();
    for (const item of $("list").children) {
      const verdict = given.get(item.dataset.id)?.verdict;
      for (const button of item.querySelectorAll(".verdict button")) {
        const pressed = button.dataset.verdict === (verdict === "added" ? "accepted" : verdict);
        button.setAttribute("aria-pressed", pressed);
      }
    }
    const added = [...given.values()].filter(({ verdict }) => verdict === "added");
    $("added").replaceChildren(...added.map(({ label }) => this.#chip(label)));
    $("added-box").hidden = !this.#editor.text.trim();
  }

  /** Keeps a decision about the current document; the same once more takes it back. */
  async decide(label, verdict, key = newKey()) {
    const text = readable(this.#editor.text);
    if (!text.trim() || this.#waiting.has(label.id)) return;
    const given = this.#own();
    const before = given.get(label.id);
    this.#waiting.add(label.id);
    try {
      if (before?.verdict !== verdict) {
        const probability = this.#shown.get(label.id) ?? null;
        const decision = { key, label: label.id, verdict, probability };
        const { id, source } = Desk.known(this.#editor.desk.current);
        const about = { text, id, source: source.slice(-500) || null };
        const kept = await service.decide({ ...about, decisions: [decision] });
        given.set(label.id, { number: kept.decisions[0].number, verdict, label });
        $("live").textContent = `${VERBS[verdict]}: ${label.name}.`;
      } else {
        given.delete(label.id);
        $("live").textContent = `Taken back: ${label.name}.`;
      }
      if (before) await service.takeBack(before.number);
    } catch (error) {
      if (before) given.set(label.id, before);
      const again = () => this.decide(label, verdict, key);
      const lost = `${error.title} The decision about “${label.name}” was not kept.`;
      toast(error.retry ? lost : wording(error), { name: "Try again", act: again });
    }
    this.#waiting.delete(label.id);
    this.refresh();
    const latest = [...this.#given].filter(([, some]) => some.size).slice(-MOST_KEPT);
    keep(KEPT, latest.map(([digested, some]) => [digested, [...some]]));
    this.dispatchEvent(new Event("decided"));
  }

  #own() {
    const key = digest(this.#editor.text);
    if (!this.#given.has(key)) this.#given.set(key, new Map());
    return this.#given.get(key);
  }

  #chip(label) {
    const remove = () => this.decide(label, "added");
    const about = { type: "button", class: "chip", "aria-label": `Take back ${label.name}` };
    return h("li", {}, h("button", { ...about, onclick: remove }, label.name, " ", "✕"));
  }
}

/** A field that finds labels by any of their names while one types; arrows choose, Enter takes. */
class LabelSearch {
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
      this.#show(labels);
      $("live").textContent = labels.length ? `${plural(labels.length, "label")} found.` : "";
      $("attach-none").hidden = labels.length > 0;
      $("attach-none").textContent = labels.length ? "" : `No label has “${search}” in its names.`;
    } catch (error) {
      if (error.name !== "AbortError") toast(wording(error));
    }
  }

  #show(labels) {
    this.#found = labels;
    const option = (label, i) => {
      const take = (event) => {
        event.preventDefault(); // the field keeps the focus
        this.#choose(i);
      };
      const about = { id: `attach-${i}`, role: "option", "aria-selected": false, onmousedown: take };
      const id = label.id === label.name ? null : h("small", { class: "muted" }, label.id);
      return h("li", about, label.name, " ", id);
    };
    $("attach-options").replaceChildren(...labels.map(option));
    $("attach-options").hidden = !labels.length;
    $("attach").setAttribute("aria-expanded", labels.length > 0);
    this.#move(labels.length ? 0 : -1);
  }

  #move(to) {
    this.#at = to;
    [...$("attach-options").children].forEach((option, i) => {
      option.setAttribute("aria-selected", i === to);
    });
    if (to < 0) $("attach").removeAttribute("aria-activedescendant");
    else $("attach").setAttribute("aria-activedescendant", `attach-${to}`);
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
    $("attach").value = "";
    $("attach-none").hidden = true;
    this.#show([]);
    this.#take(label);
  }
}
