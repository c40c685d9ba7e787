// Dialogs: the browser's own, which hold the focus and close on Escape.

import { element } from "./elements.js";
import { say } from "./words.js";

/** Ask for one line. Resolves to the words, or null when the person thought better of it. */
export function askForLine({ title, label, value, action, maxLength }) {
  return new Promise((resolve) => {
    const input = element("input", { type: "text", id: "dialog-line", maxlength: maxLength, autocomplete: "off" });
    input.value = value;
    const form = element(
      "form",
      { method: "dialog", class: "stack" },
      element("label", { for: "dialog-line" }, label),
      input,
      element(
        "div",
        { class: "dialog-buttons" },
        element("button", { class: "button", type: "button", onclick: () => dialog.close() }, say("cancel")),
        element("button", { class: "primary", type: "submit", value: "yes" }, action),
      ),
    );
    const dialog = element(
      "dialog",
      { class: "dialog", "aria-labelledby": "dialog-title" },
      element("h2", { id: "dialog-title" }, title),
      form,
    );
    form.addEventListener("submit", (event) => {
      if (!input.value.trim()) {
        event.preventDefault();
        input.focus();
      }
    });
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes" ? input.value : null);
      dialog.remove();
    });
    closeOnBackdrop(dialog);
    document.body.append(dialog);
    dialog.showModal();
    input.select();
  });
}

export function closeOnBackdrop(dialog) {
  dialog.addEventListener("pointerdown", (event) => {
    if (event.target === dialog) dialog.close();
  });
}

/** Ask whether to go on. `text` is the server's own sentence. Resolves to true or false. */
export function askToConfirm({ title, text, action }) {
  return new Promise((resolve) => {
    const form = element(
      "form",
      { method: "dialog", class: "stack" },
      element("p", { id: "dialog-text" }, text),
      dialogButtons(element("button", { class: "primary", type: "submit", value: "yes" }, action)),
    );
    confirmingDialog(title, form, resolve, { describedBy: "dialog-text" });
  });
}

/** A way back, beside the button that goes on. */
export function dialogButtons(goOn) {
  const cancel = element(
    "button",
    { class: "button", type: "button", onclick: () => cancel.closest("dialog").close() },
    say("cancel"),
  );
  return element("div", { class: "dialog-buttons" }, cancel, goOn);
}

/** Show a form as a dialog. `then(yes)` once it is closed: by its button with the value "yes", or in any other way. The
 * focus goes back to where it was. */
export function confirmingDialog(title, form, then, { describedBy = null } = {}) {
  const before = document.activeElement;
  const dialog = element(
    "dialog",
    { class: "dialog", "aria-labelledby": "dialog-title", "aria-describedby": describedBy },
    element("h2", { id: "dialog-title" }, title),
    form,
  );
  dialog.addEventListener("close", () => {
    const yes = dialog.returnValue === "yes";
    dialog.remove();
    if (before?.isConnected) before.focus({ preventScroll: true });
    then(yes);
  });
  closeOnBackdrop(dialog);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
