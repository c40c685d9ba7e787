// What can be done with a message: by the buttons below it, by its menu, by the keyboard.

import { copyBy } from "./clipboard.js";
import { element, icon } from "./elements.js";
import { showMenu } from "./menu.js";
import { say } from "./words.js";

const NAMES = ["copy", "quote", "edit", "retry", "fork", "rewind"];

/** The names of what can be done with the message as the conversation stands: a Set. */
export function offers(message, state) {
  const found = new Set();
  if (!message || message.state === "streaming") return found;
  if (message.text && message.role !== "event") found.add("copy");
  if (message.superseded || !state) return found;
  if (found.has("copy") && quotable(state.thread)) found.add("quote");
  // A message with tool calls is the middle of a round: no context can end there.
  const whole = message.role !== "event" && !message.tool_calls.length;
  if (whole) found.add("fork");
  const rests =
    state.thread.status === "active" && state.thread.state === "idle" && !state.turn && !state.queued.length;
  if (!rests) return found;
  const standing = state.messages.filter((row) => !row.superseded);
  const last = standing.at(-1);
  if (message.role === "user") found.add("edit");
  if (message.role !== "user" && last?.id === message.id && standing.some((row) => row.role === "user"))
    found.add("retry");
  if (whole && last?.id !== message.id) found.add("rewind");
  return found;
}

/** Whether words of a conversation can be quoted: not those of the main one, nor of a task. */
export function quotable(thread) {
  return thread?.kind === "web";
}

/** The buttons below a message. They take the focus only when their message has it: `walking.js` sees to that. */
export function actionBar(message, actions) {
  const copy = button("copy", () => copyBy(copy, message.text));
  const more = button("more", () => openMessageMenu(message, actions, { at: more }));
  more.setAttribute("aria-haspopup", "menu");
  more.setAttribute("aria-expanded", "false");
  const own =
    message.role === "user" ? button("edit", () => actions.edit(message)) : button("retry", () => actions.retry());
  const quote = quotable(actions.state()?.thread) ? button("quote", () => actions.quote(message)) : "";
  return element(
    "div",
    { class: "message-actions", role: "group", "aria-label": say("message_actions") },
    copy,
    quote,
    own,
    more,
  );
}

function button(name, onclick) {
  return element(
    "button",
    {
      class: `icon-button small act-${name}`,
      type: "button",
      tabindex: "-1",
      title: say(name),
      "data-label": say(name),
      onclick,
    },
    icon(name),
    element("span", { class: "unseen label" }, say(name)),
  );
}

export function openMessageMenu(message, actions, { at, from }) {
  const found = offers(message, actions.state());
  const items = NAMES.filter((name) => found.has(name)).map((name) => ({
    label: say(name),
    hint: ["quote", "rewind", "fork"].includes(name) ? say(`${name}_hint`) : "",
    icon: name,
    action: () => actions[name](message),
  }));
  if (items.length) showMenu(items, { at, from, label: say("message_actions") });
}
