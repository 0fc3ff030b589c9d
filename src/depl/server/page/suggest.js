// The suggestions: updated while the user types, above a threshold, of one band or of all.

import { $, debounced, h, percent, plural, showTrouble, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { allBands, bandIcon } from "./bands.js";
import { labelAll } from "./batches.js";
import { keep, recall } from "./drafts.js";
import { Editor, readable } from "./editor.js";
import { asJson, commaSeparated, copy, download, tabSeparated } from "./export.js";
import { RankedList } from "./list.js";
import { Threshold } from "./threshold.js";

export const K = 30; // labels that are asked for
const WAIT = 250; // milliseconds without a keystroke before the service is asked

export class Suggest {
  #info = null;
  #labels = []; // of the text shown, most likely first
  #band = null;
  #below = false; // whether those below the threshold are shown
  #asking = null;
  #retry = null;
  #askSoon = debounced(() => this.ask(), WAIT);

  constructor(desk) {
    this.editor = new Editor(desk, (other) => this.#textChanged(other), toast);
    this.list = new RankedList(this.editor);
    this.threshold = new Threshold(() => this.#moved());
    $("more").addEventListener("click", () => {
      this.#below = !this.#below;
      this.#show();
    });
    $("copy").addEventListener("click", () => this.#copy());
    $("csv").addEventListener("click", () => this.#download("csv"));
    $("json").addEventListener("click", () => this.#download("json"));
    this.list.verdicts.addEventListener("decided", () => this.#permit());
    addEventListener("online", () => this.#retry && this.ask());
    this.#show();
  }

  get text() {
    return this.editor.text;
  }

  /** A run without fusion has the scores of the linear model: no percentages, no thresholds. */
  get calibrated() {
    return this.#info === null || this.#info.parts.length > 1;
  }

  get #above() {
    return this.#labels.filter((label) => label.probability >= this.threshold.value);
  }

  said(p) {
    return this.calibrated ? percent(p) : p.toFixed(2);
  }

  /** Takes over what the service says about itself: its bands and thresholds. */
  inform(info) {
    const first = this.#info === null;
    this.#info = info;
    this.threshold.inform(info.thresholds);
    $("threshold-box").hidden = !this.calibrated;
    this.#drawBands();
    if (!first) return;
    this.#begin(info.thresholds?.["best F1"] ?? 0);
  }

  /** The threshold that was used last, or the run's own; then what was typed in the meantime. */
  async #begin(usual) {
    const own = await recall("threshold");
    this.threshold.set(this.calibrated ? (own ?? usual) : -Infinity);
    this.ask();
  }

  #moved() {
    this.#below = false;
    this.#show();
    if (!this.#labels.length || !this.calibrated) return;
    this.#announce();
    keep("threshold", this.threshold.value);
  }

  #textChanged(other) {
    this.list.giveUp();
    clearTimeout(this.#retry);
    if (this.text.trim() && !other) {
      this.#askSoon();
      return;
    }
    this.#asking?.abort();
    this.#labels = [];
    $("trouble").hidden = true;
    this.#busy(false);
    this.#show(); // nothing: labels of one document must not be decided about for another
    this.ask();
  }

  /** Asks for the labels of the current text; an earlier request still running is cancelled. */
  async ask() {
    const text = readable(this.text);
    this.#asking?.abort();
    clearTimeout(this.#retry);
    this.#retry = null;
    if (!text.trim() || this.#info === null) return;
    const asking = (this.#asking = new AbortController());
    this.#busy(true);
    try {
      const answer = await service.predict([text], { k: K, band: this.#band }, asking.signal);
      this.#labels = answer.results[0].labels;
      $("trouble").hidden = true;
      this.#show();
      this.#announce();
      this.list.refresh();
    } catch (error) {
      if (error.name === "AbortError") return;
      showTrouble($("trouble"), error, () => this.ask());
      this.#show(true);
      if (error.after) this.#retry = setTimeout(() => this.ask(), 1000 * error.after);
    }
    if (asking === this.#asking) this.#busy(false);
  }

  #busy(on) {
    $("progress").classList.toggle("busy", on);
    $("list").setAttribute("aria-busy", on);
    if (!on || this.#labels.length) return;
    $("nothing").replaceChildren(...Array.from({ length: 6 }, () => h("div", { class: "ghost" })));
  }

  #setBand(band) {
    this.#band = band;
    this.#drawBands();
    this.list.close();
    this.ask();
  }

  #drawBands() {
    const button = (band, name, long) => {
      const pick = () => this.#setBand(band);
      const about = { "aria-pressed": this.#band === band, "aria-label": long, onclick: pick };
      const icon = band === null ? null : bandIcon(band);
      return h("button", { type: "button", class: "chip", ...about }, icon, name);
    };
    const some = allBands().map(({ id, name, long }) => button(id, name, `Labels with ${long}`));
    const had = $("band-filter").contains(document.activeElement);
    $("band-filter").replaceChildren(button(null, "All", "All labels"), ...some);
    if (had) $("band-filter").querySelector("[aria-pressed=true]").focus();
  }

  #show(failed = false) {
    this.list.show(this.#labels, (label) => {
      const p = label.probability;
      const weak = p < this.threshold.value;
      const length = this.calibrated ? p : (p + 1) / 2;
      const hidden = weak && !this.#below && !this.editor.desk.current.asked?.has(label.id);
      return { weak, hidden, length, value: this.said(p) };
    });
    const hidden = $("list").querySelectorAll(":scope > li[hidden]").length;
    $("more").hidden = !hidden && !this.#below;
    $("more").textContent = this.#below
      ? "Hide less likely labels"
      : `Show ${plural(hidden, "less likely label")}`;
    this.#permit();
    if (this.calibrated) this.threshold.explain(this.#labels);
    if (!failed) $("nothing").replaceChildren(...this.#insteadOfLabels());
    else if (!this.#labels.length) $("nothing").replaceChildren();
  }

  #permit() {
    for (const id of ["copy", "json", "csv"]) $(id).disabled = !this.taken(this.#shown).length;
  }

  /** The document that is shown, with its labels. */
  get #shown() {
    return { name: this.editor.desk.current.name, text: this.text, labels: this.#labels };
  }

  /** The labels of a document: what was decided, and else what reaches the threshold. */
  taken(document) {
    return this.list.verdicts.taken(document, this.threshold.value);
  }

  /** What to show when there are no labels. */
  #insteadOfLabels() {
    const [best] = this.#labels;
    if (this.#above.length || $("list").querySelector(":scope > li:not([hidden])")) return [];
    if (best) {
      const p = best.probability;
      const lower = () => this.threshold.set(Math.floor(100 * p) / 100);
      const said = `No label is ${percent(this.threshold.value)} sure. The most likely is `;
      const about = { type: "button", class: "quiet", onclick: lower };
      return [
        h("p", {}, said, h("strong", {}, best.name), ` at ${percent(p)}.`),
        h("button", about, "Show it"),
      ];
    }
    if (this.text.trim() && this.#asking) {
      return [h("p", {}, "No label fits this text. A longer text may help.")];
    }
    const bars =
      "Click a label to see why it is suggested. " +
      "The small bars beside it show how many documents it was learned from:";
    const legend = allBands().map(({ id, long }) => h("li", {}, bandIcon(id), long));
    const lead = h("p", { class: "lead" }, "Labels appear here as you type.");
    if (!legend.length) return [lead];
    return [lead, h("p", {}, bars), h("ul", { class: "legend" }, ...legend)];
  }

  #announce() {
    const above = this.#above;
    const from = this.threshold.value > 0 ? ` at ${percent(this.threshold.value)} or more` : "";
    const [best] = above;
    const first = best && ` Most likely: ${best.name}, ${this.said(best.probability)}.`;
    const found = best ? plural(above.length, "label") : "No labels";
    $("live").textContent = `${found}${from}.${first ?? ""}`;
  }

  async #copy() {
    try {
      const taken = this.taken(this.#shown);
      await copy(tabSeparated(taken));
      toast(`Copied ${plural(taken.length, "label")} as a table.`);
    } catch (error) {
      toast(`Could not copy: ${error.message}`);
    }
  }

  async #download(kind) {
    try {
      const results = await this.#allResults();
      if (kind === "csv") download("labels.csv", commaSeparated(results), "text/csv");
      else download("labels.json", asJson(results, this.about), "application/json");
    } catch (error) {
      toast(`Could not create the file. ${wording(error)}`);
    }
  }

  /** For every open document, the labels that are taken. */
  async #allResults() {
    const { documents } = this.editor.desk;
    if (documents.length === 1) return [{ ...this.#shown, labels: this.taken(this.#shown) }];
    const told = (done, all) => toast(`Suggesting labels for document ${done} of ${all}…`);
    return this.results(told);
  }

  /** The labels of all open documents that are taken; `told(done, all)` hears of it. */
  async results(told = () => {}) {
    const documents = this.editor.desk.documents.filter(({ text }) => text.trim());
    await labelAll(documents, { k: K, band: this.#band, told });
    return documents.map((one) => ({ name: one.name, labels: this.taken(one) }));
  }

  /** What the suggestions depend on, for files of them. */
  get about() {
    const threshold = this.calibrated ? this.threshold.value : null;
    return { run: this.#info?.name ?? null, threshold, band: this.#band };
  }
}
