// The service's answers as promises; what went wrong as errors that say what to do.

const KEY = "depl-token";

export class ServiceError extends Error {
  constructor(title, message, { status = 0, retry = false, after = null } = {}) {
    super(message);
    this.title = title;
    this.status = status;
    this.retry = retry;
    this.after = after; // seconds until it is worth trying again, where that is known
  }
}

// Storage can be forbidden; the page works without it.
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
    // Then it is asked for again.
  }
}

let askForToken = async () => false;

/** `ask` resolves to whether there is a token to try; called when the service wants one. */
export function whenRefused(ask) {
  askForToken = ask;
}

export async function call(method, path, { body, signal } = {}) {
  const used = token();
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (used) headers.Authorization = `Bearer ${used}`;
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(
      navigator.onLine ? "The service cannot be reached." : "You are offline.",
      "Nothing is lost: what you typed is still here.",
      { retry: true, after: 5 },
    );
  }
  if (response.status === 401) {
    if (await askForToken(used !== "")) return call(method, path, { body, signal });
  }
  if (!response.ok) throw await whatWentWrong(response);
  return response.status === 204 ? null : response.json();
}

async function whatWentWrong(response) {
  const answer = await response.json().catch(() => ({}));
  const message = answer.error?.message ?? `The service answered ${response.status}.`;
  const { status } = response;
  const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  if (status === 503 || status === 429) {
    const after = Number.isFinite(seconds) ? seconds : 3;
    return new ServiceError("The service is busy.", message, { status, retry: true, after });
  }
  if (status === 401) {
    return new ServiceError("A token is needed.", message, { status, retry: true });
  }
  if (status === 403) return new ServiceError("That is not allowed here.", message, { status });
  if (status === 404) return new ServiceError("There is no such label.", message, { status });
  if (status === 413) return new ServiceError("This text is too long.", message, { status });
  if (status >= 500) {
    const title = status === 504 ? "That took too long." : "The service failed.";
    return new ServiceError(title, message, { status, retry: true });
  }
  return new ServiceError("The service refused that.", message, { status });
}

const label = (id) => `v1/labels/${encodeURIComponent(id)}`;

export const service = {
  info: (signal) => call("GET", "v1/info", { signal }),
  predict: (texts, { k, band = null }, signal) =>
    call("POST", "v1/predict", { body: { texts, k, threshold: null, band }, signal }),
  explain: (text, id, signal) => call("POST", "v1/explain", { body: { text, label: id }, signal }),
  labels: (query, signal) => call("GET", `v1/labels?${new URLSearchParams(query)}`, { signal }),
  label: (id, signal) => call("GET", label(id), { signal }),
  add: (body) => call("POST", "v1/labels", { body }),
  change: (id, body) => call("PATCH", label(id), { body }),
  remove: (id) => call("DELETE", label(id)),
  undo: () => call("POST", "v1/labels/undo"),
};
