// Files into documents: tables by rows, PDF, Word and HTML by the service, plain text here.

import { service } from "./api.js";
import { plural, wording } from "./dom.js";

const MOST_BYTES = 16_000_000;
const TABLE = /\.(csv|tsv|tab|xlsx|xlsm|xls|ods|jsonl|ndjson|json|parquet|mrc|marc|marcxml)(\.(gz|bz2|xz|zst))?$/i;
const MARKUP = /\.x?html?$/i;
const BY_SERVICE = /\.(pdf|docx|x?html?)$/i;
const UNREAD = "script,style,noscript,template,head";
const BLOCKS =
  "p,div,li,h1,h2,h3,h4,h5,h6,tr,br,section,article,header,footer,blockquote,pre,dt,dd";

/**
 * The documents in these files; sentences about what was taken from tables, and about files and
 * rows that cannot be read. `tables`: how each table was read. `unclear`: files of which nobody but
 * people can say which column has the text.
 */
export async function readFiles(files) {
  const found = { documents: [], notes: [], refused: [], tables: [], unclear: [] };
  for (const file of files) {
    try {
      if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than 16 MB.`);
      if (TABLE.test(file.name)) await readTable(file, {}, found);
      else found.documents.push({ name: file.name, text: await textOf(file) });
    } catch (error) {
      if (error.status === 422 && TABLE.test(file.name) && (await isUnclear(file))) {
        found.unclear.push(file);
        continue;
      }
      const about = [422, 501].includes(error.status) || !error.title;
      found.refused.push(about ? error.message : `${file.name}: ${wording(error)}`);
    }
  }
  return found;
}

/** Whether a file is a table, and nothing shows which of its columns has the text. */
async function isUnclear(file) {
  const { columns, text } = await service.columns(file).catch(() => ({ columns: [], text: [] }));
  return columns.length > 0 && !text.length;
}

/** Adds the documents of a table to those found; `chosen`: its sheet, text and id, as people chose. */
export async function readTable(file, chosen, { documents, notes, refused, tables }) {
  const table = await service.table(file, chosen);
  const rows = plural(table.documents.length, "document");
  const columns = table.text.length ? `, text from ${table.text.join(" + ")}` : "";
  const unread = !chosen.sheet && /^sheet .*\(not read: /.test(table.described) ? `, from ${table.described}` : "";
  const cut = table.cut ? "; only the first rows, the table has more" : "";
  if (!table.documents.length && !table.left_out) throw new Error(`There is no record in ${file.name}.`);
  notes.push(`${file.name}: ${rows}${unread}${columns}${cut}.`);
  if (table.left_out) {
    const [first] = table.reasons;
    refused.push(`${plural(table.left_out, "row")} left out, such as ${first}.`);
  }
  const key = `${file.name} ${Date.now()} ${tables.length}`;
  tables.push({ key, file, described: table.described, text: table.text, id: table.id, chosen });
  const alone = table.documents.length === 1;
  for (const { id, text, numbered } of table.documents) {
    const row = numbered ? `${file.name}:${id}` : undefined; // a number names no document elsewhere
    documents.push({ name: alone ? file.name : id, text, row, table: key });
  }
}

async function textOf(file) {
  const text = decode(await file.arrayBuffer());
  if (BY_SERVICE.test(file.name) || text === null) {
    try {
      return (await service.extract(file)).text;
    } catch (error) {
      // A service without the libraries for documents leaves HTML to the browser.
      if (error.status !== 501 || !MARKUP.test(file.name)) throw error;
      return plainText(text);
    }
  }
  return text;
}

function decode(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const [first, second] = new Uint8Array(bytes.slice(0, 2));
    const little = first === 0xff && second === 0xfe; // the byte order marks of UTF-16
    const big = first === 0xfe && second === 0xff;
    const encoding = little ? "utf-16le" : big ? "utf-16be" : "windows-1252";
    text = new TextDecoder(encoding).decode(bytes);
  }
  return text.includes("\0") ? null : text.replace(/\r\n?/g, "\n");
}

/** The words of an HTML page, one line per block. Nothing in the parsed page is run. */
function plainText(markup) {
  const page = new DOMParser().parseFromString(markup, "text/html");
  for (const element of page.querySelectorAll(UNREAD)) element.remove();
  for (const block of page.querySelectorAll(BLOCKS)) block.append("\n");
  const lines = page.documentElement.textContent.split("\n");
  const tidy = lines.map((line) => line.replace(/\s+/g, " ").trim());
  return tidy.join("\n").replace(/\n{3,}/g, "\n\n").trim();
}
