// The review: documents one by one, those that teach most first; decided with the keyboard alone.

import { $, count, h, percent, plural, showTrouble, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { mayDecide, visitor } from "./visitor.js";

const KEYS = [
  ["↑ ↓", "choose a label"],
  ["A", "accept it"],
  ["R", "reject it"],
  ["Enter", "why it is suggested"],
  ["/", "add a label; Esc: back"],
  ["D", "done, next document"],
  ["S", "skip"],
  ["B", "document before"],
];

export class Review {
  #desk;
  #list;
  #seen = []; // numbers of the documents that were shown, in their order
  #at = -1; // which of them is shown
  #busy = false;

  constructor(desk, list) {
    this.#desk = desk;
    this.#list = list;
    $("review-done").addEventListener("click", () => this.#finish("done"));
    $("review-skip").addEventListener("click", () => this.#finish("skipped"));
    $("review-back").addEventListener("click", () => this.#back());
    $("review-keys").replaceChildren(
      ...KEYS.map(([key, meaning]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, meaning))),
    );
    document.addEventListener("keydown", (event) => this.#key(event));
  }

  get active() {
    return document.body.classList.contains("reviewing");
  }

  /** Enters the review: the document that was shown last, or the next one. */
  async enter() {
    document.body.classList.add("reviewing");
    $("review-bar").hidden = false;
    const shown = this.#seen[this.#at];
    if (shown === undefined) await this.#next();
    else await this.#show(shown);
  }

  leave() {
    document.body.classList.remove("reviewing");
    $("review-bar").hidden = true;
    $("review-end").hidden = true;
    this.#desk.host(null);
  }

  async #next() {
    await this.#attempt(async () => {
      const { document: found, progress } = await service.review.next();
      this.#tell(progress);
      if (found === null) return this.#end(progress);
      if (this.#seen.at(-1) !== found.number) this.#seen.push(found.number);
      this.#at = this.#seen.length - 1;
      return this.#host(found);
    });
  }

  async #show(number) {
    await this.#attempt(async () => {
      const [found, progress] = await Promise.all([
        service.review.document(number),
        service.review.progress(),
      ]);
      this.#tell(progress);
      await this.#host(found);
    });
  }

  async #host(found) {
    $("review-end").hidden = true;
    $("view-suggest").classList.remove("nothing-left");
    const { decisions } = await service.decisions(found.id);
    this.#list.verdicts.restore(found.text, await Promise.all(decisions.map(withName)));
    const asked = new Set(found.reasons.map(({ id }) => id)); // shown however unlikely they are
    const called = found.id.startsWith("text-") && found.source ? "" : found.id; // made from the text
    const name = [found.source, called].filter(Boolean).join(": ");
    this.#desk.host({ name, text: found.text, source: found.source, id: found.id, asked });
    $("review-name").textContent = name;
    $("review-why").replaceChildren(...because(found, whoElse(decisions)));
    $("review-back").disabled = this.#at <= 0;
    this.#list.verdicts.refresh(); // a label can be added before any is suggested
    scrollTo(0, 0);
    this.#list.whenShown(() => this.#list.focusFirst());
  }

  #tell({ total, done, skipped, by, you }) {
    $("review-progress").max = Math.max(1, total);
    $("review-progress").value = done + skipped;
    const left = skipped ? `, ${count(skipped)} skipped` : "";
    $("review-count").textContent = `${count(done)} of ${count(total)} done${left}`;
    const others = by.filter(({ name }) => name && name !== you);
    const own = by.find(({ name }) => name === you)?.done ?? 0;
    const said = others.map(({ name, done: n }) => `${name} ${count(n)}`);
    $("review-others").textContent = said.length ? `you ${count(own)}, ${said.join(", ")}` : "";
  }

  /** Nothing is left, or nothing was ever there. */
  #end({ total, done, skipped }) {
    this.#at = this.#seen.length;
    const again = h("a", { href: "#suggest" }, "Open a table");
    const empty = [
      h("p", { class: "lead" }, "Nothing waits to be reviewed."),
      h("p", {}, again, " and press “Review these”, or put documents into the queue with ", h("code", {}, "depl review RUN new.csv"), "."),
    ];
    const finished = [
      h("p", { class: "lead" }, `All done: ${plural(done, "document")} reviewed, ${count(skipped)} skipped.`),
      h("p", {}, "What you decided is kept. Whoever runs the service lets the run learn from it with ", h("code", {}, "depl learn RUN"), ", unless it does so by itself."),
    ];
    if (!$("nav-documents").hidden) {
      const list = h("a", { href: "#documents" }, "Back to your documents");
      finished.push(h("p", {}, list, ": they have the labels that you decided about, to take with you as CSV or JSON."));
    }
    this.#showInstead(total ? finished : empty);
  }

  /** Words in the place of a document: what is open elsewhere is none of the review. */
  #showInstead(words) {
    this.#desk.host({ name: "review", text: "", id: null });
    $("view-suggest").classList.add("nothing-left");
    $("review-name").textContent = "";
    $("review-why").replaceChildren();
    $("review-back").disabled = !this.#seen.length;
    $("review-end").replaceChildren(...words);
    $("review-end").hidden = false;
  }

  async #finish(state) {
    const number = this.#seen[this.#at];
    if (number === undefined || this.#busy) return;
    const marked = await this.#attempt(async () => {
      this.#tell(await service.review.mark(number, state));
      const said = state === "done" ? "Done." : "Skipped.";
      $("live").textContent = `${said} ${$("review-count").textContent}.`;
    });
    if (!marked) return;
    if (this.#at < this.#seen.length - 1) {
      this.#at += 1;
      await this.#show(this.#seen[this.#at]);
    } else await this.#next();
  }

  async #back() {
    if (this.#at <= 0) return;
    this.#at -= 1;
    await this.#show(this.#seen[this.#at]);
  }

  /** Whether it went well. */
  async #attempt(act) {
    if (this.#busy) return false;
    this.#busy = true;
    try {
      await act();
      return true;
    } catch (error) {
      const again = () => this.enter();
      if (this.#desk.guest?.text) {
        toast(wording(error), error.retry ? { name: "Try again", act: again } : null);
      } else {
        const trouble = h("div", { class: "trouble" });
        showTrouble(trouble, error, again);
        this.#showInstead([trouble]);
      }
      return false;
    } finally {
      this.#busy = false;
    }
  }

  /** Letters count where nothing can be typed, and only while no dialog is open. */
  #key(event) {
    const typing = event.target.matches("input:not([type=range]), select, textarea:not([readonly])");
    const other = event.ctrlKey || event.metaKey || event.altKey;
    if (!this.active || typing || other || document.querySelector("dialog[open]")) return;
    const acts = {
      a: () => this.#list.decide("accepted"),
      r: () => this.#list.decide("rejected"),
      d: () => this.#finish("done"),
      s: () => this.#finish("skipped"),
      b: () => this.#back(),
      "/": () => $("attach").focus(),
    };
    if (!event.target.closest("#list, #text, input")) {
      acts.arrowdown = acts.arrowup = () => this.#list.focusStop();
    }
    const act = acts[event.key.toLowerCase()];
    if (!act || !mayDecide() || this.#busy) return; // what is typed is meant for the next document
    event.preventDefault();
    act();
  }
}

/** Who else has decided about labels of a document, in words. */
function whoElse(decisions) {
  const others = decisions.filter(({ by, undone }) => !undone && by && by !== visitor().name);
  return [...new Set(others.map(({ by }) => by))].sort().join(" and ");
}

/** Why this document comes now. */
function because({ reasons, missing, state, by, looking }, others) {
  const notes = [];
  if (others) notes.push(`${others} decided about labels outlined below. `);
  if (looking) notes.push(`${looking} is looking at it as well. `);
  if (state !== "open") notes.push(`${state === "done" ? "Done" : "Skipped"}${by ? ` by ${by === visitor().name ? "you" : by}` : ""}. `);
  const more = Math.round(missing);
  if (!reasons.length && !more) return [...notes, "depl is sure about this one; there is little to learn."];
  const label = ({ name, probability, rare }, i) => [
    i ? ", " : "",
    h("b", {}, name),
    ` (${percent(probability)}${rare ? ", a rare label" : ""})`,
  ];
  const unsure = reasons.length ? ["depl is not sure about ", ...reasons.flatMap(label)] : [];
  const lacking = more ? [`about ${plural(more, "label")} may be missing here`] : [];
  return [...notes, "Why this one: ", ...unsure, unsure.length && more ? "; " : "", ...lacking, "."];
}

/** A decision with the label's name, where that is not among the suggestions. */
async function withName(decision) {
  if (decision.verdict !== "added" || decision.undone) return decision;
  const { name } = await service.label(decision.label).catch(() => ({ name: decision.label }));
  return { ...decision, name };
}
