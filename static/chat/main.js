// The chat page: puts its parts together and hands frames round.

import { Alerts } from "./alerts.js";
import { Announcer } from "./announcer.js";
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { unsentChannels } from "./conversation.js";
import { titleOf } from "./conversation_rows.js";
import { Conversations } from "./conversations.js";
import { closeOnBackdrop } from "./dialogs.js";
import { Drawer } from "./drawer.js";
import { element } from "./elements.js";
import { frameTaker } from "./frames.js";
import { KeptConversations } from "./kept_conversations.js";
import { badgesOf, changeLevel, NewLevel } from "./levels.js";
import { Login, showState } from "./login.js";
import { closeLikeMenu, closeMenu } from "./menu.js";
import { offers, openMessageMenu } from "./message_actions.js";
import { Meter } from "./meter.js";
import { Quoting } from "./quoting.js";
import { request } from "./requests.js";
import { rowActions } from "./row_actions.js";
import { RENEWED } from "./rows.js";
import { Follower } from "./scrolling.js";
import { Sending } from "./sending.js";
import { listen, nameKeys } from "./shortcuts.js";
import { Timeline } from "./timeline.js";
import { Toasts } from "./toasts.js";
import { Walker } from "./walking.js";
import { WholeConversation } from "./whole.js";
import { page, say } from "./words.js";

const RENEWAL = "renewal"; // what a toast is about
const byId = (id) => document.getElementById(id);

const alerts = new Alerts(byId("alerts"));
const toasts = new Toasts(byId("toasts"), () => composer.box.focus());
const drawer = new Drawer(document.body, byId("sidebar"), byId("backdrop"), byId("open-drawer"), byId("close-drawer"));
const actions = rowActions({
  current: () => current,
  ask,
  edit: (message) => timeline.edit(message),
  go,
  quoting: () => quoting,
  comesBack: (conversation, taken) => sending.comesBack(conversation, taken),
  toBox: () => composer.box.focus(),
  announce: (text) => announcer.say(text),
  refuse: (name) => alerts.show("error", say(name)),
  told: (text) => toasts.show(text),
});
const timeline = new Timeline(byId("timeline"), actions);
const follower = new Follower(byId("scroller"), byId("to-latest"), (edge) =>
  edge === "start" ? current?.earlier() : current?.later(),
);
const walker = new Walker(byId("scroller"), byId("timeline"), openMenuOf);
const whole = new WholeConversation({
  toasts,
  onGone,
  onBack,
  onChanged: (thread) => conversations.updateThread(thread),
  onQuote: (thread) => quoting.whole(thread),
  onLevel: narrow,
  onError: showError,
});
const newLevel = new NewLevel(() => {
  if (current) return;
  drawBadges(null);
  meter.drawModel(); // not every model may read every category
  byId("badges").querySelector("button")?.focus();
});
const quoting = new Quoting({
  place: byId("quote-place"),
  level: newLevel,
  current: () => current,
  go,
  toBox: () => composer.box.focus(),
  send: (text, card) => sending.sendWith(text, card),
  onError: showError,
});
const conversations = new Conversations({
  nav: byId("conversations"),
  search: byId("search"),
  archivedButton: byId("archived"),
  onOpen: go,
  onMenu: (thread, place) => thread && whole.menu(thread, place),
  onRename: (thread) => whole.rename(thread),
  onDelete: (thread) => thread.kind !== "main" && whole.delete(thread),
  onBringBack: (thread) => whole.undelete(thread),
  onError: showError,
});
const connection = new Connection({
  onFrame: (frame) => takeFrame(frame),
  onOpen,
  onState: (name) => showState(byId("connection"), name),
});
const login = new Login(alerts, () => connection.renew());
const meter = new Meter({
  modelButton: byId("model"),
  button: byId("meter"),
  panel: byId("meter-panel"),
  load: (channel) => request(`/api/threads/${channel}/meter/`).catch(() => null),
  category: () => newLevel.level.category,
  onModel: (model) => ask("model/", { method: "PUT", body: { model } }).then(() => meter.refresh()),
  // The answer may come after the renewal itself.
  async onRenew() {
    const accepted = await ask("renew/", { method: "POST" });
    if (accepted && current?.state?.messages.at(-1)?.code !== RENEWED) toasts.show(accepted.reason, { about: RENEWAL });
  },
});
const composer = new Composer({
  form: byId("composer"),
  box: byId("words-box"),
  counter: byId("counter"),
  sendButton: byId("send"),
  stopButton: byId("stop"),
  onSend: (text) => sending.send(text),
  onStop: stop,
});
const sending = new Sending({
  composer,
  quotes: quoting.quotes,
  current: () => current,
  beginning: () => ({ ...newLevel.level, model: meter.newPick }),
  onBegun(channel) {
    newLevel.reset();
    meter.resetNew();
    if (current) return kept.of(channel); // the person went elsewhere meanwhile
    history.pushState({ channel }, "", `${page.home}c/${channel}/`);
    show(channel);
    return current;
  },
  onChange: draw,
  onSend: () => alerts.hide("error"),
  onError: showError,
});
const announcer = new Announcer(byId("announcer"));

const kept = new KeptConversations(connection, changed);
let current = null; // null: a conversation that does not exist yet
const takeFrame = frameTaker({
  current: () => current,
  kept,
  conversations,
  alerts,
  login,
  sending,
  draw,
  showNothing,
});

// Going from one conversation to another

function go(channel, { push = true } = {}) {
  if (push) history.pushState({ channel }, "", channel ? `${page.home}c/${channel}/` : page.home);
  show(channel);
  drawer.close();
  if (matchMedia("(hover: hover)").matches) composer.box.focus();
}

function show(channel) {
  if (current && current.channel !== channel) current.close();
  closeMenu();
  alerts.clear();
  timeline.clear();
  current = channel ? kept.of(channel) : null;
  composer.useDraft(channel);
  quoting.quotes.use(channel);
  conversations.select(channel);
  current?.open();
  meter.use(channel);
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
  if (change.before) announcer.changed(change.before, conversation.state);
  if (change.before?.turn && !conversation.state?.turn) {
    meter.refresh();
    toasts.withdraw(RENEWAL); // its mark, or why there is none, stands where the toast is
  }
  if (change.found) follower.following = false;
  draw(change);
  if (change.found) timeline.reveal(change.found);
  if (change.lost) alerts.show("error", say("quoted_message_gone"));
}

function draw({ fresh = false, sent = false } = {}) {
  const state = current?.state;
  const pending = current?.pending ?? [];
  document.title = `${state ? titleOf(state.thread) : say("untitled")} · MaxClaw`;
  byId("title").textContent = state ? titleOf(state.thread) : current ? "" : say("untitled");
  byId("whole").hidden = !state;
  drawBadges(state);
  composer.setStopping(Boolean(state?.turn) && state.turn.state !== "suspended");
  composer.setAnswering(state?.thread.state === "waiting");
  const readOnly = state && state.thread.status !== "active";
  composer.forbid(Boolean(readOnly));
  if (readOnly) {
    const archived = state.thread.status === "archived";
    const restore = archived
      ? { actionText: say("restore"), onAction: () => whole.archive(current.state.thread, false) }
      : {};
    alerts.show("status", say(archived ? "archived_now" : "ended_now"), { dismissible: false, ...restore });
  } else alerts.hide("status");
  if (state) {
    conversations.updateThread(state.thread);
    meter.picked(state.thread.model);
  }
  if (fresh || sent) follower.join();
  if (follower.follows()) current?.trim();
  follower.atTail = !current?.past;
  follower.around(() => drawTimeline(current?.shown, pending));
  walker.refresh();
  // What is drawn may be shorter than the place it has.
  if (state && !current.loading) requestAnimationFrame(() => follower.look());
}

function drawTimeline(view, pending) {
  if (view && (view.messages.length || view.queued.length || pending.length || view.turn)) {
    timeline.draw(view, pending, { loading: current.loading });
  } else if (!current || view) {
    timeline.showOnly(byId("welcome").content.cloneNode(true).firstElementChild);
  } else if (pending.length) {
    timeline.draw({ messages: [], has_earlier: false, queued: [], turn: null }, pending);
  } else {
    timeline.showOnly(byId("loading").content.cloneNode(true).firstElementChild);
  }
}

function drawBadges(state) {
  byId("badges").replaceChildren(...(state ? badgesOf(state.thread) : current ? [] : [newLevel.button()]));
}

// What the person does

async function narrow(thread) {
  try {
    const view = await changeLevel(thread);
    if (!view) return;
    conversations.updateThread(view);
    toasts.show(say("level_changed", { title: titleOf(view) }));
  } catch (error) {
    showError(error);
  }
}

function stop() {
  if (!current?.state?.turn) return false;
  if (!current.stop()) toasts.show(say("stop_waits"));
  composer.box.focus(); // the button goes, and would take the focus with it
  return true;
}

/** Ask the server about the open conversation. Resolves to its answer; null, and the reason shown, when it refuses. */
async function ask(rest, how) {
  alerts.hide("error");
  try {
    return await request(`/api/threads/${current.channel}/${rest}`, how);
  } catch (error) {
    showError(error);
    return null;
  }
}

function openMenuOf(id, node, at) {
  const message = current?.shown?.messages.find((row) => row.id === id);
  if (message) openMessageMenu(message, actions, { at, from: node });
}

function editLast() {
  const message = current?.state?.messages.findLast((row) => row.role === "user" && !row.superseded);
  if (!message || !offers(message, current.state).has("edit")) return false;
  actions.edit(message);
  return true;
}

function onGone(thread, { kept: stays }) {
  conversations.remove(thread.channel);
  if (!stays && thread.channel === current?.channel) leave(thread.channel);
}

function onBack(thread) {
  conversations.showArchived(false);
  if (thread.channel !== current?.channel) go(thread.channel);
}

function leave(channel) {
  kept.let(channel);
  current = null;
  history.replaceState({ channel: "" }, "", page.home);
  show("");
}

function toLatest() {
  current?.toTail();
  follower.join();
  draw();
  follower.follow();
  byId("scroller").focus({ preventScroll: true });
}

function showError(error) {
  if (error.status === 401 || error.status === 403) login.isGone();
  else alerts.show("error", error.reason ?? say(navigator.onLine ? "failed" : "offline"));
}

byId("to-latest").addEventListener("click", toLatest);
byId("whole").addEventListener(
  "click",
  () => current?.state && whole.menu(current.state.thread, { at: byId("whole") }),
);
byId("show-help").addEventListener("click", () => {
  byId("user-menu").open = false;
  byId("help").showModal();
});
closeLikeMenu(byId("user-menu"));
closeOnBackdrop(byId("help"));
nameKeys(byId("help"));
listen(
  {
    search() {
      if (matchMedia("(width < 48rem)").matches) drawer.open();
      byId("search").focus();
      byId("search").select();
    },
    create: () => go(""),
    help: () => byId("help").showModal(),
    previous: (event) => walker.step(-1, event),
    next: (event) => walker.step(1, event),
    quote: () => quoting.here(),
    box() {
      drawer.close();
      composer.box.focus();
    },
    stop,
    editLast,
  },
  byId("words-box"),
);

// A conversation that goes, a connection that comes

/** In place of a conversation that is gone or never was. Words and cards that were not sent stay, for a new one. */
function showNothing(reason) {
  const { channel, pending } = current;
  const unsent = [...pending.map((item) => item.text), composer.text].filter(Boolean).join("\n\n");
  for (const { key } of pending) current.settle(key, { reason });
  composer.set("");
  leave(channel);
  if (unsent) composer.giveBack(unsent);
  quoting.quotes.moveToNew(
    channel,
    pending.map((item) => item.quote),
  );
  timeline.showOnly(element("div", { class: "welcome" }, element("h2", {}, reason)));
}

function onOpen() {
  login.isBack();
  current?.open();
  for (const conversation of kept.all) if (conversation !== current) conversation.sendAgain();
}

addEventListener("beforeunload", (event) => {
  if (kept.all.some((conversation) => conversation.pending.length)) event.preventDefault();
});

conversations.update(page.threads);
history.replaceState({ channel: page.channel }, "");
for (const channel of unsentChannels()) sending.resume(kept.of(channel));
show(page.channel);
sending.resumeBeginning();
quoting.revealNamed(location.hash);
connection.start();
