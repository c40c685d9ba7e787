// What a tab keeps for as long as it lives: drafts, words on their way, and quotes that wait. The tab's storage holds
// it over a fresh start of the page. Where that is full or forbidden, it is kept until then all the same.

const held = new Map();

export function kept(name) {
  return held.has(name) ? held.get(name) : sessionStorage.getItem(name);
}

/** Keep `text` under `name`; what is blank is forgotten. */
export function keep(name, text) {
  held.set(name, text || null);
  sessionStorage.removeItem(name);
  if (!text) return;
  try {
    sessionStorage.setItem(name, text);
  } catch {
    // Too large for the tab's storage.
  }
}

/** What is kept under names that begin like this: the rests of the names. */
export function keptNames(beginning) {
  const names = new Set([...Object.keys(sessionStorage), ...held.keys()]);
  return [...names]
    .filter((name) => name.startsWith(beginning) && kept(name))
    .map((name) => name.slice(beginning.length));
}
