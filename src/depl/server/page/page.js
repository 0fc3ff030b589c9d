// Puts the page together: which view is shown, and what the service says about itself.

import { $, labelAddress, plural, showCodes, showTrouble, toast } from "./dom.js";
import { keepToken, pageOf, runHere, service, token, whenGiven, whenRenewed } from "./api.js";
import { learnBands } from "./bands.js";
import { Collection } from "./collection.js";
import { Desk } from "./desk.js";
import { keep, recall } from "./drafts.js";
import { Edit, offerToken } from "./edit.js";
import { Labels } from "./labels.js";
import { Review } from "./review.js";
import { Suggest } from "./suggest.js";
import { mayDecide, mayEdit, meetVisitor } from "./visitor.js";

// By the name in the address: the section that is shown, and the entry of the navigation.
const VIEWS = {
  suggest: ["suggest", "suggest"],
  documents: ["documents", "documents"],
  review: ["suggest", "review"],
  labels: ["labels", "labels"],
  label: ["label", "labels"],
};
const TITLES = { documents: "Documents – depl", review: "Review – depl", labels: "Labels – depl" };

offerToken();
const desk = new Desk();
const suggest = new Suggest(desk);
const collection = new Collection(desk, suggest);
const review = new Review(desk, suggest.list);
const edit = new Edit(labelsChanged, () => suggest.text);
const labels = new Labels(edit, suggest.editor);

let known = null; // what the service said about itself last

async function learnAbout() {
  try {
    const [info, { runs }] = await Promise.all([service.info(), service.runs(), meetVisitor()]);
    known = info;
    learnBands(info.bands);
    describe(info, runs);
    suggest.inform(info);
    await labels.inform();
  } catch (error) {
    showTrouble($("trouble"), error, start);
    if (error.after) setTimeout(start, 1000 * error.after);
    return false;
  }
  $("trouble").hidden = true;
  return true;
}

function describe(info, runs) {
  const size = [plural(info.labels, "label"), plural(info.documents, "training document")];
  const names = runs.map((run) => run.name);
  const several = names.length > 1;
  $("run").textContent = several ? size.join(", ") : `${info.name}: ${size.join(", ")}`;
  $("runs").hidden = !several;
  showCodes(info.codes);
  $("choose-run").replaceChildren(...names.map((name) => new Option(name)));
  $("choose-run").value = runHere() ?? names[0];
  $("for-programs").href = `${runHere() === null ? "" : "../../"}docs`;
  $("run").title = `depl ${info.version}; parts of the model: ${info.parts.join(", ")}`;
  permit();
}

/** Shows what the visitor may use. */
function permit() {
  $("forget").hidden = !token();
  for (const id of ["add", "undo", "add-here"]) $(id).hidden = !mayEdit();
  for (const id of ["documents-review", "nav-review"]) $(id).hidden = !mayDecide();
  labels.permit();
}

/** A token was given: whose it is, and what it allows, is known only now. */
async function meetAgain() {
  try {
    await meetVisitor();
  } catch {
    return; // the request that needed the token has said what is wrong
  }
  permit();
  if (review.active && !mayDecide()) location.hash = "#suggest";
}

/** The run has learnt from what people decided, or was fitted again: what is shown is renewed. */
async function renewed() {
  const before = known?.documents;
  if (before === undefined || !(await learnAbout())) return;
  const more = known.documents - before;
  const why = more > 0 ? `depl has learnt from ${plural(more, "more document")}` : "The run has changed";
  toast(`${why}: labels are suggested anew.`);
  if (!$("view-documents").hidden) collection.show();
  else if (!$("view-suggest").hidden) suggest.ask();
  else labels.refresh();
}

/** Somebody is here again, or looks at something else: the run may have learnt meanwhile. */
function lookAgain() {
  if (known && document.visibilityState === "visible") service.info().catch(() => {});
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
  const [wanted, id] = location.hash.slice(1).split("/");
  if (wanted === "main") return; // the skip link
  let name = wanted in VIEWS ? wanted : "suggest";
  if (name === "review" && known && !mayDecide()) {
    name = "suggest";
    history.replaceState(null, "", "#suggest");
    toast("You can look at suggestions here, but not review them. “Read-only” says how to allow it.");
  }
  const [section, entry] = VIEWS[name];
  for (const one of ["suggest", "documents", "labels", "label"]) {
    $(`view-${one}`).hidden = one !== section;
  }
  for (const one of ["suggest", "documents", "review", "labels"]) {
    if (one === entry) $(`nav-${one}`).setAttribute("aria-current", "page");
    else $(`nav-${one}`).removeAttribute("aria-current");
  }
  document.title = TITLES[name] ?? "depl";
  if (name === "review") review.enter();
  else review.leave();
  if (name === "documents") collection.show();
  else collection.leave();
  if (name === "labels") labels.browse();
  if (event) {
    scrollTo(0, 0);
    lookAgain();
  }
  if (name !== "label") return;
  labels.card(decodeURIComponent(id)).then(() => event && $("label-name")?.focus());
}

/** Plain words, or all numbers; remembered in this browser. */
function setExpert(on) {
  document.body.classList.toggle("expert", on);
  $("expert").setAttribute("aria-pressed", on);
  keep("expert", on);
}

async function start() {
  if (await learnAbout()) route();
}

$("expert").addEventListener("click", () => setExpert(!document.body.classList.contains("expert")));
$("forget").addEventListener("click", () => {
  keepToken("");
  $("forget").hidden = $("visitor").hidden = true;
  toast("Signed out: the token is forgotten.");
});
$("choose-run").addEventListener("change", () => location.assign(pageOf($("choose-run").value)));
$("add-here").addEventListener("click", () => edit.add($("attach").value));
addEventListener("hashchange", route);
document.addEventListener("visibilitychange", lookAgain);
whenGiven(meetAgain);
whenRenewed(renewed);
recall("expert").then((on) => on && setExpert(true));
await desk.restore();
start();
