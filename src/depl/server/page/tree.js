// The hierarchy of labels as a tree, loaded level by level as it is opened.

import { $, code, count, h, labelAddress, plural, showTrouble } from "./dom.js";
import { service } from "./api.js";
import { bandIcon } from "./bands.js";

const LEVEL = 100; // labels of a level that are loaded at once

export class Tree {
  #box = $("tree");
  #made = false;

  constructor() {
    this.#box.addEventListener("keydown", (event) => this.#key(event));
    this.#box.addEventListener("click", (event) => {
      const item = event.target.closest("[role=treeitem]");
      if (!item) return;
      if (event.target.closest(".twig")) this.#toggle(item);
      else this.#enter(item);
    });
    this.#box.addEventListener("focusin", (event) => this.#stopAt(event.target));
  }

  /** How many branches there are at the top; 0 where there is no hierarchy. */
  async size() {
    return (await service.level({ limit: 1 })).total;
  }

  /** Labels have changed: the tree is loaded again when it is shown next. */
  forget() {
    this.#made = false;
  }

  async show() {
    if (this.#made) return;
    this.#made = true;
    try {
      this.#box.replaceChildren();
      const { alone, total } = await this.#load(this.#box, "", 1, 0);
      // Branches: what is at the top may be a group, such as a facet, which is no label itself.
      const rest = alone ? ` ${plural(alone, "label is", "labels are")} not in it.` : "";
      $("tree-found").textContent = `The tree has ${plural(total, "branch", "branches")}.${rest}`;
      const first = this.#box.querySelector("[role=treeitem]");
      if (total === 1) await this.#open(first);
      this.#stopAt(first);
    } catch (error) {
      this.#made = false;
      showTrouble($("browse-trouble"), error, () => this.show());
    }
  }

  /** Opens the way down to a label, and moves the focus there. */
  async reveal(id) {
    await this.show();
    const way = [id];
    for (let at = id; way.length < 20; at = way[0]) {
      const { above } = await service.level({ under: at, limit: 1 });
      if (!above || way.includes(above)) break;
      way.unshift(above);
    }
    let level = this.#box;
    let item = null;
    for (const step of way) {
      const here = [...level.children].find((one) => one.dataset.id === step);
      if (!here) break;
      item = here;
      if (step !== id) await this.#open(item);
      level = item.querySelector("[role=group]") ?? level;
    }
    item?.focus();
    item?.scrollIntoView({ block: "center" });
  }

  async #load(list, under, level, offset) {
    const query = { offset, limit: LEVEL };
    if (under) query.under = under;
    const found = await service.level(query);
    list.append(...found.labels.map((label) => this.#item(label, level)));
    const left = found.total - offset - found.labels.length;
    if (left > 0) {
      const more = h(
        "li",
        { role: "treeitem", class: "more", tabindex: "-1", "aria-level": level, "data-more": offset + LEVEL, "data-under": under },
        `Show ${count(Math.min(left, LEVEL))} more of ${count(left)}`,
      );
      list.append(more);
    }
    return found;
  }

  #item(label, level) {
    const parent = label.narrower > 0;
    const about = { role: "treeitem", tabindex: "-1", "aria-level": level, "data-id": label.id };
    if (!label.known) about["data-group"] = true;
    if (parent) about["aria-expanded"] = false;
    const below = parent ? `${count(label.narrower)} below` : "";
    const documents = label.known ? plural(label.training_documents, "document") : "";
    const row = h(
      "div",
      { class: "branch" },
      h("span", { class: parent ? "twig" : "leaf", "aria-hidden": "true" }),
      label.known ? bandIcon(label.band) : null,
      h("span", { class: "name" }, label.short, label.known ? code(label) : null),
      h("span", { class: "muted number" }, [below, documents].filter(Boolean).join(" · ")),
    );
    return h("li", about, row);
  }

  async #open(item) {
    if (item.getAttribute("aria-expanded") !== "false") return;
    item.setAttribute("aria-expanded", "true");
    const there = item.querySelector("[role=group]");
    if (there) {
      there.hidden = false;
      return;
    }
    const list = h("ul", { role: "group" });
    item.append(list);
    await this.#load(list, item.dataset.id, Number(item.getAttribute("aria-level")) + 1, 0);
  }

  #close(item) {
    item.setAttribute("aria-expanded", "false");
    const group = item.querySelector("[role=group]");
    if (group) group.hidden = true;
  }

  #toggle(item) {
    if (item.getAttribute("aria-expanded") === "true") this.#close(item);
    else this.#open(item);
    item.focus();
  }

  async #enter(item) {
    if (item.dataset.group !== undefined) {
      this.#toggle(item);
      return;
    }
    if (item.dataset.id !== undefined) {
      location.hash = labelAddress(item.dataset.id);
      return;
    }
    const { more, under } = item.dataset;
    const list = item.parentElement;
    const before = item.previousElementSibling;
    item.remove();
    await this.#load(list, under, Number(item.getAttribute("aria-level")), Number(more));
    before.nextElementSibling?.focus();
  }

  #stopAt(item) {
    if (!item?.matches?.("[role=treeitem]")) return;
    for (const other of this.#box.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    item.tabIndex = 0;
  }

  /** The keys of a tree: up and down, right opens, left closes or goes to the label above. */
  #key(event) {
    const item = event.target.closest("[role=treeitem]");
    const all = [...this.#box.querySelectorAll("[role=treeitem]")].filter((one) => one.offsetParent);
    const at = all.indexOf(item);
    const expanded = item?.getAttribute("aria-expanded");
    const go = (to) => all[Math.min(Math.max(to, 0), all.length - 1)]?.focus();
    const acts = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      Home: () => go(0),
      End: () => go(all.length - 1),
      ArrowRight: () => (expanded === "false" ? this.#open(item) : expanded && go(at + 1)),
      ArrowLeft: () =>
        expanded === "true" ? this.#close(item) : item.parentElement.closest("[role=treeitem]")?.focus(),
      Enter: () => this.#enter(item),
      " ": () => this.#toggle(item),
    };
    if (!item || !acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
}
