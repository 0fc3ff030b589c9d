// Why a label is suggested: its keywords in the text, the parts of the model, similar documents.

import { aboutLabel, h, labelAddress, percent, plural, signed, trainedOn } from "./dom.js";
import { bandIcon } from "./bands.js";
import { inUtf16 } from "./editor.js";

const AROUND = 60; // characters shown on either side of a word

const SHOWN_NAMES = 4;
const SHOWN_RELATIVES = 8;

// By the name of a part: a short name, what it is, and what it is in a sentence.
const PARTS = {
  svm: ["Words", "the words of the text, weighed by a linear model", "the words of the text"],
  characters: [
    "Parts of words",
    "parts of the words of the text, weighed by a linear model",
    "parts of words",
  ],
  names: ["Label name", "whether the label's names occur in the text", "words of its name in the text"],
  "name coverage": [
    "Words of name",
    "how much of one of the label's names is in the text",
    "how much of its name is in the text",
  ],
  "whole names": [
    "Whole name",
    "whether one of the label's names is in the text word by word",
    "its whole name in the text",
  ],
  "word neighbours": [
    "Similar wording",
    "the labels of similarly worded training documents",
    "similarly worded documents that have it",
  ],
  classifier: ["Classifier", "a neural classifier", "what the text is about as a whole"],
  retrieval: [
    "Description",
    "how close the text is in meaning to the label's description",
    "the meaning of its description",
  ],
  "name retrieval": [
    "Meaning of name",
    "how close the text is in meaning to the label's name",
    "the meaning of its name",
  ],
  "title svm": [
    "Words of title",
    "the words of the title, weighed by a linear model",
    "the words of the title",
  ],
  "title names": [
    "Name in title",
    "whether the label's names occur in the title",
    "its name in the title",
  ],
  "title name coverage": [
    "Words of name in title",
    "how much of one of the label's names is in the title",
    "the words of its name in the title",
  ],
  "title whole names": [
    "Whole name in title",
    "whether one of the label's names is in the title word by word",
    "its whole name in the title",
  ],
  "title name retrieval": [
    "Meaning of title",
    "how close the title is in meaning to the label's name",
    "the meaning of the title",
  ],
  attention: [
    "Words that matter",
    "a neural model that looks for each label at the words that matter for it",
    "the words that matter for it",
  ],
  reranker: [
    "Close reading",
    "a neural model that reads the text and the label's description together",
    "the text and its description read together",
  ],
  neighbours: [
    "Similar documents",
    "the labels of similar training documents",
    "similar documents that have it",
  ],
  examples: [
    "Examples",
    "how similar the text is to the label's examples",
    "the documents given as its examples",
  ],
  "title examples": [
    "Examples in title",
    "how similar the title is to the label's examples",
    "the words of the title that its examples have",
  ],
  "labels alike": [
    "Labels alike",
    "whether the text has the same other labels as the examples",
    "other labels that its examples share with the text",
  ],
  "name meaning": [
    "Meaning of name",
    "how close the text is in meaning to the label's name or description",
    "the meaning of its name",
  ],
  "example meaning": [
    "Meaning of examples",
    "how close the text is in meaning to the label's examples",
    "the meaning of the documents given as its examples",
  ],
  "likely documents": [
    "Likely documents",
    "how similar the text is to the training documents that probably have the label",
    "training documents that probably have it",
  ],
  "how broad it is": [
    "Breadth",
    "how common the words of its name are, how varied its examples, and how many documents fit",
    "how broad the label is",
  ],
};

/** Spans to highlight: words that count in favour of the label, strong ones more than weak ones. */
export function spansOf(why, text) {
  return [...marked(why.keywords, text), ...marked(why.name_words, text)];
}

function marked(found, text) {
  const strongest = Math.max(...found.map((word) => word.contribution), 1e-9);
  return found
    .filter((word) => word.contribution > 0)
    .flatMap((word) => {
      const strength = Math.ceil(3 * Math.min(1, word.contribution / strongest));
      return inUtf16(text, word.spans).map(([start, end]) => ({ start, end, strength }));
    });
}

/** The panel below a suggestion. `jump(start)` scrolls to a position in the text. */
export function explanation(why, text, jump) {
  const card = h("a", { href: labelAddress(why.label.id) }, "More about this label →");
  const about = aboutLabel({ ...why.label, description: why.description });
  const [title, words] = about ?? [];
  return [
    ...(about ? [h("section", {}, h("h4", {}, title), h("p", { class: "description" }, words))] : []),
    ...reasons(why, text, jump),
    h("p", { class: "onward" }, card),
  ];
}

/** The same without what the label's own page shows. */
export function reasons(why, text, jump) {
  const words = [keywords(why, text, jump), named(why, text, jump)];
  return [place(why), ...words, parts(why), neighbours(why)].filter((block) => block !== null);
}

function place(why) {
  const names = why.label.alt_names;
  const more = names.length > SHOWN_NAMES ? ` and ${names.length - SHOWN_NAMES} more` : "";
  const first = names.slice(0, SHOWN_NAMES).join(", ");
  const others = names.length ? ` Also called ${first}${more}.` : "";
  const rank = why.rank ? `Rank ${why.rank}` : "Not among the ranked labels";
  const sure = why.probability === null ? "" : `, ${percent(why.probability)} likely`;
  const said = ` ${rank}${sure}; ${trainedOn(why.label)}.${others}`;
  const line = h("p", { class: "muted place" }, bandIcon(why.label.band), said);
  for (const piece of relatives(why.label)) line.append(" ", piece);
  return line;
}

/** Labels that are broader and narrower than one, as links. */
export function relatives({ broader = [], narrower = [] }) {
  const listed = (title, some) => {
    const links = some
      .slice(0, SHOWN_RELATIVES)
      .flatMap(({ id, name }, i) => [i ? ", " : "", h("a", { href: labelAddress(id) }, name)]);
    const more = some.length - SHOWN_RELATIVES;
    return h("span", {}, `${title}: `, ...links, more > 0 ? ` and ${more} more.` : ".");
  };
  const found = [];
  if (broader.length) found.push(listed("Broader", broader));
  if (narrower.length) found.push(listed("Narrower", narrower));
  return found;
}

function keywords(why, text, jump) {
  const block = h("section", {}, h("h4", {}, "Keywords found in this text"));
  const none = "None of this label’s keywords are in the text.";
  const list = words(why.keywords, "the score for words", text, jump);
  block.append(why.keywords.length ? list : h("p", { class: "muted" }, none));
  return block;
}

function named(why, text, jump) {
  if (!why.name_words.length) return null;
  const list = words(why.name_words, "the similarity with the name", text, jump);
  return h("section", {}, h("h4", {}, "Words of the label’s name in this text"), list);
}

function words(found, sum, text, jump) {
  const most = Math.max(...found.map((word) => Math.abs(word.contribution)), 1e-9);
  const list = h("ul", { class: "words" });
  for (const word of found) {
    const spans = inUtf16(text, word.spans);
    const often = spans.length > 1 ? ` ×${spans.length}` : "";
    const about = {
      type: "button",
      class: "word",
      "aria-label": `${word.term}${often}: show in the text`,
      onclick: () => jump(spans[0]?.[0]),
    };
    const button = h("button", about, word.term, h("span", { class: "muted" }, often));
    const share = Math.abs(word.contribution) / most;
    const adds = `${signed(word.contribution)} to ${sum}`;
    const bar = h("span", { class: "mini", "--p": share, title: adds });
    list.append(h("li", {}, button, bar, spans.length ? inContext(text, spans[0]) : h("span")));
  }
  return list;
}

function inContext(text, [start, end]) {
  const flat = (part) => part.replace(/\s+/g, " ");
  const before = flat(text.slice(Math.max(0, start - AROUND), start));
  const after = flat(text.slice(end, end + AROUND));
  return h(
    "span",
    { class: "context" },
    h("span", { class: "before" }, before),
    h("b", {}, text.slice(start, end)),
    h("span", { class: "after" }, after),
  );
}

const listed = (words) => [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ");

/** The parts of the model in one sentence, for people who do not care for numbers. */
function inShort(why) {
  const words = (some) => some.map(({ name }) => PARTS[name]?.[2] ?? name);
  const ranked = [...why.parts].sort((a, b) => b.contribution - a.contribution);
  const [first, ...others] = words(ranked.filter(({ contribution }) => contribution > 0));
  const against = words(ranked.filter(({ contribution }) => contribution < 0).reverse());
  if (!first) return "Little speaks for this label.";
  const also = others.length ? `, and also ${listed(others)}` : "";
  const but = against.length ? ` Against it: ${listed(against)}.` : "";
  return `What speaks for it most: ${first}${also}.${but}`;
}

function parts(why) {
  const most = Math.max(...why.parts.map((part) => Math.abs(part.contribution)), 1e-9);
  const list = h("ul", { class: "parts" });
  for (const part of why.parts) {
    const [name, meaning] = PARTS[part.name] ?? [part.name, part.name];
    const place = part.rank ? `rank ${part.rank}` : "not ranked";
    const score = part.score === null ? "" : `; score ${part.score.toFixed(3)}`;
    list.append(
      h(
        "li",
        { title: `${meaning} (${part.name}${score})` },
        h("span", {}, name),
        h(
          "span",
          { class: `lean ${part.contribution < 0 ? "against" : "for"}`, "aria-hidden": "true" },
          h("i", { "--p": Math.abs(part.contribution) / most }),
        ),
        h("span", { class: "number" }, signed(part.contribution)),
        h("span", { class: "muted number" }, place),
      ),
    );
  }
  const sign = h("em", {}, " + in favour, − against");
  const unit = why.probability === null ? null : "in log-odds";
  const title = h("h4", { title: unit }, "What each part of the model adds", sign);
  return h(
    "section",
    {},
    h("p", { class: "plain-only" }, inShort(why)),
    h("div", { class: "expert-only" }, title, list),
  );
}

function neighbours(why) {
  const meaning = h("em", { class: "expert-only" }, " similarity: 1 is the same, 0 nothing");
  const title = h("h4", {}, "Similar training documents with this label", why.neighbours.length ? meaning : null);
  const block = h("section", {}, title);
  if (!why.neighbours.length) {
    const none = why.label.training_documents
      ? "No training document with this label is similar to this text."
      : "This label has no training documents.";
    block.append(h("p", { class: "muted" }, none));
    return block;
  }
  const list = h("ol", { class: "near" });
  for (const one of why.neighbours) {
    const similar = h("span", { class: "number expert-only" }, one.similarity.toFixed(2));
    const line = h("summary", {}, similar, h("span", { class: "line" }, one.text));
    const whole = h("p", {}, one.text, h("span", { class: "muted" }, ` (document ${one.id})`));
    list.append(h("li", {}, h("details", {}, line, whole)));
  }
  block.append(list);
  return block;
}

export const summary = (why) =>
  `${why.label.name}: ${plural(why.keywords.length, "keyword")} ` +
  `and ${plural(why.name_words.length, "word")} of its name found in the text, ` +
  `${plural(why.neighbours.length, "similar training document")}.`;
