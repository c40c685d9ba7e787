// Sentences above the message box: one of a kind, gone when dismissed or when they are not true any more.

import { element, icon } from "./elements.js";
import { say } from "./words.js";

export class Alerts {
  constructor(place) {
    this.place = place;
    this.shown = new Map();
  }

  show(name, text, { link, linkText, actionText, onAction, dismissible = true } = {}) {
    // What is said already is not said again: it would be read aloud, and take the focus from its button.
    if (this.shown.get(name)?.dataset.text === text) return;
    this.hide(name);
    const node = element(
      "p",
      { class: "alert", role: "alert", "data-name": name, "data-text": text },
      element("span", {}, text),
      link ? element("a", { href: link, target: "_blank", rel: "noopener" }, linkText) : "",
      actionText ? element("button", { class: "quiet", type: "button", onclick: onAction }, actionText) : "",
      dismissible
        ? element(
            "button",
            { class: "icon-button", type: "button", "aria-label": say("dismiss"), onclick: () => this.hide(name) },
            icon("close"),
          )
        : "",
    );
    this.shown.set(name, node);
    this.place.append(node);
  }

  hide(name) {
    this.shown.get(name)?.remove();
    this.shown.delete(name);
  }

  clear() {
    for (const name of [...this.shown.keys()]) if (name !== "signed-out") this.hide(name);
  }
}
