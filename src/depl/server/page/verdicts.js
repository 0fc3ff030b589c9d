// What people decide about labels of a document: accept, reject, add; each can be taken back.

import { $, h, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { LabelSearch } from "./attach.js";
import { Desk } from "./desk.js";
import { digest, keep, recall } from "./drafts.js";
import { readable } from "./editor.js";
import { visitor } from "./visitor.js";

const KEPT = "decisions";
const MOST_KEPT = 500; // documents whose decisions are still shown after a reload

const VERBS = { accepted: "Accepted", rejected: "Rejected", added: "Added" };

/** A key under which a decision counts once; randomUUID exists on secure pages only. */
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (x) => x.toString(16).padStart(2, "0")).join("");

/** Whether a decision is the visitor's own; what was kept in this browser may not say whose it is. */
const isOwn = ({ by }) => !by || by === visitor().name;

/** Whether a label is in the list, and not hidden by the threshold. */
const isSeen = (id) => [...$("list").children].some((item) => item.dataset.id === id && !item.hidden);

/** What is below a new decision: that of somebody else, whose own came first or last. */
function below(before, by) {
  if (!before) return null;
  return before.by && before.by !== by ? before : (before.under ?? null);
}

/** Events: "decided" when something was decided about the current document, or taken back. */
export class Verdicts extends EventTarget {
  #editor;
  // By digest of a text: {number, verdict, label, by, under} by label id. `under` is what somebody
  // else decided before: it stays, and is in force again when one's own decision is taken back.
  #given = new Map();
  #shown = new Map(); // probabilities of the labels that are suggested, by id
  #waiting = new Set(); // ids of labels that a request is under way for
  #digests = new WeakMap(); // of open documents: a list of thousands asks for them often

  constructor(editor) {
    super();
    this.#editor = editor;
    this.#remember();
    const take = (label) => this.decide(label, isSeen(label.id) ? "accepted" : "added");
    const search = new LabelSearch(take);
    editor.desk.addEventListener("shown", () => search.clear());
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
    for (const { label, name, number, verdict, by, undone } of [...decisions].reverse()) {
      if (undone) continue;
      const under = below(given.get(label), by);
      given.set(label, { number, verdict, label: { id: label, name: name ?? label }, by, under });
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
      const one = given.get(item.dataset.id);
      const verdict = one?.verdict === "added" ? "accepted" : one?.verdict;
      for (const button of item.querySelectorAll(".verdict button")) {
        const pressed = button.dataset.verdict === verdict;
        const others = pressed && !isOwn(one);
        button.setAttribute("aria-pressed", pressed);
        button.classList.toggle("by-others", others);
        button.title = button.getAttribute("aria-label") + (others ? ` (${VERBS[verdict].toLowerCase()} by ${one.by})` : "");
      }
    }
    const added = [...given.values()].filter(({ verdict }) => verdict === "added");
    $("added").replaceChildren(...added.map((one) => this.#chip(one)));
    $("added-box").hidden = !this.#editor.text.trim();
  }

  /**
   * Keeps a decision about the current document; the same once more takes it back. What somebody
   * else decided is never taken back: one agrees with it, or decides otherwise.
   */
  async decide(label, verdict, key = newKey()) {
    const text = readable(this.#editor.text);
    if (!text.trim() || this.#waiting.has(label.id)) return;
    const given = this.#own();
    const before = given.get(label.id);
    const own = before && isOwn(before) ? before : null;
    this.#waiting.add(label.id);
    try {
      if (own?.verdict !== verdict) {
        const probability = this.#shown.get(label.id) ?? null;
        const decision = { key, label: label.id, verdict, probability };
        const { id, source } = Desk.known(this.#editor.desk.current);
        const about = { text, id, source: source.slice(-500) || null };
        const kept = await service.decide({ ...about, decisions: [decision] });
        const [{ number, by }] = kept.decisions;
        given.set(label.id, { number, verdict, label, by, under: below(before, by) });
        $("live").textContent = `${VERBS[verdict]}: ${label.name}.`;
      } else {
        if (own.under) given.set(label.id, own.under);
        else given.delete(label.id);
        $("live").textContent = `Taken back: ${label.name}.`;
      }
      if (own) await service.takeBack(own.number);
    } catch (error) {
      if (before) given.set(label.id, before);
      const again = () => this.decide(label, verdict, key);
      const why = error.status === 500 ? ` ${error.message}` : ""; // such as a disk that is full
      const lost = `${error.title} The decision about “${label.name}” was not kept.${why}`;
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

  #chip(one) {
    const { label, by } = one;
    const remove = () => this.decide(label, isOwn(one) ? "added" : "rejected");
    const name = isOwn(one) ? `Take back ${label.name}` : `Reject ${label.name}, added by ${by}`;
    const about = { type: "button", class: "chip", "aria-label": name, title: name };
    return h("li", {}, h("button", { ...about, onclick: remove }, label.name, " ", "✕"));
  }
}
