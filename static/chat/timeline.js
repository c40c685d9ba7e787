// The conversation as elements. A row is drawn again only when its object is another one.

import { card } from "./cards.js";
import { element, icon, reconcile } from "./elements.js";
import { dayKey, dayName, say, timeOfDay, wholeTime } from "./words.js";

const LONG_WORDS_CHARS = 4000;

export class Timeline {
  /** `actions`: {answer(call, text), earlier()}. */
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
    this.clear();
  }

  clear() {
    this.rows = new Map(); // message id -> {node, message}
    this.days = new Map(); // first message's id -> node
    this.waiting = new Map(); // client key -> {node, text}
    this.root.replaceChildren();
  }

  /** Instead of a conversation: a welcome, or why there is none. */
  showOnly(node) {
    this.clear();
    this.root.replaceChildren(node);
  }

  /** `pending`: [{key, text}] on their way to the server. */
  draw(state, pending, { loadingEarlier = false } = {}) {
    const nodes = [this.edge(state, loadingEarlier)];
    const shownIds = new Set();
    let day = null;
    for (const message of state.messages) {
      if (message.superseded) continue;
      const date = new Date(message.created);
      const key = dayKey(date);
      if (key !== day) {
        nodes.push(this.daySign(message.id, key, date));
        day = key;
      }
      shownIds.add(message.id);
      nodes.push(this.row(message));
    }
    for (const id of [...this.rows.keys()]) if (!shownIds.has(id)) this.rows.delete(id);
    if (working(state)) nodes.push(this.workingSign());
    nodes.push(...this.words(state.queued, pending));
    reconcile(this.root, nodes.filter(Boolean));
  }

  edge(state, loading) {
    if (!state.has_earlier) return null;
    this.edgeNode ??= element("button", { class: "button timeline-edge", type: "button", onclick: () => this.actions.earlier() });
    this.edgeNode.textContent = say(loading ? "loading_earlier" : "earlier_messages");
    this.edgeNode.toggleAttribute("aria-busy", loading);
    return this.edgeNode;
  }

  daySign(id, key, date) {
    const known = this.days.get(id);
    if (known?.key === key) return known.node;
    const node = element("h2", { class: "day" }, dayName(date));
    this.days.set(id, { key, node });
    return node;
  }

  workingSign() {
    this.workingNode ??= element("p", { class: "working" }, say("working"));
    return this.workingNode;
  }

  row(message) {
    const known = this.rows.get(message.id);
    if (known?.message === message) return known.node;
    const grown = known && known.message.state === "streaming" && message.state === "streaming";
    const node = grown ? grow(known, message, this.actions.answer) : this.build(message, known);
    if (known && known.node !== node) known.node.replaceWith(node);
    this.rows.set(message.id, { node, message });
    return node;
  }

  build(message, known) {
    if (message.role === "user") return userRow(message);
    if (message.role === "event") return element("p", { class: "notice", role: "note", "data-message": message.id }, message.text);
    return this.assistantRow(message, known);
  }

  assistantRow(message, known) {
    const node = element("article", { class: "message from-assistant", "data-message": message.id, "data-state": message.state }, heading(message));
    if (message.thinking || message.state === "streaming") node.append(thinkingFold(message, known));
    node.append(answerBody(message));
    for (const call of message.tool_calls) {
      const reusable = known?.node.querySelector(`details[data-call="${call.id}"]`);
      node.append(card(call, { reusable, onAnswer: this.actions.answer }));
    }
    if (message.state === "interrupted") node.append(element("p", { class: "state-line" }, say("stopped_here")));
    return node;
  }

  /** Words that are not in the record yet: queued at the server, or on their way to it. */
  words(queued, pending) {
    const known = new Set(queued.map((item) => item.key));
    const rows = [
      ...queued.map((item) => ({ key: item.key || `item ${item.id}`, text: item.text, fate: "queued" })),
      ...pending.filter((item) => !known.has(item.key)).map((item) => ({ ...item, fate: "sending" })),
    ];
    const nodes = rows.map(({ key, text, fate }) => {
      const before = this.waiting.get(key);
      if (before?.fate === fate) return before.node;
      const node = element(
        "article",
        { class: "message from-user on-its-way", "data-key": key, "data-fate": fate },
        element("div", { class: "bubble" }, text),
        element("p", { class: "fate" }, say(fate)),
      );
      this.waiting.set(key, { node, fate });
      return node;
    });
    const keys = new Set(rows.map((row) => row.key));
    for (const key of [...this.waiting.keys()]) if (!keys.has(key)) this.waiting.delete(key);
    return nodes;
  }
}

/** Whether a turn runs and nothing on the page shows that yet. */
function working(state) {
  if (state.turn?.state !== "running") return false;
  const last = state.messages.at(-1);
  if (!last) return true;
  if (last.state === "streaming") return !last.text;
  return !last.tool_calls.some((call) => call.status === "running" || call.status === "waiting");
}

function heading(message) {
  const date = new Date(message.created);
  const who = say(message.role === "user" ? "you" : "assistant");
  return element("h3", { class: "unseen" }, `${who}, ${timeOfDay(date)}`);
}

function userRow(message) {
  const date = new Date(message.created);
  const long = message.text.length > LONG_WORDS_CHARS;
  return element(
    "article",
    { class: "message from-user", "data-message": message.id },
    heading(message),
    element("div", { class: long ? "bubble long" : "bubble", tabindex: long ? "0" : null }, message.text),
    element("time", { datetime: message.created, title: wholeTime(date), "aria-hidden": "true" }, timeOfDay(date)),
  );
}

function thinkingFold(message, known) {
  const text = element("div", { class: "thinking-text", tabindex: "0" }, message.thinking);
  const streaming = message.state === "streaming" && !message.text;
  const fold = element(
    "details",
    { class: "fold thinking", hidden: !message.thinking },
    element("summary", {}, icon("chevron", "chevron"), element("span", { class: "thinking-label" }, say(streaming ? "thinking_now" : "thinking"))),
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
function grow(known, message, onAnswer) {
  const { node } = known;
  extend(node.querySelector(".prose"), known.message.text, message.text);
  const fold = node.querySelector("details.thinking");
  extend(fold.querySelector(".thinking-text"), known.message.thinking, message.thinking);
  fold.hidden = !message.thinking;
  fold.querySelector(".thinking-label").textContent = say(message.text ? "thinking" : "thinking_now");
  return known.message.tool_calls === message.tool_calls ? node : regrow(node, message, onAnswer);
}

function regrow(node, message, onAnswer) {
  for (const call of message.tool_calls) {
    const before = node.querySelector(`[data-call="${call.id}"]`);
    const fresh = card(call, { reusable: before?.matches("details") ? before : null, onAnswer });
    if (!before) node.append(fresh);
    else if (before !== fresh) before.replaceWith(fresh);
  }
  return node;
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
    const button = element("button", { class: "quiet", type: "button", onclick: () => copy(pre.textContent, button) }, say("copy"));
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

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return;
  }
  button.textContent = say("copied");
  setTimeout(() => {
    button.textContent = say("copy");
  }, 2000);
}
