// A sentence that says what was done, for a while, with a way to take it back.

import { element, icon } from "./elements.js";
import { say } from "./words.js";

const SHOWN_MS = 12000;

export class Toasts {
  /** `place` is a live region; `onGone` gets the focus where it was lost with the toast. */
  constructor(place, onGone) {
    Object.assign(this, { place, onGone });
    this.current = null;
  }

  /** `undo`: called when the person takes it back. With `focus` the button is under the reader's fingers at once. */
  show(text, { undo, focus = false } = {}) {
    this.hide();
    const button = undo
      ? element("button", { class: "button undo", type: "button", onclick: () => { this.hide(); undo(); } }, say("undo"))
      : null;
    const node = element(
      "div",
      { class: "toast" },
      element("span", {}, text),
      button,
      element("button", { class: "icon-button", type: "button", "aria-label": say("dismiss"), onclick: () => this.hide() }, icon("close")),
    );
    this.current = node;
    this.place.append(node);
    node.addEventListener("pointerenter", () => clearTimeout(this.timer));
    node.addEventListener("pointerleave", () => this.start());
    this.start();
    if (focus) button?.focus();
  }

  start() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.hide(), SHOWN_MS);
  }

  hide() {
    clearTimeout(this.timer);
    if (!this.current) return;
    const focused = this.current.contains(document.activeElement);
    this.current.remove();
    this.current = null;
    if (focused) this.onGone();
  }
}
