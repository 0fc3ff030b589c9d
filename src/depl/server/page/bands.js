// Frequency bands of labels, as the service defines them.

import { count, h, plural } from "./dom.js";

let known = []; // rarest first: {id, level, name, long, labels}

/** Takes over the bands of `/v1/info`. */
export function learnBands(bands) {
  known = bands.map((band, level) => ({
    id: band.name,
    level,
    name: shortName(band),
    long: longName(band),
    labels: band.labels,
  }));
}

function shortName({ first, last }) {
  if (last === null) return `${count(first)}+`;
  return first === last ? count(first) : `${count(first)}–${count(last)}`;
}

function longName({ first, last }) {
  if (last === null) return `${count(first)} or more training documents`;
  if (first !== last) return `${count(first)} to ${count(last)} training documents`;
  return first ? plural(first, "training document") : "no training documents";
}

export const allBands = () => known;
export const bandOf = (id) => known.find((band) => band.id === id);
export const levelOf = (id) => bandOf(id)?.level ?? 0;

/** Small bars, one more of them filled for each higher band: colour is never the only sign. */
export function bandIcon(id) {
  const level = levelOf(id);
  const bars = known.slice(1).map((_, i) => h("i", { class: i < level ? "on" : null }));
  return h("span", { class: `strokes band-${level}`, "aria-hidden": "true" }, ...bars);
}
