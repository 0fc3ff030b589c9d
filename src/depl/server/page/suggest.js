// The suggestions: updated while the user types, above a threshold, of one band or of all.

import { $, debounced, h, percent, plural, showTrouble, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { allBands, bandIcon } from "./bands.js";
import { Editor, readable } from "./editor.js";
import { asJson, commaSeparated, copy, download, tabSeparated } from "./export.js";
import { RankedList } from "./list.js";

const K = 30;
const WAIT = 250; // milliseconds without a keystroke before the service is asked
const BATCH = 4; // documents per request when all are exported

/** What the service calls a threshold, in words for people: its name and what it means. */
function inWords(name) {
  const precision = name.match(/^precision (.+)$/)?.[1];
  if (precision) {
    const share = percent(Number(precision));
    return [`${share} correct`, `Labels from here on are correct in about ${share} of cases`];
  }
  const balanced = "The best balance between missing labels and wrong ones";
  return name === "best F1" ? ["Balanced", balanced] : [name, name];
}

export class Suggest {
  #info = null;
  #labels = []; // of the text shown, most likely first
  #band = null;
  #threshold = 0;
  #below = false; // whether those below the threshold are shown
  #asking = null;
  #retry = null;
  #askSoon = debounced(() => this.ask(), WAIT);

  constructor() {
    this.editor = new Editor(() => this.#textChanged(), toast);
    this.list = new RankedList(this.editor);
    const slider = $("threshold");
    slider.addEventListener("input", () => this.#setThreshold(Number(slider.value) / 100));
    $("more").addEventListener("click", () => {
      this.#below = !this.#below;
      this.#show();
    });
    $("copy").addEventListener("click", () => this.#copy());
    $("csv").addEventListener("click", () => this.#download("csv"));
    $("json").addEventListener("click", () => this.#download("json"));
    addEventListener("online", () => this.#retry && this.ask());
    this.editor.show(0);
  }

  get text() {
    return this.editor.text;
  }

  /** A run without fusion has the scores of the linear model: no percentages, no thresholds. */
  get #calibrated() {
    return this.#info === null || this.#info.parts.length > 1;
  }

  get #above() {
    return this.#labels.filter((label) => label.probability >= this.#threshold);
  }

  #said(p) {
    return this.#calibrated ? percent(p) : p.toFixed(2);
  }

  /** Takes over what the service says about itself: its bands and thresholds. */
  inform(info) {
    const first = this.#info === null;
    this.#info = info;
    const marks = Object.entries(info.thresholds ?? {}).sort((a, b) => a[1] - b[1]);
    const preset = ([key, p]) => {
      const [name, title] = inWords(key);
      const pick = () => this.#setThreshold(p, true);
      const about = { type: "button", class: "chip", title, onclick: pick };
      return h("button", about, `${name}:`, " ", h("span", { class: "number" }, percent(p)));
    };
    $("presets").replaceChildren(...marks.map(preset));
    $("ticks").replaceChildren(...marks.map(([, p]) => h("i", { "--at": p })));
    $("threshold-box").hidden = !this.#calibrated;
    this.#drawBands();
    if (!first) return;
    const start = info.thresholds?.["best F1"] ?? 0;
    this.#setThreshold(this.#calibrated ? start : -Infinity, true);
    this.ask(); // for what was typed before the service had introduced itself
  }

  #textChanged() {
    this.list.giveUp();
    clearTimeout(this.#retry);
    if (this.text.trim()) {
      this.#askSoon();
      return;
    }
    this.#asking?.abort();
    this.#labels = [];
    $("trouble").hidden = true;
    this.#busy(false);
    this.#show();
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

  #setThreshold(value, exact = false) {
    this.#threshold = value;
    this.#below = false;
    if (exact) $("threshold").value = Math.round(100 * value);
    $("threshold").setAttribute("aria-valuetext", percent(value));
    $("threshold-value").textContent = percent(value);
    $("results").style.setProperty("--threshold", Math.max(0, value));
    this.#show();
    if (this.#labels.length) this.#announce();
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
      const weak = p < this.#threshold;
      const length = this.#calibrated ? p : (p + 1) / 2;
      return { weak, hidden: weak && !this.#below, length, value: this.#said(p) };
    });
    const hidden = this.#labels.length - this.#above.length;
    $("more").hidden = !hidden;
    $("more").textContent = this.#below
      ? "Hide labels below the threshold"
      : `Show ${plural(hidden, "label")} below the threshold`;
    for (const id of ["copy", "json", "csv"]) $(id).disabled = !this.#above.length;
    if (!failed) $("nothing").replaceChildren(...this.#insteadOfLabels());
    else if (!this.#labels.length) $("nothing").replaceChildren();
  }

  /** What to show when there are no labels. */
  #insteadOfLabels() {
    const [best] = this.#labels;
    if (this.#above.length) return [];
    if (best) {
      const p = best.probability;
      const lower = () => this.#setThreshold(Math.floor(100 * p) / 100, true);
      const said = `No label reaches ${percent(this.#threshold)}. The most likely is `;
      const about = { type: "button", class: "quiet", onclick: lower };
      return [
        h("p", {}, said, h("strong", {}, best.name), ` at ${percent(p)}.`),
        h("button", about, "Lower the threshold"),
      ];
    }
    if (this.text.trim() && this.#asking) {
      return [h("p", {}, "No label fits this text. A longer text may help.")];
    }
    const bars =
      "Click a label to see why it is suggested. " +
      "The bars beside it show how many training documents have this label:";
    const legend = allBands().map(({ id, long }) => h("li", {}, bandIcon(id), long));
    const lead = h("p", { class: "lead" }, "Labels appear here as you type.");
    if (!legend.length) return [lead];
    return [lead, h("p", {}, bars), h("ul", { class: "legend" }, ...legend)];
  }

  #announce() {
    const above = this.#above;
    const from = this.#threshold > 0 ? ` at ${percent(this.#threshold)} or more` : "";
    const [best] = above;
    const first = best && ` Most likely: ${best.name}, ${this.#said(best.probability)}.`;
    const found = best ? plural(above.length, "label") : "No labels";
    $("live").textContent = `${found}${from}.${first ?? ""}`;
  }

  async #copy() {
    try {
      await copy(tabSeparated(this.#above));
      toast(`Copied ${plural(this.#above.length, "label")} as a table.`);
    } catch (error) {
      toast(`Could not copy: ${error.message}`);
    }
  }

  async #download(kind) {
    try {
      const results = await this.#allResults();
      const threshold = this.#calibrated ? this.#threshold : null;
      const about = { run: this.#info?.name ?? null, threshold, band: this.#band };
      if (kind === "csv") download("labels.csv", commaSeparated(results), "text/csv");
      else download("labels.json", asJson(results, about), "application/json");
    } catch (error) {
      toast(`Could not create the file. ${wording(error)}`);
    }
  }

  /** For every open document, the labels above the threshold. */
  async #allResults() {
    const { documents } = this.editor;
    if (documents.length === 1) return [{ name: this.editor.name, labels: this.#above }];
    const texts = documents.filter(({ text }) => text.trim());
    const results = [];
    for (let i = 0; i < texts.length; i += BATCH) {
      toast(`Labelling document ${i + 1} of ${texts.length}…`);
      const some = texts.slice(i, i + BATCH);
      const wanted = { k: K, band: this.#band };
      const answer = await service.predict(some.map(({ text }) => readable(text)), wanted);
      some.forEach(({ name }, j) => {
        const { labels } = answer.results[j];
        results.push({ name, labels: labels.filter((one) => one.probability >= this.#threshold) });
      });
    }
    return results;
  }
}
