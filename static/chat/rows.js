// One message as elements: words by a person, an answer, a notice, the mark of a renewed context.

import { card } from "./cards.js";
import { copyBy } from "./clipboard.js";
import { element, icon } from "./elements.js";
import { actionBar, offers } from "./message_actions.js";
import { say, timeOfDay, wholeTime } from "./words.js";

const LONG_WORDS_CHARS = 4000;
export const RENEWED = "generation"; // code of the notice that a context was renewed

/** `context`: {actions, state, known: {node, message} drawn before, folded: whether it was rewound}. */
export function buildRow(message, context) {
  if (message.role === "user") return userRow(message, context);
  if (message.role === "assistant") return assistantRow(message, context);
  return message.code === RENEWED ? renewalMark(message, context) : noticeRow(message, context);
}

function heading(message) {
  const who = say({ user: "you", assistant: "assistant" }[message.role] ?? "notice");
  return element("h3", { class: "unseen" }, `${who}, ${timeOfDay(new Date(message.created))}`);
}

function timeOf(message) {
  const date = new Date(message.created);
  return element("time", { datetime: message.created, title: wholeTime(date), "aria-hidden": "true" }, timeOfDay(date));
}

function userRow(message, { actions, folded }) {
  const long = message.text.length > LONG_WORDS_CHARS;
  return element(
    "article",
    { class: "message from-user", "data-message": message.id, tabindex: "-1" },
    heading(message),
    message.quote ? actions.quoteCard(message.quote) : "",
    element("div", { class: long ? "bubble long" : "bubble", tabindex: long ? "0" : null }, message.text),
    element("div", { class: "message-foot" }, folded ? "" : actionBar(message, actions), timeOf(message)),
  );
}

function assistantRow(message, { actions, known, folded }) {
  const bare = !message.text && !message.thinking && !message.tool_calls.length;
  const node = element(
    "article",
    {
      class: bare ? "message from-assistant bare" : "message from-assistant",
      "data-message": message.id,
      "data-state": message.state,
      tabindex: "-1",
    },
    heading(message),
  );
  if (message.thinking || message.state === "streaming") node.append(thinkingFold(message, known));
  node.append(answerBody(message));
  const possible = folded ? { wholeText: actions.wholeText } : actions; // what was rewound is read, and no more
  for (const call of message.tool_calls) {
    const reusable = known?.node.querySelector(`details[data-call="${call.id}"]`);
    node.append(card(call, { reusable, actions: possible }));
  }
  if (message.state === "interrupted") node.append(element("p", { class: "state-line" }, say("stopped_here")));
  if (message.state !== "streaming" && message.text && !folded) {
    node.append(element("div", { class: "message-foot" }, actionBar(message, actions), timeOf(message)));
  }
  return node;
}

function noticeRow(message, { actions, folded }) {
  const again = element(
    "button",
    { class: "button again", type: "button", hidden: true, onclick: () => actions.retry() },
    icon("retry"),
    say("ask_again"),
  );
  return element(
    "div",
    { class: "notice", role: "note", "data-message": message.id, "data-code": message.code },
    element("p", {}, message.text),
    folded ? "" : again,
  );
}

/** A new context begins here; the summary of what went before is behind it, fetched when it is opened. */
function renewalMark(message, { actions }) {
  const body = element("div", { class: "summary-text", tabindex: "0" }, say("loading"));
  const fold = element(
    "details",
    { class: "fold renewal", "data-message": message.id },
    element(
      "summary",
      {},
      icon("renew"),
      element("span", {}, message.text),
      element("span", { class: "show-summary" }, say("summary")),
    ),
    body,
  );
  fold.addEventListener("toggle", async () => {
    if (!fold.open || fold.dataset.read) return;
    const summary = await actions.summary(message.generation - 1);
    if (summary === null) fold.open = false;
    else {
      fold.dataset.read = "yes";
      body.textContent = summary || say("no_summary");
      fold.scrollIntoView({ block: "nearest" });
    }
  });
  return fold;
}

function thinkingFold(message, known) {
  const text = element("div", { class: "thinking-text", tabindex: "0" }, message.thinking);
  const streaming = message.state === "streaming" && !message.text;
  const fold = element(
    "details",
    { class: "fold thinking", hidden: !message.thinking },
    element(
      "summary",
      {},
      icon("chevron", "chevron"),
      element("span", { class: "thinking-label" }, say(streaming ? "thinking_now" : "thinking")),
    ),
    text,
  );
  fold.open = known?.node.querySelector("details.thinking")?.open ?? false;
  return fold;
}

function answerBody(message) {
  if (message.html) {
    const body = element("div", { class: "prose" });
    body.innerHTML = message.html; // sanitised by the server
    dress(body);
    return body;
  }
  const growing = message.state === "streaming";
  const body = element("div", { class: growing ? "prose growing" : "prose", hidden: !message.text });
  body.append(document.createTextNode(message.text));
  return body;
}

/** Carry a streaming row on: append what is new, so that a selection in it survives. */
export function growRow(known, message, actions) {
  const { node } = known;
  node.classList.remove("bare");
  extend(node.querySelector(".prose"), known.message.text, message.text);
  const fold = node.querySelector("details.thinking");
  extend(fold.querySelector(".thinking-text"), known.message.thinking, message.thinking);
  fold.hidden = !message.thinking;
  fold.querySelector(".thinking-label").textContent = say(message.text ? "thinking" : "thinking_now");
  if (known.message.tool_calls !== message.tool_calls) redrawCards(node, message, actions);
  return node;
}

function redrawCards(node, message, actions) {
  for (const call of message.tool_calls) {
    const before = node.querySelector(`[data-call="${call.id}"]`);
    const fresh = card(call, { reusable: before?.matches("details") ? before : null, actions });
    if (!before) node.append(fresh);
    else if (before !== fresh) before.replaceWith(fresh);
  }
}

function extend(node, before, now) {
  node.hidden = !now;
  if (now === before) return;
  const text = node.firstChild;
  if (text && now.startsWith(before)) text.appendData(now.slice(before.length));
  else node.textContent = now;
}

/** Code with its language and a copy button, tables that scroll by themselves. */
function dress(body) {
  for (const pre of body.querySelectorAll("pre")) {
    const language = /language-(\S+)/.exec(pre.firstElementChild?.className ?? "")?.[1] ?? "";
    const button = element(
      "button",
      {
        class: "quiet copy-code",
        type: "button",
        "data-label": say("copy"),
        onclick: () => copyBy(button, pre.textContent),
      },
      icon("copy"),
      element("span", { class: "label" }, say("copy")),
    );
    const place = element("div", { class: "code-place" });
    pre.replaceWith(place);
    pre.tabIndex = 0;
    place.append(element("div", { class: "code-top" }, element("span", {}, language), button), pre);
  }
  for (const table of body.querySelectorAll("table")) {
    const place = element("div", { class: "table-place", tabindex: "0" });
    table.replaceWith(place);
    place.append(table);
  }
}

/** What depends on more than the message itself: which row can be asked again, which actions there are now. */
export function refreshRow(node, message, state, isLast) {
  const again = node.querySelector(".again");
  if (again) again.hidden = !(isLast && offers(message, state).has("retry"));
}
