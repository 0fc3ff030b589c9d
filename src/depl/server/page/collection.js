// The open documents as a list, each with its labels.

import { $, code, count, debounced, h, plural, showTrouble, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { bandIcon } from "./bands.js";
import { labelAll } from "./batches.js";
import { Desk } from "./desk.js";
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
  #retry = null;
  #pager = new Pager($("documents-pager"), 25, () => this.#draw());

  constructor(desk, suggest) {
    this.#desk = desk;
    this.#suggest = suggest;
    desk.addEventListener("opened", () => this.#opened());
    suggest.list.verdicts.addEventListener("decided", () => this.#draw());
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
    $("documents-search").value = ""; // what was opened is shown, with what is beside it
    $("documents-sort").value = "file";
    this.#pager.go(this.#desk.at - (this.#desk.at % this.#pager.size));
    if (!$("view-documents").hidden) this.show();
  }

  /** Shows the list, and asks for the labels of documents that have none yet. */
  async show() {
    $("documents-title").textContent = plural(this.#desk.documents.length, "document");
    this.#draw();
    this.leave();
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
      if (error.name === "AbortError") return;
      showTrouble($("documents-trouble"), error, () => this.show());
      if (error.after) this.#retry = setTimeout(() => this.show(), 1000 * error.after);
    }
  }

  /** The list is left; what is labelled stays labelled. */
  leave() {
    this.#working?.abort();
    clearTimeout(this.#retry);
  }

  #tell(done, all) {
    const bar = $("documents-progress");
    bar.hidden = done === all;
    bar.max = all;
    bar.value = done;
    bar.textContent = `${done} of ${all}`;
    const labelled = done === all ? this.#desk.documents.filter(({ labels }) => labels) : [];
    const none = labelled.filter((one) => !this.#suggest.taken(one).length).length;
    const without = none ? `; ${plural(none, "document")} without a label` : "";
    const changed = labelled.filter((one) => this.#fresh(one).size).length;
    const learnt = changed ? ` What depl has learnt brings new labels to ${count(changed)} of them.` : "";
    $("documents-state").textContent =
      done === all
        ? `Labels suggested for all ${plural(all, "document")}${without}.${learnt}`
        : `Labels suggested for ${count(done)} of ${count(all)} documents…`;
    $("documents-sort").querySelector("[value=new]").hidden = !changed;
    for (const id of ["documents-csv", "documents-json"]) $(id).disabled = done < all;
  }

  /** The labels that are suggested since the run has learnt, and were not before: how likely, by id. */
  #fresh(one) {
    if (!one.labels || !one.before) return new Map();
    const least = this.#suggest.threshold.value;
    const known = one.before.filter(({ probability }) => probability >= least).map(({ id }) => id);
    const now = this.#suggest.taken(one).filter(({ decision }) => !decision);
    const fresh = now.filter(({ id }) => !known.includes(id));
    return new Map(fresh.map(({ id, probability }) => [id, probability]));
  }

  /** The documents that the search finds, in the order that is asked for. */
  #found() {
    const words = $("documents-search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (one) => {
      if (!words.length) return true;
      const taken = one.labels ? this.#suggest.taken(one) : [];
      const names = taken.map(({ id, name }) => `${name}\n${id}`);
      const all = `${one.name}\n${one.text}\n${names.join("\n")}`.toLowerCase();
      return words.every((word) => all.includes(word));
    };
    const found = this.#desk.documents.map((one, i) => ({ one, i })).filter(({ one }) => has(one));
    const sure = ({ one }) => one.labels?.[0]?.probability ?? 0;
    const { value: order } = $("documents-sort");
    if (order === "unsure") found.sort((a, b) => sure(a) - sure(b));
    const surest = new Map(found.map(({ one }) => [one, Math.max(0, ...this.#fresh(one).values())]));
    if (order === "new") found.sort((a, b) => surest.get(b.one) - surest.get(a.one));
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
    const taken = this.#suggest.taken(one);
    if (!taken.length) return h("p", { class: "muted" }, "No label is sure enough.");
    const fresh = this.#fresh(one);
    const chip = ({ id, name, band, probability, decision }) => {
      const said = decision || probability === undefined ? null : this.#suggest.said(probability);
      return h(
        "li",
        { class: decision ? "tag decided" : "tag" },
        decision ? h("span", { role: "img", "aria-label": decision, title: decision }, "✓") : bandIcon(band),
        name,
        code({ id, name }),
        said === null ? null : h("span", { class: "number muted" }, said),
        !decision && fresh.has(id) ? h("b", { class: "fresh" }, "new") : null,
      );
    };
    const more = taken.length - SHOWN_LABELS;
    const first = new Set([...taken].sort((a, b) => fresh.has(b.id) - fresh.has(a.id)).slice(0, SHOWN_LABELS));
    return h(
      "ul",
      { class: "tag-list", "aria-label": `Labels of ${one.name}` },
      ...taken.filter((label) => first.has(label)).map(chip),
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
      .map((one) => {
        const { id, source } = Desk.known(one);
        return { text: one.text, id, source: source.slice(-500) || null };
      });
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
