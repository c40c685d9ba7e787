// Copying, and saying on the button that it was done.

import { icon } from "./elements.js";
import { say } from "./words.js";

const SAID_MS = 2000;

/** Copy text. Where the browser has no clipboard for us (a page without HTTPS), the old way still works. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = document.createElement("textarea");
    const focused = document.activeElement;
    box.value = text;
    box.className = "unseen";
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    focused?.focus({ preventScroll: true });
    return done;
  }
}

/** A button's own copying: its icon and its words say "copied" for a moment. */
export async function copyBy(button, text) {
  if (!(await copyText(text))) return;
  const label = button.querySelector(".label");
  const sign = button.querySelector("svg");
  const done = icon("done");
  sign.replaceWith(done);
  label.textContent = say("copied");
  button.title = say("copied");
  setTimeout(() => {
    done.replaceWith(icon("copy"));
    label.textContent = button.dataset.label;
    button.title = button.dataset.label;
  }, SAID_MS);
}
