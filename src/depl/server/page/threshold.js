// How sure a label must be to be shown: a slider, and what it does to this document, in words.

import { $, h, percent, plural } from "./dom.js";

const NEAR = 0.005; // of a preset: the slider has whole percents

/** What the service calls a threshold, for people: a name, and what it means. */
function inWords(name) {
  const precision = Number(name.match(/^precision (.+)$/)?.[1]);
  if (precision) {
    const share = `${Math.round(10 * precision)} of 10 right`;
    return [share, `Of all labels shown from here on, about ${share.replace(" right", "")} are right`];
  }
  const balanced = "The best balance between labels that are missing and labels that are wrong";
  return name === "best F1" ? ["Balanced", balanced] : [name, name];
}

export class Threshold {
  #value = 0;
  #presets = [];
  #moved;

  /** `moved()` is called whenever the threshold changes. */
  constructor(moved) {
    this.#moved = moved;
    const slider = $("threshold");
    slider.addEventListener("input", () => this.set(Number(slider.value) / 100, false));
  }

  get value() {
    return this.#value;
  }

  /** Takes over the thresholds that the service recommends; a run without any starts at 0. */
  inform(thresholds) {
    const known = Object.entries(thresholds ?? {}).map(([key, p]) => [p, key, ...inWords(key)]);
    const every = [0, "", "All", "Show every label, however unlikely"];
    this.#presets = [every, ...known].sort((a, b) => a[0] - b[0]);
    $("ticks").replaceChildren(...known.map(([p]) => h("i", { "--at": p })));
    this.#draw();
  }

  set(value, exact = true) {
    this.#value = value;
    if (exact) $("threshold").value = Math.round(100 * value);
    $("threshold").setAttribute("aria-valuetext", percent(Math.max(0, value)));
    $("threshold-value").textContent = percent(Math.max(0, value));
    $("results").style.setProperty("--threshold", Math.max(0, value));
    this.#draw();
    this.#moved();
  }

  #draw() {
    const chip = ([p, key, name, title]) => {
      const here = Math.abs(p - this.#value) < NEAR;
      const about = { "aria-pressed": here, title: key ? `${title} (${key})` : title };
      const pick = () => this.set(p);
      const number = h("span", { class: "number expert-only" }, ` ${percent(p)}`);
      return h("button", { type: "button", class: "chip", ...about, onclick: pick }, name, number);
    };
    const had = [...$("presets").children].indexOf(document.activeElement);
    $("presets").replaceChildren(...this.#presets.map(chip));
    if (had >= 0) $("presets").children[had]?.focus();
  }

  /** What the threshold does to a document with these labels, most likely first. */
  explain(labels) {
    const box = $("threshold-words");
    const shown = labels.filter(({ probability }) => probability >= this.#value);
    const next = labels[shown.length];
    box.hidden = !labels.length;
    if (!shown.length) {
      box.replaceChildren();
      return;
    }
    const sum = shown.reduce((all, { probability }) => all + probability, 0);
    const last = shown.at(-1);
    box.replaceChildren(
      `${plural(shown.length, "label")} for this document: ${expected(sum, shown.length)}.`,
      ...(next ? [" Move left, and ", ...named(next), " comes in"] : [" There is no other label"]),
      ...(shown.length > 1 ? ["; move right, and ", ...named(last), " goes first."] : ["."]),
    );
  }
}

const named = ({ name, probability }) => [h("b", {}, name), ` (${percent(probability)})`];

function expected(sum, all) {
  const right = Math.round(sum);
  if (all === 1 && sum > 0.35 && sum < 0.65) return "it may be right or wrong";
  if (right >= all) return all === 1 ? "it is probably right" : "probably all are right";
  if (!right) return all === 1 ? "it is probably wrong" : "probably none is right";
  return `about ${right} should be right`;
}
