// The chat page: puts its parts together and hands frames round.

import { Alerts } from "./alerts.js";
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { Conversations, titleOf } from "./conversations.js";
import { Drawer } from "./drawer.js";
import { element } from "./elements.js";
import { request } from "./requests.js";
import { Follower } from "./scrolling.js";
import { Timeline } from "./timeline.js";
import { page, say } from "./words.js";

const KEPT_CONVERSATIONS = 8; // shown at once on return, brought up to date by events
const ANNOUNCED_MAX_CHARS = 400;

const byId = (id) => document.getElementById(id);

const alerts = new Alerts(byId("alerts"));
const follower = new Follower(byId("scroller"), byId("to-latest"));
const drawer = new Drawer(document.body, byId("sidebar"), byId("backdrop"), byId("open-drawer"), byId("close-drawer"));
const timeline = new Timeline(byId("timeline"), { answer, earlier: () => current?.earlier() });
const conversations = new Conversations({ nav: byId("conversations"), search: byId("search"), onOpen: go, onError: showError });
const connection = new Connection({ onFrame, onOpen, onState });
const composer = new Composer({
  form: byId("composer"),
  box: byId("words-box"),
  counter: byId("counter"),
  sendButton: byId("send"),
  stopButton: byId("stop"),
  onSend: send,
  onStop() {
    current?.stop();
    composer.box.focus(); // the button goes, and would take the focus with it
  },
});

let kept = new Map(); // channel -> Conversation, the last used last
let current = null; // null: a conversation that does not exist yet
let creating = false;
let signedOut = false;

// Going from one conversation to another

function conversationOf(channel) {
  const conversation = kept.get(channel) ?? new Conversation(channel, connection, (change) => changed(conversation, change));
  kept.delete(channel);
  kept.set(channel, conversation);
  for (const [oldest, old] of kept) {
    if (kept.size <= KEPT_CONVERSATIONS) break;
    if (!old.pending.length) kept.delete(oldest);
  }
  return conversation;
}

function go(channel, { push = true } = {}) {
  if (push) history.pushState({ channel }, "", channel ? `${page.home}c/${channel}/` : page.home);
  show(channel);
  drawer.close();
  if (matchMedia("(hover: hover)").matches) composer.box.focus();
}

function show(channel) {
  if (current && current.channel !== channel) current.close();
  alerts.clear();
  timeline.clear();
  current = channel ? conversationOf(channel) : null;
  composer.useDraft(channel);
  conversations.select(channel);
  current?.open();
  draw({ fresh: true });
}

addEventListener("popstate", () => {
  const match = /\/c\/([^/]+)\/$/.exec(location.pathname);
  go(match ? match[1] : "", { push: false });
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-new]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go("");
});

// Drawing

function changed(conversation, change) {
  if (conversation !== current) return;
  if (change.before) announce(change.before, conversation.state);
  draw(change);
}

function draw({ fresh = false, above = false, sent = false } = {}) {
  const state = current?.state;
  const pending = current?.pending ?? [];
  document.title = `${state ? titleOf(state.thread) : say("untitled")} · MaxClaw`;
  byId("title").textContent = state ? titleOf(state.thread) : current ? "" : say("untitled");
  drawBadges(state);
  composer.setStopping(Boolean(state?.turn) && state.turn.state !== "suspended");
  composer.setAnswering(state?.thread.state === "waiting");
  const readOnly = state && state.thread.status !== "active";
  composer.forbid(Boolean(readOnly));
  if (readOnly) alerts.show("status", say(state.thread.status === "archived" ? "archived_now" : "ended_now"), { dismissible: false });
  else alerts.hide("status");
  if (state) conversations.updateThread(state.thread);
  if (fresh || sent) follower.following = true;
  follower.around(() => drawTimeline(state, pending), { above });
}

function drawTimeline(state, pending) {
  if (state && (state.messages.length || state.queued.length || pending.length || state.turn)) {
    timeline.draw(state, pending, { loadingEarlier: current.loadingEarlier });
  } else if (!current || (state && !pending.length)) {
    timeline.showOnly(byId("welcome").content.cloneNode(true).firstElementChild);
  } else {
    timeline.draw({ messages: [], has_earlier: false, queued: [], turn: null }, pending);
  }
}

function drawBadges(state) {
  const names = state ? [state.thread.kind === "task" && say("task"), state.thread.scope === "isolated" && say("isolated"), state.thread.category] : [];
  byId("badges").replaceChildren(...names.filter(Boolean).map((name) => element("span", { class: "badge" }, name)));
}

/** For screen readers: that an answer began, and what it says once it is whole. */
function announce(before, state) {
  if (before === state) return;
  if (!before.turn && state.turn) byId("announcer").textContent = say("answer_begins");
  const last = state.messages.at(-1);
  const known = before.messages.find((message) => message.id === last?.id);
  if (last?.role === "assistant" && last.state === "complete" && known?.state === "streaming") {
    byId("announcer").textContent = `${say("assistant")}: ${last.text.slice(0, ANNOUNCED_MAX_CHARS)}`;
  }
  if (last?.notice && !known) byId("announcer").textContent = last.text;
}

// What the person does

function send(text) {
  if (!text.trim()) return false;
  alerts.hide("error");
  if (!current) {
    createAndSend(text);
    return true;
  }
  if (new TextEncoder().encode(text).length > page.frameLimit - 4096) sendByRequest(current, text);
  else current.send(text);
  return true;
}

async function createAndSend(text) {
  if (creating) {
    composer.giveBack(text);
    return;
  }
  creating = true;
  try {
    const thread = await request("/api/threads/", { method: "POST", body: {} });
    if (current) return; // the person went elsewhere meanwhile; the words are in the box below
    history.pushState({ channel: thread.channel }, "", `${page.home}c/${thread.channel}/`);
    show(thread.channel);
    send(text);
    text = "";
  } catch (error) {
    showError(error);
  } finally {
    creating = false;
    if (text) composer.giveBack(text);
  }
}

/** Words that are too long for a frame of the socket, and perhaps not for the conversation. */
async function sendByRequest(conversation, text) {
  const key = `long-${Date.now()}-${crypto.getRandomValues(new Uint32Array(1))[0]}`;
  conversation.pending = [...conversation.pending, { key, text }];
  draw({ sent: true });
  try {
    await request(`/api/threads/${conversation.channel}/messages/`, { method: "POST", body: { key, text } });
  } catch (error) {
    showError(error);
    if (conversation === current) composer.giveBack(text);
  }
  conversation.settle(key);
  if (conversation === current) draw();
}

function answer(call, text) {
  if (current && !current.answer(call, text)) alerts.show("error", say("failed"));
}

function showError(error) {
  if (error.status === 401 || error.status === 403) showSignedOut();
  else alerts.show("error", error.reason ?? say("failed"));
}

// What the server says

const frames = {
  threads: (frame) => conversations.update(frame),
  snapshot: toConversation,
  events: toConversation,
  earlier: toConversation,
  sent: toConversation,
  chat_rejected(frame) {
    const conversation = kept.get(frame.channel);
    const text = conversation?.settle(frame.key);
    if (text === undefined) return;
    alerts.show("error", `${frame.reason} ${say("back_to_you")}`);
    if (conversation === current) {
      composer.giveBack(text);
      draw();
    }
  },
  error(frame) {
    if (frame.code === "signed-out") return; // said by its own frame
    if (frame.about === "open" && frame.channel === current?.channel) showNothing(frame.reason);
    else if (!frame.channel || frame.channel === current?.channel) alerts.show("error", frame.reason);
  },
  gone(frame) {
    kept.delete(frame.channel);
    conversations.remove(frame.channel);
    if (frame.channel === current?.channel) showNothing(say("gone"));
  },
  signed_out: showSignedOut,
};

function onFrame(frame) {
  frames[frame.type]?.(frame);
}

function toConversation(frame) {
  kept.get(frame.channel)?.take(frame);
}

/** In place of a conversation that is gone or never was. The words in the box stay, for a new one. */
function showNothing(reason) {
  const unsent = [...(current?.pending.map((item) => item.text) ?? []), composer.text].filter(Boolean).join("\n\n");
  if (current) kept.delete(current.channel);
  current = null;
  history.replaceState({ channel: "" }, "", page.home);
  composer.useDraft("");
  if (unsent) composer.giveBack(unsent);
  conversations.select("");
  draw();
  timeline.showOnly(element("div", { class: "welcome" }, element("h2", {}, reason)));
}

function showSignedOut() {
  signedOut = true;
  alerts.show("signed-out", say("signed_out"), {
    link: `${page.login}?next=${encodeURIComponent(location.pathname)}`,
    linkText: say("sign_in"),
    dismissible: false,
  });
}

function onOpen() {
  signedOut = false;
  alerts.hide("signed-out");
  current?.open();
}

function onState(name) {
  const place = byId("connection");
  if (place.dataset.state === name) return;
  place.dataset.state = name;
  place.replaceChildren(element("span", {}, say(name)));
}

document.addEventListener("visibilitychange", () => {
  // Whoever signed in again in another tab comes back to find this one working.
  if (signedOut && document.visibilityState === "visible") connection.renew();
});

addEventListener("beforeunload", (event) => {
  if ([...kept.values()].some((conversation) => conversation.pending.length)) event.preventDefault();
});

conversations.update(page.threads);
history.replaceState({ channel: page.channel }, "");
show(page.channel);
connection.start();
