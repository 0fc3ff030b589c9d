// Requests to the service; failures become errors that say what happened and what to do.

const KEY = "depl-token";

export class ServiceError extends Error {
  constructor(title, message, { status = 0, retry = false, after = null } = {}) {
    super(message);
    this.title = title;
    this.status = status;
    this.retry = retry;
    this.after = after; // seconds after which trying again makes sense, if known
  }
}

// Browsers can forbid storage; the page works without it.
export function token() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

export function keepToken(value) {
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // The page will ask for it again.
  }
}

let askForToken = async () => false;

/** Sets what asks for a token when the service needs one; it resolves to whether one was given. */
export function whenRefused(ask) {
  askForToken = ask;
}

let tokenGiven = () => {};

/** Sets what is done when a request has been sent again with a token that was asked for. */
export function whenGiven(act) {
  tokenGiven = act;
}

let state = null; // of the run that answered last: another one when it has learnt
let tellRenewed = () => {};

/** Sets what is done when the run has learnt, or was fitted again, while the page is open. */
export function whenRenewed(act) {
  tellRenewed = act;
}

/** What suggestions depend on: those of another state of the run are out of date. */
export const runState = () => state;

function noticing(answer) {
  const before = state;
  state = answer.run;
  if (before !== null && before !== state) tellRenewed();
  return answer;
}

const RUNS = "v1/runs";

/** The name of the run that the address names; null: the first of the service. */
export function runHere() {
  const found = location.pathname.match(/\/runs\/([^/]+)\/$/);
  return found && decodeURIComponent(found[1]);
}

/** The page of a run that is not the first is at runs/NAME/, and what it asks at v1/runs/NAME/. */
function address(path) {
  const run = runHere();
  if (run === null) return path;
  return path === RUNS ? `../../${path}` : `../../${RUNS}/${encodeURIComponent(run)}${path.slice(2)}`;
}

/** The address of another run's page. */
export function pageOf(run) {
  return `${runHere() === null ? "" : "../../"}runs/${encodeURIComponent(run)}/`;
}

export async function call(method, path, { body, signal } = {}) {
  const used = token();
  const headers = { Accept: "application/json" };
  const file = body instanceof Blob;
  if (body !== undefined) headers["Content-Type"] = `application/${file ? "octet-stream" : "json"}`;
  if (used) headers.Authorization = `Bearer ${used}`;
  let response;
  try {
    const sent = file ? body : JSON.stringify(body);
    response = await fetch(address(path), { method, headers, signal, body: sent });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(
      navigator.onLine ? "The service cannot be reached." : "You are offline.",
      "Nothing you typed is lost.",
      { retry: true, after: 5 },
    );
  }
  if (response.status === 401) {
    if (await askForToken(used !== "")) {
      return call(method, path, { body, signal }).finally(tokenGiven);
    }
  }
  if (!response.ok) throw await whatWentWrong(response);
  return response.status === 204 ? null : response.json();
}

async function whatWentWrong(response) {
  const answer = await response.json().catch(() => ({}));
  const { status } = response;
  const failure = (title, message, more = {}) =>
    new ServiceError(title, message, { status, ...more });
  if (status === 429 && /wrong tokens/.test(answer.error?.message)) {
    const wait = "Wait a minute, then try again.";
    return failure("Too many wrong tokens were tried from here.", wait, { retry: true });
  }
  if (status === 503 || status === 429) {
    const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
    const after = Number.isFinite(seconds) ? seconds : 3;
    return failure("The service is busy.", "Try again in a moment.", { retry: true, after });
  }
  if (status === 504) {
    return failure("This took too long.", "The service is busy. Try again later.", { retry: true });
  }
  if (status === 401) {
    return failure("A token is needed.", "Try again to enter it.", { retry: true });
  }
  if (status === 403) {
    return failure("This is not allowed here.", "“Read-only” above says how to allow it.");
  }
  if (status === 404) return failure("This does not exist.", "It may have been removed.");
  if (status === 413) return failure("This is too long.", "Use fewer or shorter documents.");
  const reason = forPeople(answer.error?.message);
  if (status >= 500) {
    const unknown = "Try again. If that does not help, tell whoever runs this service.";
    return failure("Something went wrong.", reason ?? unknown, { retry: true });
  }
  return failure("This did not work.", reason ?? "Check what you entered, and try again.");
}

/** What the service says, unless it is meant for programs. */
function forPeople(reason = "") {
  const technical = /\/v1|HTTP|header|JSON|Bearer/;
  const aboutFields = /^[a-z_]+(\.\w+)* (must|is missing|is not a known field)/;
  return technical.test(reason) || aboutFields.test(reason) ? undefined : reason || undefined;
}

const label = (id) => `v1/labels/${encodeURIComponent(id)}`;

export const service = {
  info: async () => noticing(await call("GET", "v1/info")),
  /** The labels of texts, most likely first: the service itself may put a rare one before. */
  predict: async (texts, { k, band = null }, signal) => {
    const body = { texts, k, threshold: null, band };
    const answer = noticing(await call("POST", "v1/predict", { body, signal }));
    for (const { labels } of answer.results) labels.sort((a, b) => b.probability - a.probability);
    return answer;
  },
  explain: (text, id, signal) => call("POST", "v1/explain", { body: { text, label: id }, signal }),
  extract: (file) =>
    call("POST", `v1/extract?${new URLSearchParams({ name: file.name.slice(-500) })}`, { body: file }),
  /** The documents of a table; `chosen`: its sheet, its columns of text, and that of the id. */
  table: (file, { sheet, text = [], id } = {}) => {
    const query = new URLSearchParams({ name: file.name.slice(-500) });
    for (const column of text) query.append("text", column);
    if (sheet) query.set("sheet", sheet);
    if (id !== undefined) query.set("id", id); // empty: rows are numbered
    return call("POST", `v1/table?${query}`, { body: file });
  },
  columns: (file, sheet) => {
    const query = new URLSearchParams({ name: file.name.slice(-500), ...(sheet ? { sheet } : {}) });
    return call("POST", `v1/table/columns?${query}`, { body: file });
  },
  runs: () => call("GET", RUNS),
  visitor: () => call("GET", "v1/visitor"),
  level: (query, signal) => call("GET", `v1/hierarchy?${new URLSearchParams(query)}`, { signal }),
  labels: (query, signal) => call("GET", `v1/labels?${new URLSearchParams(query)}`, { signal }),
  label: (id, signal) => call("GET", label(id), { signal }),
  add: (body) => call("POST", "v1/labels", { body }),
  change: (id, body) => call("PATCH", label(id), { body }),
  remove: (id) => call("DELETE", label(id)),
  undo: () => call("POST", "v1/labels/undo"),
  decide: (body) => call("POST", "v1/feedback", { body }),
  decisions: (document) =>
    call("GET", `v1/feedback?${new URLSearchParams({ document, limit: 200 })}`),
  review: {
    progress: () => call("GET", "v1/review"),
    add: (documents) => call("POST", "v1/review/documents", { body: { documents } }),
    next: () => call("POST", "v1/review/next"),
    document: (number) => call("GET", `v1/review/${number}`),
    mark: (number, state) => call("POST", `v1/review/${number}`, { body: { state } }),
  },
  takeBack: (number) => call("DELETE", `v1/feedback/${number}`),
};
