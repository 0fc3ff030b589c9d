// Suggestions as tab-separated text, CSV and JSON.

const COLUMNS = ["rank", "id", "name", "probability", "training_documents", "band", "decision"];

const rounded = (p) => (p === undefined ? null : Number(p.toFixed(4))); // of an added label
const rowsOf = (labels) =>
  labels.map((label, i) => ({ ...label, rank: i + 1, probability: rounded(label.probability) }));

/** A text that a spreadsheet would take for a formula gets an apostrophe; a number is harmless. */
function safeCell(value) {
  const text = String(value ?? "");
  const formula = /^(\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/.test(text);
  return formula && !/^[+-]?\d+([.,]\d+)*$/.test(text) ? `'${text}` : text;
}

export function tabSeparated(labels) {
  const clean = (value) => safeCell(value).replace(/[\t\r\n]+/g, " ");
  const lines = rowsOf(labels).map((row) => COLUMNS.map((column) => clean(row[column])).join("\t"));
  return [COLUMNS.join("\t"), ...lines].join("\n");
}

/**
 * `results`: a list of {name, labels}, one for each document. It begins with a byte order mark,
 * without which Excel takes it for another encoding.
 */
export function commaSeparated(results) {
  const quoted = (value) => {
    const text = safeCell(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const line = (name, row) => [name, ...COLUMNS.map((column) => row[column])].map(quoted).join(",");
  const lines = results.flatMap(({ name, labels }) => rowsOf(labels).map((row) => line(name, row)));
  return `\ufeff${[["document", ...COLUMNS].join(","), ...lines, ""].join("\r\n")}`;
}

export function asJson(results, { run, threshold, band }) {
  const documents = results.map(({ name, labels }) => ({ document: name, labels: rowsOf(labels) }));
  return `${JSON.stringify({ run, threshold, band, documents }, null, 2)}\n`;
}

export function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** Puts text on the clipboard; over plain HTTP, browsers offer only the old way. */
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const holder = document.createElement("textarea");
  holder.value = text;
  holder.className = "unseen";
  document.body.append(holder);
  holder.select();
  const done = document.execCommand("copy");
  holder.remove();
  if (!done) throw new Error("the browser does not allow it.");
}
