// The open documents as a list, each with its labels.

import { $, count, debounced, h, plural, showTrouble, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { bandIcon } from "./bands.js";
import { labelAll } from "./batches.js";
import { asJson, commaSeparated, download } from "./export.js";
import { Pager } from "./pager.js";
import { K } from "./suggest.js";

const SHOWN_LABELS = 6; // of a document
const OPENING = 220; // characters of a text
const SENT = 200; // documents that go into the review with one request

/** The beginning of a text, up to the end of a word. */
function openingOf(text) {
  const flat = text.slice(0, 2 * OPENING).replace(/\s+/g, " ").trim();
  return flat.length > OPENING ? `${flat.slice(0, OPENING).replace(/\s\S*$/, "")} …` : flat;
}

export class Collection {
  #desk;
  #suggest;
  #working = null; // what stops the labelling that is under way
  #pager = new Pager($("documents-pager"), 25, () => this.#draw());

  constructor(desk, suggest) {
    this.#desk = desk;
    this.#suggest = suggest;
    desk.addEventListener("opened", () => this.#opened());
    $("documents-search").addEventListener("input", debounced(() => this.#pager.go(0), 150));
    $("documents-sort").addEventListener("change", () => this.#pager.go(0));
    $("documents-find").addEventListener("submit", (event) => event.preventDefault());
    $("documents-csv").addEventListener("click", () => this.#download("csv"));
    $("documents-json").addEventListener("click", () => this.#download("json"));
    $("documents-clear").addEventListener("click", () => $("clear").click());
    $("documents-open").addEventListener("click", () => $("files").click());
    $("documents-review").addEventListener("click", () => this.#review());
  }

  #opened() {
    const { length } = this.#desk.documents;
    $("nav-documents").hidden = length < 2;
    $("nav-documents").replaceChildren("Documents ", h("span", { class: "number" }, count(length)));
    if (length < 2 && location.hash === "#documents") location.hash = "#suggest";
    if (!$("view-documents").hidden) this.show();
  }

  /** Shows the list, and asks for the labels of documents that have none yet. */
  async show() {
    $("documents-title").textContent = plural(this.#desk.documents.length, "document");
    this.#draw();
    this.#working?.abort();
    const working = (this.#working = new AbortController());
    const documents = this.#desk.documents.filter(({ text }) => text.trim());
    const told = (done, all) => {
      if (working.signal.aborted) return;
      this.#tell(done, all);
      this.#draw();
    };
    try {
      await labelAll(documents, { k: K, told, signal: working.signal });
      $("documents-trouble").hidden = true;
    } catch (error) {
      if (error.name !== "AbortError") showTrouble($("documents-trouble"), error, () => this.show());
    }
  }

  /** The list is left; what is labelled stays labelled. */
  leave() {
    this.#working?.abort();
  }

  #tell(done, all) {
    const bar = $("documents-progress");
    bar.hidden = done === all;
    bar.max = all;
    bar.value = done;
    bar.textContent = `${done} of ${all}`;
    const none = this.#desk.documents.filter((one) => one.labels && !this.#above(one).length);
    const without = done === all && none.length ? `; ${plural(none.length, "document")} without a label` : "";
    $("documents-state").textContent =
      done === all
        ? `Labels suggested for all ${plural(all, "document")}${without}.`
        : `Labels suggested for ${count(done)} of ${count(all)} documents…`;
    for (const id of ["documents-csv", "documents-json"]) $(id).disabled = done < all;
  }

  #above({ labels = [] }) {
    return labels.filter(({ probability }) => probability >= this.#suggest.threshold.value);
  }

  /** The documents that the search finds, in the order that is asked for. */
  #found() {
    const words = $("documents-search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (one) => {
      const names = (one.labels ? this.#above(one) : []).map(({ name }) => name);
      const all = `${one.name}\n${one.text}\n${names.join("\n")}`.toLowerCase();
      return words.every((word) => all.includes(word));
    };
    const found = this.#desk.documents.map((one, i) => ({ one, i })).filter(({ one }) => has(one));
    const sure = ({ one }) => one.labels?.[0]?.probability ?? 0;
    if ($("documents-sort").value === "unsure") found.sort((a, b) => sure(a) - sure(b));
    return found;
  }

  #draw() {
    const found = this.#found();
    const part = this.#pager.show(found.length);
    $("documents-list").replaceChildren(
      ...found.slice(...part).map(({ one, i }) => this.#row(one, i)),
    );
    const searched = $("documents-search").value.trim();
    $("documents-found").textContent = searched ? `${plural(found.length, "document")} found.` : "";
  }

  #row(one, i) {
    const open = (event) => {
      event.preventDefault();
      this.#desk.show(i);
      location.hash = "#suggest";
    };
    const opening = openingOf(one.text);
    const link = h("a", { href: "#suggest", class: "document-name", onclick: open }, one.name);
    return h(
      "li",
      {},
      h("p", { class: "document-line" }, link, " ", h("span", { class: "opening" }, opening)),
      this.#labels(one),
    );
  }

  #labels(one) {
    if (!one.text.trim()) return h("p", { class: "muted" }, "There is no text.");
    if (!one.labels) return h("p", { class: "ghost line" });
    const above = this.#above(one);
    if (!above.length) return h("p", { class: "muted" }, "No label is sure enough.");
    const chip = (label) =>
      h(
        "li",
        { class: "tag" },
        bandIcon(label.band),
        label.name,
        h("span", { class: "number muted" }, this.#suggest.said(label.probability)),
      );
    const more = above.length - SHOWN_LABELS;
    return h(
      "ul",
      { class: "tag-list", "aria-label": `Labels of ${one.name}` },
      ...above.slice(0, SHOWN_LABELS).map(chip),
      more > 0 ? h("li", { class: "muted" }, `and ${more} more`) : null,
    );
  }

  async #download(kind) {
    try {
      const results = await this.#suggest.results();
      if (kind === "csv") download("labels.csv", commaSeparated(results), "text/csv");
      else download("labels.json", asJson(results, this.#suggest.about), "application/json");
    } catch (error) {
      toast(`Could not create the file. ${wording(error)}`);
    }
  }

  /** Puts the documents into the queue of the review, and goes there. */
  async #review() {
    const documents = this.#desk.documents
      .filter(({ text }) => text.trim())
      .map(({ name, text, row }) =>
        row ? { text, source: row.slice(-500) } : { text, id: name.slice(0, 200) || null },
      );
    $("documents-review").disabled = true;
    try {
      let added = 0;
      for (let i = 0; i < documents.length; i += SENT) {
        toast(`Putting documents into the review: ${i} of ${documents.length}…`);
        added += (await service.review.add(documents.slice(i, i + SENT))).added;
      }
      const known = documents.length - added;
      const there = known ? ` ${plural(known, "document was", "documents were")} there already.` : "";
      toast(added ? `${plural(added, "document")} to review.${there}` : "All of them were in the review already.");
      location.hash = "#review";
    } catch (error) {
      toast(wording(error));
    }
    $("documents-review").disabled = false;
  }
}
