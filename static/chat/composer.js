// The box for words: Enter sends, Shift+Enter begins a new line, and an input method's Enter chooses a character.

import { keep, kept } from "./keeping.js";
import { showMeasure } from "./limits.js";
import { say } from "./words.js";

export class Composer {
  /** `onSend(text)` returns whether the words were taken; `onStop()`. Drafts are kept for as long as the tab lives. */
  constructor({ form, box, counter, sendButton, stopButton, onSend, onStop }) {
    Object.assign(this, { form, box, counter, sendButton, stopButton, onSend });
    this.draftKey = null;
    this.placeholder = box.placeholder;
    box.addEventListener("input", () => this.changed());
    box.addEventListener("keydown", (event) => {
      // 229: the input method has this key, whatever the browser says about composing.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.submit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    stopButton.addEventListener("click", onStop);
    this.changed();
  }

  get text() {
    return this.box.value;
  }

  submit() {
    if (this.sendButton.disabled) return;
    const text = this.text;
    if (this.onSend(text)) this.set("");
    this.box.focus();
  }

  set(text) {
    this.box.value = text;
    this.changed();
  }

  /** Words that were not sent come back, before what was written meanwhile. */
  giveBack(text) {
    this.set(this.text.trim() && this.text !== text ? `${text}\n\n${this.text}` : text);
    this.box.focus();
  }

  /** Words that come back to a conversation that is not open stand in its draft. */
  keepFor(key, text) {
    const draft = kept(`draft ${key}`);
    keep(`draft ${key}`, draft ? `${text}\n\n${draft}` : text);
  }

  /** Another conversation: keep this one's draft, show that one's. */
  useDraft(key) {
    if (key === this.draftKey) return;
    this.draftKey = key;
    this.set(kept(`draft ${key}`) ?? "");
  }

  /** Whether the next words answer a question. */
  setAnswering(answering) {
    this.box.placeholder = answering ? say("answer_here") : this.placeholder;
  }

  forbid(forbidden) {
    this.form.hidden = forbidden;
    this.counter.parentElement.hidden = forbidden;
  }

  changed() {
    const { box } = this;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
    showMeasure(this.text, this.counter, this.sendButton);
    if (this.draftKey !== null) keep(`draft ${this.draftKey}`, this.text);
  }

  setStopping(possible) {
    this.stopButton.hidden = !possible;
  }
}
