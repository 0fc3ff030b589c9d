// Puts the page together: which view is shown, what the service is, what changes with it.

import { $, count, labelAddress, plural, showTrouble, toast } from "./dom.js";
import { keepToken, service, token } from "./api.js";
import { Edit, offerToken } from "./edit.js";
import { Labels } from "./labels.js";
import { Suggest } from "./suggest.js";

const VIEWS = ["suggest", "labels", "label"];

offerToken();
const suggest = new Suggest();
const edit = new Edit(labelsChanged, () => suggest.text);
const labels = new Labels(edit, suggest.editor);

async function learnAbout() {
  try {
    const info = await service.info();
    describe(info);
    suggest.inform(info);
    labels.inform(info);
  } catch (error) {
    showTrouble($("trouble"), error, start);
    if (error.after) setTimeout(start, 1000 * error.after);
    return false;
  }
  $("trouble").hidden = true;
  return true;
}

function describe(info) {
  const size = `${plural(info.labels, "label")}, ${count(info.documents)} training documents`;
  $("run").textContent = `${info.name}: ${size}`;
  $("run").title = `depl ${info.version}; parts: ${info.parts.join(", ")}`;
  $("read-only").hidden = info.writable;
  $("forget").hidden = !token();
  $("add-here").hidden = !info.writable;
}

/** After a change: everything is asked anew, and a new label is shown where one is looking. */
async function labelsChanged(added = null) {
  await learnAbout();
  await suggest.ask();
  if (added === null) labels.refresh();
  else if ($("view-suggest").hidden) location.hash = labelAddress(added);
  else if (!suggest.list.goTo(added) && suggest.text.trim()) {
    edit.note("Added, but not suggested for this text. Example documents help.");
  }
}

function route(event) {
  const [view, id] = location.hash.slice(1).split("/");
  const shown = VIEWS.includes(view) ? view : "suggest";
  if (view === "main") return; // the skip link
  for (const name of VIEWS) $(`view-${name}`).hidden = name !== shown;
  for (const name of ["suggest", "labels"]) {
    const current = shown === name || (shown === "label" && name === "labels");
    if (current) $(`nav-${name}`).setAttribute("aria-current", "page");
    else $(`nav-${name}`).removeAttribute("aria-current");
  }
  document.title = shown === "labels" ? "Labels – depl" : "depl";
  if (shown === "labels") labels.browse();
  if (event) scrollTo(0, 0);
  if (shown !== "label") return;
  labels.card(decodeURIComponent(id)).then(() => event && $("label-name")?.focus());
}

async function start() {
  if (await learnAbout()) route();
}

$("forget").addEventListener("click", () => {
  keepToken("");
  $("forget").hidden = true;
  toast("The token is forgotten.");
});
$("add-here").addEventListener("click", () => edit.add());
addEventListener("hashchange", route);
start();
