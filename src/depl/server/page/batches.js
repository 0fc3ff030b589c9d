// Labels for many documents: a few per request, so that others are not kept waiting.

import { runState, service } from "./api.js";
import { readable } from "./editor.js";

const DOCUMENTS = 16; // per request, at most
const CHARACTERS = 200_000;

/** The first documents of a list that go into one request. */
function portion(documents) {
  let characters = 0;
  const some = [];
  for (const one of documents) {
    characters += one.text.length;
    if (some.length && (some.length === DOCUMENTS || characters > CHARACTERS)) break;
    some.push(one);
  }
  return some;
}

/**
 * Puts `labels` on every document that has none for this band; `told(done, all)` after each request.
 *
 * Labels from before the run has learnt are asked for again, and stay as `before`.
 * A busy service is asked again after as long as it says; whatever else goes wrong is thrown.
 */
export async function labelAll(documents, { k, band = null, told = () => {}, signal } = {}) {
  const isDone = (one) => one.labels && one.band === band && one.run === runState();
  let todo;
  const look = () => {
    todo = documents.filter((one) => !isDone(one));
    told(documents.length - todo.length, documents.length);
  };
  look();
  while (todo.length && !signal?.aborted) {
    const some = portion(todo);
    try {
      const texts = some.map(({ text }) => readable(text));
      const { results, run } = await service.predict(texts, { k, band }, signal);
      some.forEach((one, i) => {
        if (one.labels && one.run !== run) one.before = one.labels;
        Object.assign(one, { labels: results[i].labels, band, run });
      });
    } catch (error) {
      if (!error.after || error.status === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.after));
    }
    look();
  }
}
