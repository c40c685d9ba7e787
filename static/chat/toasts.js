// Sentences that say what was done, for a while, each with a way to take it back. They stand side by side.

import { element, icon } from "./elements.js";
import { say } from "./words.js";

const SHOWN_MS = 6000;
const UNDO_MS = 12000;
const SHOWN_MAX = 4;

export class Toasts {
  /** `place` is a live region; `onGone` gets the focus where it was lost with the last toast. */
  constructor(place, onGone) {
    Object.assign(this, { place, onGone });
    this.shown = []; // {about, node, timer}, the newest last
  }

  /**
   * `undo`: called when the person takes it back. With `focus` the button is under the reader's fingers at once. What
   * is said `about` a thing (its name) takes the place of what was said about it before; so does what is about nothing.
   */
  show(text, { undo, focus = false, about = "" } = {}) {
    for (const old of this.shown.filter((toast) => toast.about === about)) this.hide(old, { refocus: false });
    while (this.shown.length >= SHOWN_MAX) this.hide(this.shown[0], { refocus: false });
    const toast = { about, shownMs: undo ? UNDO_MS : SHOWN_MS };
    const button = undo
      ? element(
          "button",
          {
            class: "button undo",
            type: "button",
            onclick: () => {
              this.hide(toast);
              undo();
            },
          },
          say("undo"),
        )
      : null;
    toast.node = element(
      "div",
      { class: "toast" },
      element("span", {}, text),
      button,
      element(
        "button",
        { class: "icon-button", type: "button", "aria-label": say("dismiss"), onclick: () => this.hide(toast) },
        icon("close"),
      ),
    );
    this.shown.push(toast);
    this.place.append(toast.node);
    // Nothing goes while somebody points at it or stands on it with the keyboard.
    for (const name of ["pointerenter", "focusin"]) toast.node.addEventListener(name, () => clearTimeout(toast.timer));
    for (const name of ["pointerleave", "focusout"]) toast.node.addEventListener(name, () => this.start(toast));
    this.start(toast);
    if (focus) button?.focus();
  }

  /** What was said about this is over. */
  withdraw(about) {
    for (const toast of this.shown.filter((shown) => shown.about === about)) this.hide(toast);
  }

  start(toast) {
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => {
      if (toast.node.matches(":hover, :focus-within")) this.start(toast);
      else this.hide(toast);
    }, toast.shownMs);
  }

  hide(toast, { refocus = true } = {}) {
    clearTimeout(toast.timer);
    this.shown = this.shown.filter((other) => other !== toast);
    const focused = toast.node.contains(document.activeElement);
    toast.node.remove();
    if (focused && refocus) this.onGone();
  }
}
