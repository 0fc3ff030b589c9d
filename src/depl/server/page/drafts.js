// What must survive a reload, kept in this browser: open documents and what was decided about them.

const STORE = "drafts";

let opened = null;

/** Browsers can forbid storage; the page works without it, and forgets. */
function database() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("depl", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

/** Calls back when the transaction is over: only then is what it wrote sure to be there. */
async function within(mode, act) {
  const transaction = (await database()).transaction(STORE, mode);
  const request = act(transaction.objectStore(STORE));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** Each run of a service has a page of its own, and what is decided there is about that run. */
const own = (key) => `${location.pathname} ${key}`;

// A page that goes does not wait for its database. What is not confirmed by then is handed over
// in the session's storage, which is written at once; so is what a tab has of its own, as another
// tab may have kept something else in the database since.
const unconfirmed = new Map();
const ofTab = new Map();
let leaving = false;

function handOver(name) {
  try {
    sessionStorage.setItem(name, JSON.stringify(unconfirmed.get(name) ?? ofTab.get(name)));
  } catch {
    // forbidden, or too large: the database may still be in time
  }
}

addEventListener("pagehide", () => {
  leaving = true;
  for (const name of new Set([...unconfirmed.keys(), ...ofTab.keys()])) handOver(name);
});
addEventListener("pageshow", () => (leaving = false));

function handedOver(name) {
  try {
    const text = sessionStorage.getItem(name);
    sessionStorage.removeItem(name);
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What was kept; with ``each``, what this tab had, if it had anything, and not another one. */
export async function recall(key, { each = false } = {}) {
  const name = own(key);
  const handed = handedOver(name);
  if (handed !== undefined) keep(key, handed, { each });
  if (unconfirmed.has(name)) return unconfirmed.get(name);
  try {
    const kept = await within("readonly", (store) => store.get(name));
    if (each && kept !== undefined && !ofTab.has(name)) ofTab.set(name, kept);
    return kept;
  } catch {
    return undefined;
  }
}

export async function keep(key, value, { each = false } = {}) {
  const name = own(key);
  unconfirmed.set(name, value);
  if (each) ofTab.set(name, value);
  if (leaving) handOver(name);
  try {
    await within("readwrite", (store) => store.put(value, name));
  } catch {
    return;
  }
  if (unconfirmed.get(name) === value) unconfirmed.delete(name);
}

/** A short name for a text, so that what is kept about it need not hold the text again. */
export function digest(raw) {
  const text = raw.replace(/\r\n?/g, "\n"); // as in the field for the text
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return `${text.length}-${(a >>> 0).toString(36)}${(b >>> 0).toString(36)}`;
}
