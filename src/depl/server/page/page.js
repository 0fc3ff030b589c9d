// Puts the page together: which view is shown, and what the service says about itself.

import { $, labelAddress, plural, showTrouble, toast } from "./dom.js";
import { keepToken, service, token } from "./api.js";
import { learnBands } from "./bands.js";
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
    learnBands(info.bands);
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
  const size = [plural(info.labels, "label"), plural(info.documents, "training document")];
  $("run").textContent = `${info.name}: ${size.join(", ")}`;
  $("run").title = `depl ${info.version}; parts of the model: ${info.parts.join(", ")}`;
  $("read-only").hidden = info.writable;
  $("forget").hidden = !token();
  $("add-here").hidden = !info.writable;
  document.body.classList.toggle("writable", info.writable);
}

/** After a change: loads everything again, and shows a new label where the user is. */
async function labelsChanged(added = null) {
  await learnAbout();
  await suggest.ask();
  if (added === null) labels.refresh();
  else if ($("view-suggest").hidden) location.hash = labelAddress(added);
  else if (!suggest.list.goTo(added) && suggest.text.trim()) {
    edit.note("Added, but not suggested for this text. Example documents may help.");
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
  toast("Token forgotten.");
});
$("add-here").addEventListener("click", () => edit.add());
addEventListener("hashchange", route);
start();
