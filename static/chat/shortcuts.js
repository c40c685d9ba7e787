// Keys for the whole page. Letters alone are never taken: they are words.

const MAC = /Mac|iP(hone|ad)/.test(navigator.platform);

/** `keys`: {search, create, help, previous(event), next(event), quote, box, stop() -> whether it did, editLast() -> the
 * same}. */
export function listen(keys, box) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const control = (MAC ? event.metaKey : event.ctrlKey) && !event.altKey;
    const key = event.key.toLowerCase();
    if (control && !event.shiftKey && key === "k") take(event, keys.search);
    else if (control && event.shiftKey && key === "o") take(event, keys.create);
    else if (control && (key === "/" || event.code === "Slash")) take(event, keys.help);
    else if (event.altKey && !event.ctrlKey && !event.metaKey && key === "arrowup") keys.previous(event);
    else if (event.altKey && !event.ctrlKey && !event.metaKey && key === "arrowdown") keys.next(event);
    else if (event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyQ") take(event, keys.quote);
    else if (event.shiftKey && key === "escape") take(event, keys.box);
    else if (key === "escape" && keys.stop()) event.preventDefault();
    else if (event.key === "?" && !isWriting(event.target)) take(event, keys.help);
    else if (key === "arrowup" && event.target === box && !box.value && keys.editLast()) event.preventDefault();
  });
}

/** The names of keys as they stand on this machine's keyboard. */
export function nameKeys(root) {
  if (!MAC) return;
  for (const node of root.querySelectorAll("kbd")) {
    node.textContent = { Ctrl: "⌘", Alt: "⌥", Shift: "⇧" }[node.textContent] ?? node.textContent;
  }
}

function take(event, action) {
  event.preventDefault();
  action();
}

function isWriting(node) {
  return node instanceof Element && node.matches("input, textarea, select, [contenteditable]");
}
