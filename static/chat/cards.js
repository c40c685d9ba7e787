// Tool calls: cards that fold, and questions to the person.

import { element, icon } from "./elements.js";
import { keep, kept } from "./keeping.js";
import { titleFor } from "./titles.js";
import { number, say } from "./words.js";

export const QUESTION_TOOL = "ask_user_question";
const SEARCH_TOOL = "search_memory";
const PREVIEW_MAX_CHARS = 160;
const OPEN = new Set(["pending", "running", "waiting"]);
const ICONS = { done: "done", failed: "failed", refused: "failed", interrupted: "failed" };

/** A node for one ToolView. `context`: {reusable: the card drawn before, actions: {wholeText, and answer where a
    question can be answered}}. */
export function card(call, context) {
  return call.tool === QUESTION_TOOL ? questionCard(call, context) : toolCard(call, context);
}

function shown(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** What a search was asked, in words; null where its arguments are not what they should be. */
function askedOf({ tool, arguments: given }) {
  if (tool !== SEARCH_TOOL || typeof given?.query !== "string") return null;
  const { query, channel } = given;
  return typeof channel === "string" && channel
    ? say("searched_channel", { query, title: titleFor(channel) })
    : say("searched_everywhere", { query });
}

/** How much a search gave, and how much more it had found. */
function searchFoot({ tool, result }) {
  if (tool !== SEARCH_TOOL || !result || result.is_error) return "";
  const said = [say("search_given", { chars: number(result.chars) })];
  const { count = 0, exact = true } = result.left_out ?? {};
  if (count) said.push(say(exact ? "search_left_out" : "search_left_out_at_least", { count: number(count) }));
  else if (!exact) said.push(say("search_not_all_read"));
  return said.join(" ");
}

function preview(call) {
  const said = Object.entries(call.arguments ?? {}).map(([name, value]) => {
    if (typeof value !== "string") return JSON.stringify(value);
    return name === "channel" ? titleFor(value) : value;
  });
  const text = (askedOf(call) ?? said.join(" · ")).replace(/\s+/g, " ");
  return text.length > PREVIEW_MAX_CHARS ? `${text.slice(0, PREVIEW_MAX_CHARS)}…` : text;
}

function duration(milliseconds) {
  if (milliseconds === null) return "";
  return milliseconds < 1000
    ? say("milliseconds", { number: number(milliseconds) })
    : say("seconds", { number: number(Math.round(milliseconds / 100) / 10) });
}

function statusOf(call) {
  const said = [say(`status_${call.status}`), duration(call.duration_ms)].filter(Boolean).join(", ");
  const sign = ICONS[call.status] ? icon(ICONS[call.status]) : "";
  const node = element("span", { class: "status", "data-status": call.status }, sign, said);
  if (call.status === "running" && call.started) {
    node.dataset.since = call.started;
    tick(node);
  }
  return node;
}

/** How long a running tool has run by now, every second. */
function tick(node) {
  const seconds = Math.floor(Math.max(Date.now() - Date.parse(node.dataset.since), 0) / 1000);
  node.lastChild.textContent = seconds
    ? `${say("status_running")}, ${say("seconds", { number: number(seconds) })}`
    : say("status_running");
}

setInterval(() => document.querySelectorAll(".status[data-since]").forEach(tick), 1000);

function argumentsOf(call) {
  const entries = Object.entries(call.arguments ?? {});
  if (!entries.length) return element("p", { class: "cut" }, say("no_arguments"));
  return element(
    "dl",
    {},
    ...entries.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, shown(value))]),
  );
}

function resultOf(call, actions) {
  if (call.result === null)
    return [element("p", { class: "cut" }, say(OPEN.has(call.status) ? "no_result" : "never_a_result"))];
  const { text, chars, message_id } = call.result;
  const place = element("pre", { tabindex: "0", "aria-label": say("result") }, text);
  if (chars <= [...text].length) return [place];
  const said = element("span", {}, say("result_cut", { chars: number(chars) }));
  const more = element(
    "button",
    {
      class: "quiet show-all",
      type: "button",
      async onclick() {
        more.disabled = true;
        const whole = await actions.wholeText(message_id);
        more.disabled = false;
        if (whole === null) return;
        place.textContent = whole;
        place.focus({ preventScroll: true });
        said.parentElement.remove();
      },
    },
    say("show_all"),
  );
  return [place, element("p", { class: "cut" }, said, more)];
}

function toolCard(call, { reusable, actions }) {
  const summary = element(
    "summary",
    {},
    icon("chevron", "chevron"),
    element("span", { class: "tool-name" }, call.tool),
    element("span", { class: "preview" }, preview(call)),
    statusOf(call),
  );
  const foot = searchFoot(call);
  const body = element(
    "div",
    { class: "tool-body" },
    element("h4", {}, say("arguments")),
    argumentsOf(call),
    element("h4", {}, say("result")),
    ...resultOf(call, actions),
    foot ? element("p", { class: "cut search-foot" }, foot) : "",
  );
  if (reusable) {
    // The same card goes on: whether it is open, and the focus, are the reader's.
    const focused = reusable.querySelector("summary") === document.activeElement;
    reusable.replaceChildren(summary, body);
    if (focused) summary.focus({ preventScroll: true });
    return reusable;
  }
  return element("details", { class: "fold tool-card", "data-call": call.id }, summary, body);
}

/** {question, options} as text, whatever the model wrote. */
export function questionIn(call) {
  const { question = "", options = [] } = call.arguments ?? {};
  const textOf = (option) => (typeof option === "string" ? option : (option?.label ?? shown(option)));
  return { question: shown(question), options: Array.isArray(options) ? options.map(textOf) : [] };
}

function questionCard(call, { actions }) {
  const { question, options } = questionIn(call);
  const open = call.status === "waiting" && actions.answer;
  const node = element(
    "section",
    { class: open ? "question-card open" : "question-card", "data-call": call.id, "aria-label": say("question") },
    element("p", { class: "label" }, icon("question"), say("question")),
    element("p", { class: "question" }, question),
  );
  if (!open) keep(answerDraftOf(call), "");
  if (open) {
    node.append(...openQuestion(call, options, actions.answer));
  } else if (call.result && call.status === "done") {
    node.append(element("p", { class: "answer-given" }, element("strong", {}, say("answered")), call.result.text));
  } else if (call.status !== "pending" && call.status !== "running") {
    node.append(element("p", { class: "state-line" }, say("question_closed")));
  }
  return node;
}

const answerDraftOf = (call) => `answer ${call.id}`; // kept until the question is closed

function openQuestion(call, options, onAnswer) {
  const input = element("input", {
    type: "text",
    "aria-label": say("own_answer"),
    placeholder: say("own_answer"),
    autocomplete: "off",
  });
  input.value = kept(answerDraftOf(call)) ?? "";
  input.addEventListener("input", () => keep(answerDraftOf(call), input.value));
  const form = element(
    "form",
    {
      class: "own-answer",
      onsubmit: (event) => {
        event.preventDefault();
        if (input.value.trim()) onAnswer(call, input.value);
        else input.focus();
      },
    },
    input,
    element("button", { class: "button", type: "submit" }, say("answer")),
  );
  const buttons = options.map((text) =>
    element("button", { class: "button", type: "button", onclick: () => onAnswer(call, text) }, text),
  );
  return [buttons.length ? element("div", { class: "options" }, ...buttons) : "", form];
}
