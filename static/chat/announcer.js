// For screen readers: what changed in the conversation, in a sentence, never word by word.

import { say } from "./words.js";

const ANNOUNCED_MAX_CHARS = 400;

export class Announcer {
  constructor(place) {
    this.place = place;
  }

  say(text) {
    this.place.textContent = text;
  }

  /** That an answer began, and what it says once it is whole. */
  changed(before, state) {
    if (before === state || !state) return;
    if (!before.turn && state.turn) this.say(say("answer_begins"));
    const last = state.messages.at(-1);
    const known = before.messages.find((message) => message.id === last?.id);
    if (last?.role === "assistant" && last.state === "complete" && known?.state === "streaming") {
      this.say(`${say("assistant")}: ${last.text.slice(0, ANNOUNCED_MAX_CHARS)}`);
    }
    if (last?.notice && !known) this.say(last.text);
  }
}
