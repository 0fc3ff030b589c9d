// Elements, numbers and messages. Data becomes text nodes or attributes, never markup.

/** An element with properties and children; `onclick` and the like are listeners, `--x` CSS. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("aria-")) element.setAttribute(key, value); // where "false" has a meaning
    else if (value === false) continue;
    else if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) element.style.setProperty(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const $ = (id) => document.getElementById(id);

export const count = (n) => n.toLocaleString("en");

/** A number and its noun: plural(1, "match", "matches") is "1 match". */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const signed = (x) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;

let codesAreKnown = false;

/** Sets whether the ids of labels are codes that people know, to be shown beside the names. */
export const showCodes = (known) => (codesAreKnown = known);

/** The code of a label that has one. */
export const code = ({ id, name }) =>
  codesAreKnown && id !== name ? h("span", { class: "code" }, ` ${id}`) : null;

/** A probability in whole percent; never "0%" or "100%" for what is only close to it. */
export function percent(p) {
  if (p > 0 && p < 0.01) return "<1%";
  if (p < 1 && p > 0.99) return ">99%";
  return `${Math.round(100 * p)}%`;
}

export function trainedOn({ training_documents: n }) {
  return n ? plural(n, "training document") : "no training documents";
}

export const labelAddress = (id) => `#label/${encodeURIComponent(id)}`;

/** Where a label's own name lacks a word that was searched: the other name that has most of them. */
export function otherNameWith({ name, alt_names: others = [] }, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (one) => words.filter((word) => one.toLowerCase().includes(word)).length;
  const best = others.reduce((a, b) => (has(b) > has(a) ? b : a), name);
  return best === name ? null : best;
}

/**
 * What is known about a label beside its names: a title, and the text. Where nobody wrote it, it is
 * the label's typical words after its name; null where there is nothing but names.
 */
export function aboutLabel({ name, alt_names: others = [], description }) {
  const names = new Set([name, ...others].join(" ").split(/\s+/));
  if (description.split(/\s+/).every((word) => !word || names.has(word))) return null;
  const rest = description.startsWith(`${name} `) ? description.slice(name.length).trim() : description;
  const words = new Set(rest.split(/\s+/));
  const written = /[\p{Lu}.,;:!?()]/u.test(rest) || words.size < 3;
  return written ? ["Description", description] : ["Typical words", [...words].join(" · ")];
}

/** Calls `act` once there has been no further call for `wait` milliseconds. */
export function debounced(act, wait) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...values), wait);
  };
}

let fading;

/** A short message at the foot of the page, with a button if there is something to do. */
export function toast(message, action = null) {
  const box = $("toast");
  box.replaceChildren(h("span", {}, message));
  if (action) {
    const act = () => {
      box.classList.remove("shown");
      action.act();
    };
    box.append(h("button", { type: "button", onclick: act }, action.name));
  }
  box.classList.add("shown");
  clearTimeout(fading);
  // Long messages and those with a button stay longer.
  const milliseconds = action ? 12_000 : Math.max(4_000, 60 * message.length);
  fading = setTimeout(() => box.classList.remove("shown"), milliseconds);
}

/** Says that something takes a while; returns what takes the message away. */
export function busy(message) {
  const timer = setTimeout(() => toast(message), 300);
  return () => {
    clearTimeout(timer);
    if ($("toast").textContent === message) $("toast").classList.remove("shown");
  };
}

/** All that an error says, in one line. */
export const wording = (error) => [error.title, error.message].filter(Boolean).join(" ");

/** What went wrong, where it happened, with a button to try again if that may help. */
export function showTrouble(box, error, again) {
  box.replaceChildren(h("p", {}, h("strong", {}, error.title), " ", error.message));
  if (again && error.retry) {
    box.append(h("button", { type: "button", class: "quiet", onclick: again }, "Try again"));
  }
  box.hidden = false;
}

/** Arrow keys, Home and End move among the buttons of a list; Tab goes past it. */
export function moveByArrows(list, selector) {
  const items = () =>
    [...list.querySelectorAll(selector)].filter((one) => !one.closest("[hidden]"));
  list.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    all[Math.min(Math.max(to, 0), all.length - 1)].focus();
  });
  list.addEventListener("focusin", (event) => {
    if (event.target.matches(selector)) keepOneStop(items(), event.target);
  });
  return () => keepOneStop(items());
}

function keepOneStop(items, wanted) {
  const stop = wanted ?? items.find((item) => item.tabIndex === 0) ?? items[0];
  for (const item of items) item.tabIndex = item === stop ? 0 : -1;
}
