// The label set: search, browse by frequency band, and a page for each label.

import { $, count, debounced, h, labelAddress, plural, showTrouble, trainedOn } from "./dom.js";
import { service } from "./api.js";
import { allBands, bandIcon, bandOf, levelOf } from "./bands.js";
import { readable } from "./editor.js";
import { reasons, spansOf } from "./why.js";

const PAGE = 20;

export class Labels {
  #band = "";
  #offset = 0;
  #total = 0;
  #asking = null;
  #info = null;
  #edit;
  #editor;
  #shown = null; // id of the label whose card is shown

  constructor(edit, editor) {
    this.#edit = edit;
    this.#editor = editor;
    const again = debounced(() => this.#from(0), 200);
    $("search").addEventListener("input", again);
    $("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#from(0);
    });
    $("sort").addEventListener("change", () => this.#from(0));
    $("page-back").addEventListener("click", () => this.#from(this.#offset - PAGE));
    $("page-on").addEventListener("click", () => this.#from(this.#offset + PAGE));
    $("add").addEventListener("click", () => edit.add());
    $("undo").addEventListener("click", () => edit.undo());
  }

  inform(info) {
    this.#info = info;
    $("add").hidden = !info.writable;
    $("undo").hidden = !info.writable;
    this.#drawHistogram();
  }

  #drawHistogram() {
    const most = Math.max(...allBands().map((band) => band.labels), 1);
    const bar = ({ id, name, long, level, labels: n }) => {
      const pick = () => this.#pick(this.#band === id ? "" : id);
      const meaning = `${plural(n, "label")} with ${long}`;
      const about = { "aria-pressed": this.#band === id, "aria-label": meaning, onclick: pick };
      return h(
        "button",
        { type: "button", ...about },
        bandIcon(id),
        h("span", {}, name),
        h("span", { class: `bar band-${level}`, "--p": n / most }, h("i")),
        h("span", { class: "number" }, count(n)),
      );
    };
    const had = [...$("histogram").children].indexOf(document.activeElement);
    const title = h("p", { class: "muted" }, "Labels by number of training documents");
    $("histogram").replaceChildren(title, ...allBands().map(bar));
    if (had > 0) $("histogram").children[had].focus();
  }

  #pick(band) {
    this.#band = band;
    this.#drawHistogram();
    this.#from(0);
  }

  /** Shows the list where the user left it. */
  browse() {
    this.#shown = null;
    return this.#from(this.#offset);
  }

  refresh() {
    if (this.#shown !== null) return this.card(this.#shown);
    return $("view-labels").hidden ? null : this.browse();
  }

  async #from(offset) {
    this.#asking?.abort();
    const asking = (this.#asking = new AbortController());
    this.#offset = Math.max(0, offset);
    const search = $("search").value.trim();
    const query = { search, sort: $("sort").value, offset: this.#offset, limit: PAGE };
    if (this.#band) query.band = this.#band;
    $("rows").setAttribute("aria-busy", "true");
    try {
      const answer = await service.labels(query, asking.signal);
      $("browse-trouble").hidden = true;
      this.#total = answer.total;
      $("rows").replaceChildren(...answer.labels.map(row));
      this.#place(answer.labels.length);
    } catch (error) {
      if (error.name === "AbortError") return;
      showTrouble($("browse-trouble"), error, () => this.#from(offset));
    }
    $("rows").setAttribute("aria-busy", "false");
  }

  #place(shown) {
    const band = bandOf(this.#band);
    const within = band ? ` with ${band.long}` : "";
    const some = `${plural(this.#total, "label")}${within}`;
    $("found").textContent = this.#total ? some : `No labels${within} found.`;
    const range = `${count(this.#offset + 1)}–${count(this.#offset + shown)}`;
    $("page-place").textContent = shown ? range : "";
    $("page-back").disabled = this.#offset === 0;
    $("page-on").disabled = this.#offset + shown >= this.#total;
  }

  async card(id) {
    this.#shown = id;
    const box = $("label-card");
    if (box.dataset.id !== id) {
      box.replaceChildren(h("div", { class: "ghost" }), h("div", { class: "ghost tall" }));
    }
    box.dataset.id = id;
    try {
      const label = await service.label(id);
      if (this.#shown !== id) return;
      box.replaceChildren(...this.#cardOf(label));
      document.title = `${label.name} – depl`;
    } catch (error) {
      const trouble = h("div", { class: "trouble" });
      showTrouble(trouble, error, () => this.card(id));
      box.replaceChildren(back(), trouble);
    }
  }

  #cardOf(label) {
    const actions = h("div", { class: "actions" });
    if (this.#info?.writable) {
      const button = { type: "button", class: "quiet" };
      actions.append(
        h("button", { ...button, onclick: () => this.#edit.change(label) }, "Edit"),
        h("button", { ...button, onclick: () => this.#edit.remove(label) }, "Remove"),
      );
    }
    const names = label.alt_names.join(", ");
    const title = h("h2", { tabindex: "-1", id: "label-name" }, label.name);
    const facts = ` ${trainedOn(label)} · ID `;
    const pieces = [
      back(),
      h("div", { class: "card-head" }, title, actions),
      names ? h("p", { class: "others" }, `Also called ${names}`) : null,
      h("p", { class: "muted facts" }, bandIcon(label.band), facts, h("code", {}, label.id)),
      h("h3", {}, "Description"),
      h("p", { class: "description" }, label.description || "No description."),
      this.#editor.text.trim() ? this.#inDocument(label) : null,
      h("div", { class: "two" }, keywords(label), nearest(label)),
    ];
    return pieces.filter((piece) => piece !== null);
  }

  /** Whether and why the label fits the open document, suggested or not. */
  #inDocument(label) {
    const block = h("div", { class: "in-document" });
    const ask = async () => {
      const { text } = this.#editor;
      try {
        const found = await service.explain(readable(text), label.id);
        const jump = (start) => {
          location.hash = "#suggest";
          setTimeout(() => {
            this.#editor.light(spansOf(found, text));
            this.#editor.reveal(start, true);
          });
        };
        const panel = h("div", { class: "why" }, ...reasons(found, text, jump));
        block.replaceChildren(h("h3", { tabindex: "-1" }, "In the current document"), panel);
        block.firstChild.focus();
      } catch (error) {
        block.replaceChildren(h("div", { class: "trouble" }));
        showTrouble(block.firstChild, error, ask);
      }
    };
    const question = "Does it fit the current document?";
    block.append(h("button", { type: "button", class: "quiet", onclick: ask }, question));
    return block;
  }
}

const back = () => h("p", { class: "back" }, h("a", { href: "#labels" }, "← All labels"));

function row(label) {
  const words = label.keywords.map((word) => h("li", {}, word));
  const seen = plural(label.training_documents, "document");
  const head = [
    bandIcon(label.band),
    h("a", { href: labelAddress(label.id) }, label.name),
    h("span", { class: "muted number" }, seen),
  ];
  const about = words.length
    ? h("ul", { class: "tags", "aria-label": "Keywords" }, ...words)
    : h("p", { class: "muted clamp" }, label.description);
  return h("li", {}, h("div", { class: "row-head" }, ...head), about);
}

function keywords(label) {
  const block = h("section", {}, h("h3", {}, "Keywords"));
  if (!label.keywords.length) {
    const none =
      "No keywords. They are learned from training documents with this label; " +
      "without them, its names and description are used.";
    block.append(h("p", { class: "muted" }, none));
    return block;
  }
  const most = Math.max(...label.keywords.map((word) => Math.abs(word.weight)), 1e-9);
  const line = ({ term, weight }) => {
    const look = { class: `bar band-${levelOf(label.band)}`, "--p": Math.abs(weight) / most };
    const bar = h("span", { ...look, "aria-hidden": true }, h("i"));
    const number = h("span", { class: "number muted" }, weight.toFixed(2));
    return h("li", {}, h("span", {}, term), bar, number);
  };
  block.append(h("ol", { class: "weights" }, ...label.keywords.map(line)));
  return block;
}

function nearest(label) {
  const block = h("section", {}, h("h3", {}, "Similar labels"));
  if (!label.nearest.length) block.append(h("p", { class: "muted" }, "No similar labels."));
  const line = (other) => {
    const link = h("a", { href: labelAddress(other.id) }, other.name);
    const similar = h("span", { class: "number muted" }, other.similarity.toFixed(2));
    return h("li", {}, bandIcon(other.band), link, similar);
  };
  block.append(h("ol", { class: "close" }, ...label.nearest.map(line)));
  return block;
}
