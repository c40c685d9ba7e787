// Other words in place of one's own: a box where the message stands. What is written in it is kept like any draft, by
// the message, and the box is there again wherever the row is drawn anew.

import { element } from "./elements.js";
import { keep, kept } from "./keeping.js";
import { showMeasure } from "./limits.js";
import { say } from "./words.js";

const draftOf = (message) => `edit ${message.id}`;

export const isEdited = (message) => kept(draftOf(message)) !== null;

/** The words of a message as a box. `onSend(text)` resolves to whether they went; with `focus` the person goes on
 * there. */
export function editRow(node, message, { onSend, onEnd, focus }) {
  const bubble = node.querySelector(".bubble");
  const foot = node.querySelector(".message-foot");
  const hint = `edit-hint-${message.id}`;
  const box = element("textarea", {
    class: "edit-box",
    rows: "1",
    "aria-label": say("edit"),
    "aria-describedby": hint,
  });
  box.value = kept(draftOf(message)) ?? message.text;
  const send = element("button", { class: "primary", type: "submit" }, say("send"));
  const counter = element("span", { class: "counter", role: "status" });
  const form = element(
    "form",
    { class: "edit-form" },
    box,
    element("p", { class: "edit-hint", id: hint }, say("edit_hint")),
    element(
      "div",
      { class: "dialog-buttons" },
      counter,
      element("button", { class: "button", type: "button", onclick: () => end() }, say("cancel")),
      send,
    ),
  );
  const fit = () => {
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight + 2}px`;
    showMeasure(box.value, counter, send);
  };
  const end = () => {
    keep(draftOf(message), "");
    form.remove();
    bubble.hidden = foot.hidden = false;
    delete node.dataset.editing;
    onEnd();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled) return;
    send.disabled = box.readOnly = true;
    if (await onSend(box.value)) end();
    else {
      box.readOnly = false;
      fit();
    }
  });
  box.addEventListener("input", () => {
    fit();
    keep(draftOf(message), box.value === message.text ? "" : box.value);
  });
  box.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      end();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  node.dataset.editing = "yes";
  bubble.hidden = foot.hidden = true;
  bubble.before(form);
  fit();
  if (!focus) return;
  box.focus({ preventScroll: true });
  form.scrollIntoView({ block: "nearest" });
  box.setSelectionRange(box.value.length, box.value.length);
}
