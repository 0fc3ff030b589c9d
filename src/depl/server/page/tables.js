// The tables that were opened: which sheet and columns were read, and another choice of them.

import { $, busy, h, plural, toast, wording } from "./dom.js";
import { service } from "./api.js";
import { readTable } from "./documents.js";

const NUMBERS = "the number of the row";

/** Files cannot be kept over a reload: until then, each table can be read in another way. */
export class Tables {
  #desk;
  #known = new Map(); // by key: the file, how it was read, and what was chosen
  #asked = null; // the table that the dialog is about
  #waiting = []; // files that it will be about next
  #look = 0; // the sheet that was asked for last

  constructor(desk) {
    this.#desk = desk;
    desk.addEventListener("opened", () => this.#draw());
    $("choose-sheet").addEventListener("change", () => this.#show($("choose-sheet").value));
    $("choose-cancel").addEventListener("click", () => $("choose").close());
    $("choose").addEventListener("close", () => this.#next());
    $("choose-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#read();
    });
  }

  /** Tables that were read. */
  remember(tables) {
    for (const table of tables) this.#known.set(table.key, table);
  }

  /** Files of which nothing shows which column has the text: people say it. */
  askAbout(files) {
    this.#waiting.push(...files);
    if (!$("choose").open) this.#next();
  }

  #next() {
    const file = this.#waiting.shift();
    if (file) this.#ask({ file, chosen: {}, unclear: true });
  }

  #draw() {
    const open = new Set(this.#desk.documents.map(({ table }) => table));
    const shown = [...this.#known.values()].filter(({ key, text }) => open.has(key) && text.length);
    const line = (table) => {
      const { file, described, text, id } = table;
      const sheet = described.startsWith("sheet ") ? `, ${described.replace(/ \(not read: .*/, "")}` : "";
      const said = `${file.name}${sheet}: text from ${text.join(" + ")}; named by ${id ?? NUMBERS}`;
      const about = {
        type: "button",
        class: "link",
        "aria-label": `Choose sheet and columns of ${file.name}`,
        onclick: () => this.#ask(table),
      };
      return h("li", {}, h("span", { class: "muted" }, said), h("button", about, "Change…"));
    };
    $("documents-tables").replaceChildren(...shown.map(line));
    $("documents-tables").hidden = !shown.length;
  }

  async #ask(table) {
    this.#asked = table;
    $("choose-title").textContent = `How to read ${table.file.name}`;
    $("choose-hint").textContent = table.unclear
      ? "Nothing shows which column has the text. Choose it:"
      : "The documents of this table are replaced. Decisions that you made are kept.";
    await this.#show(table.chosen.sheet, table);
    if (!$("choose").open) $("choose").showModal();
  }

  /** Shows the columns of a sheet; those that were read, or that would be, are ticked. */
  async #show(sheet, { text = null, id = null } = {}) {
    const look = ++this.#look;
    $("choose-read").disabled = true;
    $("choose-wrong").textContent = "";
    const stop = busy(`Reading ${this.#asked.file.name}…`);
    try {
      const found = await service.columns(this.#asked.file, sheet);
      if (look !== this.#look) return; // another sheet was chosen meanwhile
      const ticked = new Set(text ?? found.text);
      const options = found.sheets.map((name) => new Option(name, name, false, name === found.sheet));
      $("choose-sheet").replaceChildren(...options);
      $("choose-sheet-field").hidden = found.sheets.length < 2;
      $("choose-text").replaceChildren(...found.columns.map((one) => choice(one, ticked.has(one.name))));
      const names = found.columns.map(({ name }) => new Option(name));
      $("choose-id").replaceChildren(new Option(NUMBERS, ""), ...names);
      $("choose-id").value = (text ? id : found.id) ?? "";
      $("choose-read").disabled = !found.columns.length;
      if (!found.columns.length) $("choose-wrong").textContent = "This sheet holds no table.";
    } catch (error) {
      $("choose-wrong").textContent = wording(error);
    } finally {
      stop();
    }
  }

  async #read() {
    const ticked = $("choose-text").querySelectorAll("input:checked");
    const text = [...ticked].map(({ value }) => value);
    if (!text.length) {
      $("choose-wrong").textContent = "Tick at least one column.";
      return;
    }
    const { file, key = null } = this.#asked;
    const chosen = { sheet: $("choose-sheet").value, text, id: $("choose-id").value };
    const found = { documents: [], notes: [], refused: [], tables: [] };
    try {
      await readTable(file, chosen, found);
    } catch (error) {
      $("choose-wrong").textContent = wording(error);
      return;
    }
    this.remember(found.tables);
    const undo = this.#desk.replace(key, found.documents);
    $("choose").close();
    const said = [...found.notes, ...found.refused].join(" ");
    toast(said || `Read ${plural(found.documents.length, "document")}.`, { name: "Undo", act: undo });
    location.hash = this.#desk.documents.length > 1 ? "#documents" : "#suggest";
  }
}

function choice({ name, example }, ticked) {
  const box = h("input", { type: "checkbox", value: name, checked: ticked });
  return h("label", {}, box, h("b", {}, name), h("span", { class: "example muted" }, example));
}
