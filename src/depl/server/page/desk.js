// The documents that are open, and which of them is shown; they survive a reload.

import { debounced } from "./dom.js";
import { keep, recall } from "./drafts.js";

const KEY = "desk";
const WAIT = 300; // milliseconds without a keystroke before what was typed is kept

export const TYPED = "text"; // the name of a document that comes from no file

const blank = () => [{ name: TYPED, text: "" }];
const isBlank = ({ name, text }) => name === TYPED && !text.trim();

/** Events: "opened" when there are other documents, "shown" when another one is shown, "edited". */
export class Desk extends EventTarget {
  #documents = blank();
  #at = 0;
  #guest = null; // a document of the review, shown in place of those that are open
  #touched = false;
  #keepSoon = debounced(() => this.#keep(), WAIT);

  constructor() {
    super();
    addEventListener("pagehide", () => this.#touched && this.#keep());
  }

  /** Brings back what was open before the page was loaded, unless something was typed since. */
  async restore() {
    const kept = await recall(KEY, { each: true });
    if (!kept?.documents?.length || this.#touched || !isBlank(this.#documents[0])) return;
    this.#documents = kept.documents;
    this.#at = Math.min(kept.at, kept.documents.length - 1);
    this.#tell("opened", "shown");
  }

  get documents() {
    return this.#documents;
  }

  get at() {
    return this.#at;
  }

  get current() {
    return this.#guest ?? this.#documents[this.#at];
  }

  /** By what id a document is known elsewhere, too, and where it comes from. */
  static known({ name, id = null, source = "", row }) {
    if (id !== null || source) return { id, source };
    if (row) return { id, source: row }; // the number of a row is no id
    return { id: name === TYPED ? null : name.slice(0, 200) || null, source };
  }

  get guest() {
    return this.#guest;
  }

  /** Whether there is anything to clear. */
  get isEmpty() {
    return this.#documents.length === 1 && isBlank(this.#documents[0]);
  }

  /** Adds documents to those that are open and shows the first; one that is there is not added. */
  open(documents) {
    const same = ({ name, text }) => `${name}\n${text}`;
    const there = new Map(this.#documents.map((one) => [same(one), one]));
    const fresh = documents.filter((one) => !there.has(same(one)));
    for (const one of documents) {
      if (there.has(same(one))) there.get(same(one)).table = one.table; // as it was read last
    }
    const kept = this.#documents.filter((one) => !isBlank(one));
    this.#documents = [...kept, ...fresh];
    if (!this.#documents.length) this.#documents = blank();
    this.#at = Math.min(kept.length, this.#documents.length - 1);
    this.#changed("opened", "shown");
    return fresh.length;
  }

  show(i) {
    this.#at = Math.min(Math.max(i, 0), this.#documents.length - 1);
    this.#changed("shown");
  }

  edit(text) {
    if (this.#guest) return;
    const { name, row, table } = this.#documents[this.#at];
    this.#documents[this.#at] = { name, text, row, table };
    this.#touched = true;
    this.#keepSoon();
    this.#tell("edited");
  }

  /** Puts documents in place of those of a table; returns what brings these back. */
  replace(table, documents) {
    const kept = this.#documents.filter((one) => !isBlank(one));
    const place = kept.findIndex((one) => one.table === table);
    const first = place < 0 ? kept.length : place;
    const before = kept.slice(0, first);
    const after = kept.slice(first).filter((one) => one.table !== table);
    return this.#exchange([...before, ...documents, ...after], first);
  }

  /** Closes all documents; returns what brings them back. */
  clear() {
    return this.#exchange(blank(), 0);
  }

  #exchange(fresh, place) {
    const [documents, at] = [this.#documents, this.#at];
    this.#documents = fresh.length ? fresh : blank();
    this.#at = Math.min(place, this.#documents.length - 1);
    this.#changed("opened", "shown");
    return () => {
      this.#documents = documents;
      this.#at = at;
      this.#changed("opened", "shown");
    };
  }

  /** Shows a document of the review; null goes back to those that are open. */
  host(guest) {
    if (guest === this.#guest) return;
    this.#guest = guest;
    this.#tell("shown");
  }

  #changed(...names) {
    this.#touched = true;
    this.#keep();
    this.#tell(...names);
  }

  #tell(...names) {
    for (const name of names) this.dispatchEvent(new Event(name));
  }

  #keep() {
    const plain = this.#documents.map(({ name, text, row }) => ({ name, text, row }));
    keep(KEY, { documents: plain, at: this.#at }, { each: true });
  }
}
