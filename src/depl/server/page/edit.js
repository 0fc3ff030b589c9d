// Changes to the label set: add, edit, remove, undo; and the token that the service may need.

import { $, h, toast, wording } from "./dom.js";
import { keepToken, service, token, whenRefused } from "./api.js";

/** A sentence where another label has the name of a new one: nobody could tell them apart. */
async function namesake(id, name) {
  try {
    const { labels } = await service.labels({ search: name, limit: 20 });
    const same = (label) => label.id !== id && label.name.toLowerCase() === name.toLowerCase();
    const other = labels.find(same);
    return other ? ` Another label has this name: ${other.id}.` : "";
  } catch {
    return ""; // the label is there; this was only a hint
  }
}

const tidy = (text) => text.replace(/\s+/g, " ").trim();

/** An ID made from a name. */
function slug(name) {
  const plain = name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  return plain.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60);
}

export class Edit {
  #changed;
  #current;
  #label = null; // the label being edited; null for a new one
  #wrong = null; // what is wrong: the field, and its value
  #ownId = false; // whether the ID was typed rather than made from the name

  /** `changed(added)` is called after every change; `current()` returns the document shown. */
  constructor(changed, current) {
    this.#changed = changed;
    this.#current = current;
    $("edit-name").addEventListener("input", () => {
      if (!this.#ownId) $("edit-id").value = slug($("edit-name").value);
    });
    $("edit-id").addEventListener("input", () => (this.#ownId = $("edit-id").value !== ""));
    $("edit-more").addEventListener("click", () => addExample("").focus());
    $("edit-current").addEventListener("click", () => addExample(this.#current()).focus());
    $("edit-cancel").addEventListener("click", () => $("edit").close());
    $("edit-form").addEventListener("input", () => this.#check());
    $("edit-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
  }

  /** A new label; `name` is what somebody was looking for. */
  add(name = "") {
    const hint =
      "It can be suggested right away. Example documents make its suggestions more reliable.";
    this.#start(null, { title: "Add a label", hint });
    $("edit-name").value = tidy(name);
    $("edit-id").value = slug(name);
  }

  change(label) {
    this.#start(label, { title: `Edit “${label.name}”`, hint: `ID ${label.id}` });
  }

  async remove(label) {
    await this.#attempt(async () => {
      await service.remove(label.id);
      if (location.hash.startsWith("#label/")) location.hash = "#labels";
      this.#done(`Removed “${label.name}”.`);
    });
  }

  async undo() {
    await this.#attempt(async () => {
      const { undone } = await service.undo();
      toast(`Undone: ${undone}`);
      this.#changed();
    });
  }

  /** A message about the last change, with a button to undo it. */
  note(message) {
    toast(message, { name: "Undo", act: () => this.undo() });
  }

  #start(label, { title, hint }) {
    this.#label = label;
    this.#ownId = false;
    $("edit-title").textContent = title;
    $("edit-hint").textContent = hint;
    $("edit-name").value = label?.name ?? "";
    $("edit-description").value = label?.description ?? "";
    $("edit-id").value = "";
    $("edit-others").value = "";
    this.#settle();
    $("edit-examples").replaceChildren();
    $("edit-current").hidden = !this.#current().trim();
    for (const part of document.querySelectorAll("#edit .new-only")) part.hidden = label !== null;
    $("edit").showModal();
    $("edit-name").focus();
  }

  async #save() {
    const name = tidy($("edit-name").value);
    const description = tidy($("edit-description").value);
    const id = this.#label ? this.#label.id : $("edit-id").value.trim();
    if (!name || !id) {
      this.#complain(name ? "edit-id" : "edit-name", `Please enter ${name ? "an ID" : "a name"}.`);
      return;
    }
    $("edit-save").disabled = true;
    try {
      if (this.#label) await this.#saveChange(name, description);
      else await service.add(newLabel(id, name, description));
      $("edit").close();
      if (this.#label) this.#done(`Saved “${name}”.`);
      else this.#done(`Added “${name}”.${await namesake(id, name)}`, id);
    } catch (error) {
      const taken = error.status === 409;
      this.#complain(taken ? "edit-id" : "edit-name", taken ? error.message : wording(error));
    }
    $("edit-save").disabled = false;
  }

  /** Says what is wrong with a field, until something else is entered there. */
  #complain(field, message) {
    $("edit-wrong").textContent = message;
    this.#wrong = { field, value: $(field).value };
    $(field).setAttribute("aria-invalid", "true");
    $(field).focus();
  }

  #check() {
    if (!this.#wrong) return;
    const { field, value } = this.#wrong;
    if ($(field).value.trim() && $(field).value !== value) this.#settle();
  }

  #settle() {
    $("edit-wrong").textContent = "";
    if (this.#wrong) $(this.#wrong.field).removeAttribute("aria-invalid");
    this.#wrong = null;
  }

  async #saveChange(name, description) {
    const body = {};
    if (name !== this.#label.name) body.name = name;
    if (description !== this.#label.description) body.description = description;
    if (Object.keys(body).length) await service.change(this.#label.id, body);
  }

  #done(message, added) {
    this.note(message);
    this.#changed(added);
  }

  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      toast(wording(error));
    }
  }
}

function newLabel(id, name, description) {
  const lines = $("edit-others").value.split("\n").map(tidy);
  const areas = $("edit-examples").querySelectorAll("textarea");
  const texts = [...areas].map((area) => area.value.trim());
  const body = { id, name };
  if (description) body.description = description;
  if (lines.some(Boolean)) body.alt_names = lines.filter(Boolean);
  if (texts.some(Boolean)) body.examples = texts.filter(Boolean);
  return body;
}

function addExample(text) {
  const number = $("edit-examples").children.length + 1;
  const area = h("textarea", { rows: "3", "aria-label": `Example document ${number}` });
  area.value = text;
  $("edit-examples").append(area);
  area.setSelectionRange(0, 0);
  return area;
}

/** Asks for a token in a dialog; several requests that need one share the same dialog. */
export function offerToken() {
  let waiting = null;
  const ask = (wrong) => {
    waiting ??= new Promise((resolve) => {
      $("token-wrong").textContent = wrong ? "This token was not accepted." : "";
      $("token-value").value = "";
      $("token").showModal();
      const closed = () => resolve($("token").returnValue === "given");
      $("token").addEventListener("close", closed, { once: true });
    }).finally(() => (waiting = null));
    return waiting;
  };
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken($("token-value").value.trim());
    $("token").close(token() ? "given" : "");
  });
  $("token-cancel").addEventListener("click", () => $("token").close(""));
  $("token").addEventListener("cancel", () => ($("token").returnValue = ""));
  whenRefused(ask);
}
