// What the visitor may do here, and how to be allowed more.

import { $, h } from "./dom.js";
import { service } from "./api.js";

const code = (text) => h("code", {}, text);

/** By the reason why labels cannot be changed: what the chip says, and what to do about it. */
const ADVICE = {
  closed: [
    "Read-only",
    "This service was started for looking only: suggestions can be read, but not accepted, rejected or corrected.",
    "To allow it for people at this computer, start the service again with ",
    code("depl serve RUN --allow-writes"),
    ". To allow it for others, make a token for each of them with ",
    code("depl token --role feedback --name anna"),
    " and start the service with ",
    code("--tokens-file"),
    ".",
  ],
  "read-only": [
    "Read-only",
    "Whoever started this service wanted nobody to change anything.",
    "To allow it, start the service again without ",
    code("--read-only"),
    ".",
  ],
  elsewhere: [
    "Read-only",
    "Only people at the computer that the service runs on may change anything.",
    "For others, whoever runs the service can make a token with ",
    code("depl token --role feedback --name anna"),
    ".",
  ],
  reader: [
    "Read-only",
    "With your token you can look at suggestions, but not decide about them.",
    "To accept, reject and review, ask whoever runs the service for a token with the role “feedback”; to change the labels themselves, “edit”.",
  ],
  role: [
    "Feedback only",
    "With your token you can look at suggestions and decide about them, but not change the labels themselves.",
    "To add, rename or remove labels, ask whoever runs the service for a token with the role “edit”.",
  ],
};

const NOTHING = { name: "", feedback: "no", edit: "no", why_not: "closed", undo: null };

let current = NOTHING;

/** What the visitor may do: {name, feedback, edit, undo}; "token" means that one will be asked for. */
export const visitor = () => current;
export const mayEdit = () => current.edit !== "no";
export const mayDecide = () => current.feedback !== "no";

/** Asks the service who the visitor is, and shows it in the head of the page. */
export async function meetVisitor() {
  current = await service.visitor();
  const reader = current.why_not === "role" && !mayDecide();
  const [chip, ...advice] = ADVICE[reader ? "reader" : current.why_not] ?? ["Read-only", ""];
  $("read-only").hidden = !current.why_not;
  $("read-only").textContent = mayDecide() ? chip : "Read-only";
  const [why, ...how] = advice;
  $("allow-words").replaceChildren(h("p", {}, why), h("p", {}, ...how));
  $("visitor").textContent = current.name && current.name !== "token" ? current.name : "";
  $("visitor").hidden = !$("visitor").textContent;
  document.body.classList.toggle("deciding", mayDecide());
  document.body.classList.toggle("editing", mayEdit());
}

$("read-only").addEventListener("click", () => $("allow").showModal());
$("allow-close").addEventListener("click", () => $("allow").close());
