// The document: typed, pasted or dropped; one of several; with words highlighted in it.

import { $, busy, count, h, plural, toast } from "./dom.js";
import { readFiles } from "./documents.js";
import { Tables } from "./tables.js";

const LONGEST_LIT = 300_000; // characters; beyond, laying out the text twice slows down typing

const LONGEST_READ = 1_000_000; // characters; the limit of the service

/** As much of a text as the service accepts. */
export const readable = (text) => text.slice(0, LONGEST_READ);

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Positions in Python's characters to positions in JavaScript's, where an emoji counts two. */
export function inUtf16(text, spans) {
  if (!/[\ud800-\udbff]/.test(text)) return spans;
  const at = [];
  let place = 0;
  for (const character of text) {
    at.push(place);
    place += character.length;
  }
  at.push(place);
  const convert = (i) => at[Math.min(i, at.length - 1)];
  return spans.map(([start, end]) => [convert(start), convert(end)]);
}

export class Editor {
  #desk;
  #changed;
  #complain;

  /**
   * `changed(other)` is called after every edit, and with true when another document is shown;
   * `complain(message)` about files that are not text.
   */
  constructor(desk, changed, complain) {
    this.#desk = desk;
    this.tables = new Tables(desk);
    this.#changed = changed;
    this.#complain = complain;
    this.area = $("text");
    this.area.addEventListener("input", () => {
      desk.edit(this.area.value);
      this.#refresh();
    });
    $("open").addEventListener("click", () => $("files").click());
    $("files").addEventListener("change", async () => {
      await this.open([...$("files").files]);
      $("files").value = "";
    });
    $("clear").addEventListener("click", () => {
      const { length } = desk.documents;
      const undo = desk.clear();
      const what = length > 1 ? `Closed ${plural(length, "document")}.` : "Cleared.";
      toast(what, { name: "Undo", act: undo });
      this.area.focus();
    });
    $("previous").addEventListener("click", () => desk.show(desk.at - 1));
    $("next").addEventListener("click", () => desk.show(desk.at + 1));
    desk.addEventListener("shown", () => this.#show());
    this.#acceptDrops();
  }

  get text() {
    return this.area.value;
  }

  get desk() {
    return this.#desk;
  }

  /** Adds the documents of files to those that are open; several are shown as a list. */
  async open(files) {
    const stop = busy(files.length > 1 ? `Reading ${files.length} files…` : `Reading ${files[0]?.name}…`);
    const { documents, notes, refused, tables, unclear } = await readFiles(files);
    stop();
    if (documents.length) {
      const before = this.#desk.isEmpty ? 0 : this.#desk.documents.length;
      this.tables.remember(tables);
      const added = this.#desk.open(documents);
      if (!added) notes.push("What is in it was open already.");
      else if (before && documents.length > 1) notes.push(`Added below ${before === 1 ? "the one that was" : `the ${count(before)} that were`} open.`);
    }
    if (notes.length || refused.length) this.#complain([...notes, ...refused].join(" "));
    this.tables.askAbout(unclear);
    if (!documents.length) return;
    location.hash = documents.length > 1 ? "#documents" : "#suggest";
  }

  #show() {
    const desk = this.#desk;
    const { length } = desk.documents;
    $("stepper").hidden = length < 2 || desk.guest !== null;
    $("which").textContent = desk.current.name;
    $("place").textContent = `${count(desk.at + 1)} of ${count(length)}`;
    $("previous").disabled = desk.at === 0;
    $("next").disabled = desk.at === length - 1;
    this.area.value = desk.current.text;
    this.area.readOnly = desk.guest !== null;
    $("editor").scrollTop = 0;
    this.#refresh(true);
  }

  /** Highlights spans of the text: a list of {start, end, strength}, strength 1 to 3. */
  light(spans) {
    if (this.text.length > LONGEST_LIT) return;
    const { text } = this;
    const pieces = [];
    let last = 0;
    for (const { start, end, strength } of [...spans].sort((a, b) => a.start - b.start)) {
      if (end <= last) continue;
      // Terms overlap where words have no spaces between them.
      const first = Math.max(start, last);
      pieces.push(text.slice(last, first));
      const about = { class: `lit-${strength}`, "data-start": start };
      pieces.push(h("mark", about, text.slice(first, end)));
      last = end;
    }
    pieces.push(`${text.slice(last)}\n`);
    $("marks").replaceChildren(...pieces);
    const lit = $("marks").querySelectorAll("mark").length;
    $("lit").textContent = lit ? plural(lit, "match", "matches") : "";
  }

  dim() {
    if (this.text.length <= LONGEST_LIT) $("marks").textContent = `${this.text}\n`;
    $("lit").textContent = "";
  }

  /** Scrolls the document to a highlighted word; `far` scrolls the page, too, on small screens. */
  reveal(start, far = false) {
    const mark = $("marks").querySelector(`mark[data-start="${start}"]`);
    if (!mark) return;
    const behavior = calm() ? "auto" : "smooth";
    if (far) {
      mark.scrollIntoView({ block: "center", behavior });
      mark.classList.add("flash");
      setTimeout(() => mark.classList.remove("flash"), 1200);
      return;
    }
    const box = $("editor");
    const above = mark.offsetTop < box.scrollTop;
    const below = mark.offsetTop + mark.offsetHeight > box.scrollTop + box.clientHeight;
    if (above || below) box.scrollTo({ top: mark.offsetTop - box.clientHeight / 3, behavior });
  }

  #refresh(other = false) {
    const huge = this.text.length > LONGEST_LIT;
    $("editor").classList.toggle("huge", huge);
    if (huge) $("marks").textContent = "";
    this.dim();
    const words = this.text.match(/\S+/g)?.length ?? 0;
    $("counts").textContent = words
      ? `${plural(words, "word")}, ${plural(this.text.length, "character")}`
      : "No text yet";
    if (this.text.length > LONGEST_READ) {
      $("lit").textContent = `Only the first ${count(LONGEST_READ)} characters are used`;
    } else if (huge) $("lit").textContent = "Too long to highlight words";
    $("clear").disabled = this.#desk.isEmpty;
    this.#changed(other);
  }

  #acceptDrops() {
    const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
    let depth = 0; // of elements entered and not yet left
    const lit = (on) => $("drop").classList.toggle("shown", on);
    document.addEventListener("dragenter", (event) => {
      if (holdsFiles(event)) lit((depth += 1) > 0);
    });
    document.addEventListener("dragleave", (event) => {
      if (holdsFiles(event)) lit((depth = Math.max(0, depth - 1)) > 0);
    });
    document.addEventListener("dragover", (event) => {
      if (holdsFiles(event)) event.preventDefault();
    });
    document.addEventListener("drop", (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      lit((depth = 0) > 0);
      this.open([...event.dataTransfer.files]);
    });
  }
}
