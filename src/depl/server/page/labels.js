// The label set: search, browse by frequency band, and a page for each label.

import { $, aboutLabel, code, count, debounced, h, labelAddress, otherNameWith, plural, showTrouble, trainedOn } from "./dom.js";
import { service } from "./api.js";
import { allBands, bandIcon, bandOf, levelOf } from "./bands.js";
import { readable } from "./editor.js";
import { Pager } from "./pager.js";
import { Tree } from "./tree.js";
import { mayEdit, visitor } from "./visitor.js";
import { reasons, relatives, spansOf } from "./why.js";

const PAGE = 20;

export class Labels {
  #band = "";
  #total = 0;
  #asking = null;
  #pager = new Pager($("labels-pager"), PAGE, () => this.#load());
  #tree = new Tree();
  #asTree = false;
  #edit;
  #editor;
  #shown = null; // id of the label whose card is shown

  constructor(edit, editor) {
    this.#edit = edit;
    this.#editor = editor;
    const again = debounced(() => this.#pager.go(0), 200);
    $("search").addEventListener("input", again);
    $("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#pager.go(0);
    });
    $("sort").addEventListener("change", () => this.#pager.go(0));
    $("as-list").addEventListener("click", () => this.#switch(false));
    $("as-tree").addEventListener("click", () => this.#switch(true));
    $("add").addEventListener("click", () => edit.add());
    $("undo").addEventListener("click", () => edit.undo());
  }

  /** The service has introduced itself, or labels have changed. */
  async inform() {
    this.#drawHistogram();
    this.#tree.forget();
    $("as").hidden = !(await this.#tree.size());
    if (this.#asTree && !$("view-labels").hidden) this.#tree.show();
  }

  /** What the visitor may do is known. */
  permit() {
    const { undo } = visitor();
    $("undo").disabled = undo === null;
    $("undo").title = undo === null ? "There is nothing to undo" : `Undo: ${undo}`;
  }

  #switch(asTree) {
    this.#asTree = asTree;
    $("as-list").setAttribute("aria-pressed", !asTree);
    $("as-tree").setAttribute("aria-pressed", asTree);
    $("list-of-labels").hidden = asTree;
    $("tree-of-labels").hidden = !asTree;
    return asTree ? this.#tree.show() : this.#load();
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
    this.#pager.go(0);
  }

  /** Shows the list, or the tree, where the user left it. */
  browse() {
    this.#shown = null;
    return this.#asTree ? this.#tree.show() : this.#load();
  }

  refresh() {
    if (this.#shown !== null) return this.card(this.#shown);
    return $("view-labels").hidden ? null : this.browse();
  }

  async #load() {
    this.#asking?.abort();
    const asking = (this.#asking = new AbortController());
    const search = $("search").value.trim();
    const query = { search, sort: $("sort").value, offset: this.#pager.offset, limit: PAGE };
    if (this.#band) query.band = this.#band;
    $("rows").setAttribute("aria-busy", "true");
    try {
      const answer = await service.labels(query, asking.signal);
      $("browse-trouble").hidden = true;
      this.#total = answer.total;
      $("rows").replaceChildren(...answer.labels.map(row));
      this.#place();
      if (this.#pager.offset !== query.offset) this.#load(); // the page is gone
    } catch (error) {
      if (error.name === "AbortError") return;
      showTrouble($("browse-trouble"), error, () => this.#load());
    }
    $("rows").setAttribute("aria-busy", "false");
  }

  #place() {
    const band = bandOf(this.#band);
    const within = band ? ` with ${band.long}` : "";
    const some = `${plural(this.#total, "label")}${within}`;
    $("found").textContent = this.#total ? some : `No labels${within} found.`;
    this.#pager.show(this.#total);
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
      const group = error.status === 404 ? await groupOf(id) : null;
      const trouble = h("div", { class: "trouble" });
      if (!group) showTrouble(trouble, error, () => this.card(id));
      box.replaceChildren(back(), ...(group ?? [trouble]));
    }
  }

  #cardOf(label) {
    const actions = h("div", { class: "actions" });
    if (mayEdit()) {
      const button = { type: "button", class: "quiet" };
      actions.append(
        h("button", { ...button, onclick: () => this.#edit.change(label) }, "Edit"),
        h("button", { ...button, onclick: () => this.#edit.remove(label) }, "Remove"),
      );
    }
    const names = label.alt_names.join(", ");
    const title = h("h2", { tabindex: "-1", id: "label-name" }, label.name);
    const own = label.id === label.name; // labels of a table are known by their names
    const facts = own ? ` ${trainedOn(label)}` : ` ${trainedOn(label)} · ID `;
    const family = relatives(label);
    const inTree = async () => {
      location.hash = "#labels";
      await this.#switch(true);
      await this.#tree.reveal(label.id);
    };
    const show = { type: "button", class: "link", onclick: inTree };
    if (family.length) family.push(h("button", show, "Show in the tree"));
    const { definition } = label;
    const about = aboutLabel(label);
    const pieces = [
      back(),
      h("div", { class: "card-head" }, title, actions),
      names ? h("p", { class: "others" }, `Also called ${names}`) : null,
      h("p", { class: "muted facts" }, bandIcon(label.band), facts, own ? null : h("code", {}, label.id)),
      family.length ? h("p", { class: "family" }, ...family.flatMap((one) => [one, " "])) : null,
      ...(definition && definition !== label.description
        ? [h("h3", {}, "Definition"), h("p", { class: "description" }, definition)]
        : []),
      ...(about ? [h("h3", {}, about[0]), h("p", { class: "description" }, about[1])] : []),
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

/** What is named as broader than some labels, but is no label itself; null if it is not. */
async function groupOf(id) {
  const found = await service.level({ under: id }).catch(() => null);
  if (!found?.total) return null;
  const title = h("h2", { tabindex: "-1", id: "label-name" }, id);
  const line = (label) => h("li", {}, bandIcon(label.band), h("a", { href: labelAddress(label.id) }, label.name));
  return [
    h("div", { class: "card-head" }, title),
    h("p", { class: "muted facts" }, `No label itself; it has ${plural(found.total, "label")} below it.`),
    h("ul", { class: "close group" }, ...found.labels.map(line)),
  ];
}

const back = () => h("p", { class: "back" }, h("a", { href: "#labels" }, "← All labels"));

function row(label) {
  const searched = $("search").value.trim();
  const words = label.keywords.map((word) => h("li", {}, word));
  const seen = plural(label.training_documents, "document");
  const head = [
    bandIcon(label.band),
    h("a", { href: labelAddress(label.id) }, label.name, code(label)),
    h("span", { class: "muted number" }, seen),
  ];
  const others = [otherNameWith(label, searched), ...label.alt_names].filter(Boolean);
  const called = [...new Set(others)].join(", ");
  const more = aboutLabel(label);
  const about = words.length
    ? h("ul", { class: "tags", "aria-label": "Keywords" }, ...words)
    : more && h("p", { class: "muted clamp" }, more[1]);
  const names = called ? h("p", { class: "muted clamp others" }, `Also called ${called}`) : null;
  return h("li", {}, h("div", { class: "row-head" }, ...head), names, about);
}

function keywords(label) {
  const meaning = [
    h("em", {}, " how much each word speaks for the label"),
    h("em", { class: "expert-only" }, ": its weight in the SVM"),
  ];
  const block = h("section", {}, h("h3", {}, "Keywords", ...(label.keywords.length ? meaning : [])));
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
    const number = h("span", { class: "number muted expert-only" }, weight.toFixed(2));
    return h("li", {}, h("span", {}, term), bar, number);
  };
  block.append(h("ol", { class: "weights" }, ...label.keywords.map(line)));
  return block;
}

function nearest(label) {
  const meaning = h("em", { class: "expert-only" }, " similarity: 1 is the same, 0 nothing");
  const block = h("section", {}, h("h3", {}, "Similar labels", label.nearest.length ? meaning : null));
  if (!label.nearest.length) block.append(h("p", { class: "muted" }, "No similar labels."));
  const line = (other) => {
    const link = h("a", { href: labelAddress(other.id) }, other.name, code(other));
    const similar = h("span", { class: "number muted expert-only" }, other.similarity.toFixed(2));
    return h("li", {}, bandIcon(other.band), link, similar);
  };
  block.append(h("ol", { class: "close" }, ...label.nearest.map(line)));
  return block;
}
