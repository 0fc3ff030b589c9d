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

async function within(mode, act) {
  try {
    const store = (await database()).transaction(STORE, mode).objectStore(STORE);
    return await new Promise((resolve, reject) => {
      const request = act(store);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return undefined;
  }
}

/** Each run of a service has a page of its own, and what is decided there is about that run. */
const own = (key) => `${location.pathname} ${key}`;

export const recall = (key) => within("readonly", (store) => store.get(own(key)));
export const keep = (key, value) => within("readwrite", (store) => store.put(value, own(key)));

/** A short name for a text, so that what is kept about it need not hold the text again. */
export function digest(text) {
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
