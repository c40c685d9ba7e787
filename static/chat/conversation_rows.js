// How conversations look in the list: a row of one, a row of one that was deleted, the days they stand under.

import { element, icon } from "./elements.js";
import { daysAgo, page, say, timeOfDay } from "./words.js";

export function titleOf(thread) {
  return thread.title || say(thread.kind === "main" ? "main" : "untitled");
}

/** [heading, threads] of each day or stretch of days, the newest first; empty ones too. */
export function byAge(threads) {
  const groups = new Map([
    ["today", []],
    ["yesterday", []],
    ["last_week", []],
    ["older", []],
  ]);
  for (const thread of threads) {
    const ago = daysAgo(new Date(thread.updated));
    groups.get(ago <= 0 ? "today" : ago === 1 ? "yesterday" : ago <= 7 ? "last_week" : "older").push(thread);
  }
  return [...groups].map(([name, rows]) => [say(name), rows]);
}

export function conversationRow(thread, isCurrent) {
  const name = titleOf(thread);
  const state = thread.state === "running" ? "running" : thread.state === "waiting" ? "waiting" : "";
  const said = { running: say("running"), waiting: say("waiting_for_you") }[state];
  const badges = [
    thread.kind === "task" ? say("task") : "",
    thread.scope === "isolated" ? say("isolated") : "",
    thread.category,
  ].filter(Boolean);
  const link = element(
    "a",
    {
      href: `${page.home}c/${thread.channel}/`,
      "data-channel": thread.channel,
      "aria-current": isCurrent ? "page" : null,
      title: name,
    },
    element("span", { class: "name" }, name),
    ...badges.map((badge) => element("span", { class: "badge" }, badge)),
    state ? element("span", { class: `dot ${state}`, role: "img", "aria-label": said, title: said }) : "",
  );
  const menu = element(
    "button",
    {
      class: "icon-button small row-menu",
      type: "button",
      tabindex: "-1",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-label": say("actions_of", { title: name }),
    },
    icon("more"),
  );
  return element("li", {}, link, menu);
}

/** One that was deleted and is not erased yet. */
export function deletedRow(thread, onBringBack) {
  const name = titleOf(thread);
  const until = say("erased_at", { time: timeOfDay(new Date(thread.erased)) });
  const back = element(
    "button",
    {
      class: "quiet bring-back",
      type: "button",
      "aria-label": say("bring_back", { title: name }),
      onclick: onBringBack,
    },
    icon("undo"),
    say("undo_rewind"),
  );
  const words = element("span", { class: "name", title: name }, name, element("small", {}, until));
  return element("li", { class: "deleted" }, words, back);
}

export function moreButton(onclick, more = {}) {
  return element("button", { class: "button more", type: "button", onclick, ...more }, say("more_conversations"));
}
