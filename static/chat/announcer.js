// For screen readers: what changed in the conversation, in a sentence, never word by word.

import { QUESTION_TOOL, questionIn } from "./cards.js";
import { element } from "./elements.js";
import { say } from "./words.js";

const ANNOUNCED_MAX_CHARS = 400;
const LINES_KEPT = 3;

export class Announcer {
  constructor(place) {
    this.place = place;
  }

  /** A line of its own: what is said in the same moment is read after it, and not in its place. */
  say(text) {
    this.place.append(element("p", {}, text));
    while (this.place.childElementCount > LINES_KEPT) this.place.firstElementChild.remove();
  }

  /** That an answer began, what it says once it has ended, how it ended, and what the person is asked. */
  changed(before, state) {
    if (before === state || !state) return;
    const said = !before.turn && state.turn ? [say("answer_begins")] : [];
    const known = new Map(before.messages.map((message) => [message.id, message]));
    for (const message of state.messages) {
      const was = known.get(message.id);
      if (was !== message) said.push(...this.news(was, message, message === state.messages.at(-1)));
    }
    if (said.length) this.say(said.join(" "));
  }

  news(was, message, isLast) {
    const said = [];
    const ended = was?.state === "streaming" && message.state !== "streaming";
    if (ended && message.text) said.push(`${say("assistant")}: ${message.text.slice(0, ANNOUNCED_MAX_CHARS)}`);
    if (ended && message.state === "interrupted") said.push(say("stopped_here"));
    if (message.notice && !was && isLast) said.push(message.text);
    const asked = new Set(was?.tool_calls.filter(isQuestion).map((call) => call.id));
    for (const call of message.tool_calls.filter(isQuestion)) if (!asked.has(call.id)) said.push(questionOf(call));
    return said;
  }
}

function isQuestion(call) {
  return call.tool === QUESTION_TOOL && call.status === "waiting";
}

function questionOf(call) {
  const { question, options } = questionIn(call);
  const said = [`${say("question")}: ${question}`, ...options];
  return said.join(" · ").slice(0, ANNOUNCED_MAX_CHARS);
}
