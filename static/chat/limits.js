// How long words may be: one rule for every box that says something into a conversation.

import { number, page, say } from "./words.js";

const COUNT_FROM = 0.9; // of the limit

/** {sentence: what a counter says, blank far from the limit; over; sendable: whether there are words, and not too
 * many}. */
export function measure(text) {
  // The server counts characters, a string's length counts UTF-16 units: never fewer.
  const left = page.limit - (text.length < page.limit * COUNT_FROM ? text.length : [...text].length);
  const near = left < page.limit * (1 - COUNT_FROM);
  const over = left < 0;
  const much = Math.abs(left);
  const words = `${much === 1 ? "character" : "characters"}_${over ? "over" : "left"}`;
  const sentence = near ? say(words, { number: number(much) }) : "";
  return { sentence, over, sendable: Boolean(text.trim()) && !over };
}

/** Show it: in the counter, and by whether the button can be pressed. */
export function showMeasure(text, counter, button) {
  const { sentence, over, sendable } = measure(text);
  if (counter.textContent !== sentence) counter.textContent = sentence;
  counter.classList.toggle("over", over);
  button.disabled = !sendable;
}
