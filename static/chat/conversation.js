// One open conversation: its state, the words on their way, and what it says over the socket.

import { pageDown, pageUp, tail, WINDOW_MAX_MESSAGES } from "./history.js";
import { keep, kept, keptNames } from "./keeping.js";
import { pointerOf } from "./quotes.js";
import { amend, apply, Gap } from "./state.js";

const KEPT_PENDING = "pending "; // and the channel: words on their way outlive a reload of the page
const KEPT_STOP = "stop "; // and the channel: so does the turn that is to stop

let counter = 0;

/** A key that makes a repeated send the same send. */
export function newKey() {
  counter += 1;
  return `${Date.now().toString(36)}-${counter}-${crypto.getRandomValues(new Uint32Array(2)).join("")}`;
}

/** Channels into which words, or a stop, were on their way when the page went. */
export const unsentChannels = () => [...new Set([...keptNames(KEPT_PENDING), ...keptNames(KEPT_STOP)])];

export class Conversation {
  constructor(channel, connection, onChange) {
    this.channel = channel;
    this.connection = connection;
    this.onChange = onChange;
    this.state = null; // the reducer's, with the newest messages
    this.past = null; // {messages, has_earlier}: the window, where the reader has left the newest messages
    this.pending = []; // [{key, text, quote: the card that goes along, or null, outcome, byRequest?}]
    const stop = kept(KEPT_STOP + channel);
    this.stopWanted = stop ? Number(stop) : null; // the frame of a turn that the person wants stopped
    this.asked = null; // {earlier: message id}, {later: message id} or {around: message id}: the page on its way
    this.wanted = null; // id of a message that somebody wants to see
    for (const item of JSON.parse(kept(KEPT_PENDING + channel) ?? "[]")) this.expect(item);
  }

  /** What the page shows: the state, or a window of its history. */
  get shown() {
    if (!this.state || !this.past) return this.state;
    return { ...this.state, ...this.past, has_later: true, queued: [], turn: null };
  }

  get loading() {
    return this.asked !== null;
  }

  /** Say what was seen last; whatever was not confirmed goes again, under the same keys. */
  open() {
    this.asked = null;
    const after = this.state && !this.state.stale ? this.state.event : null;
    this.connection.send({ type: "open", channel: this.channel, after });
    this.sendAgain();
  }

  /** What was asked for and is not confirmed: words, and a stop. The server does neither twice. */
  sendAgain() {
    for (const item of this.pending) if (!item.byRequest) this.transmit(item);
    this.sendStop();
  }

  close() {
    this.connection.send({ type: "close", channel: this.channel });
    this.toTail();
    if (this.state) this.state = tail(this.state);
  }

  /** Words on their way. Their `outcome` resolves to null once the server took them, or to why it did not. */
  add(text, quote = null) {
    const item = this.expect({ key: newKey(), text, quote });
    this.keepPending();
    this.toTail();
    return item;
  }

  expect(item) {
    item.outcome = new Promise((resolve) => (item.settle = resolve));
    this.pending = [...this.pending, item];
    return item;
  }

  /** The server knows a key that it has seen: what comes back after a reload is sent once, however often it goes. */
  keepPending() {
    const items = this.pending.map(({ key, text, quote }) => ({ key, text, quote }));
    keep(KEPT_PENDING + this.channel, items.length ? JSON.stringify(items) : "");
  }

  frameOf({ key, text, quote }) {
    return { type: "send", channel: this.channel, key, text, ...quoted(quote) };
  }

  transmit(item) {
    this.connection.send(this.frameOf(item));
  }

  /** Stop the turn that runs; once there is a connection again, where there is none. Returns whether it was asked. */
  stop() {
    this.wantStopped(this.state?.turn?.frame ?? null);
    return this.sendStop();
  }

  wantStopped(frame) {
    this.stopWanted = frame;
    keep(KEPT_STOP + this.channel, frame === null ? "" : String(frame));
  }

  /** The server leaves a turn that has ended as it is. */
  sendStop() {
    const frame = this.stopWanted;
    return frame !== null && this.connection.send({ type: "stop", channel: this.channel, frame });
  }

  answerFrame(call, text) {
    return { type: "answer", channel: this.channel, call: call.id, text };
  }

  answer(call, text) {
    return this.connection.send(this.answerFrame(call, text));
  }

  earlier() {
    const { shown } = this;
    if (this.asked || !shown?.has_earlier || !shown.messages.length) return;
    const before = shown.messages[0].id;
    if (!this.connection.send({ type: "earlier", channel: this.channel, before })) return;
    this.asked = { earlier: before };
    this.onChange({});
  }

  later() {
    if (this.asked || !this.past) return;
    const since = this.past.messages.at(-1).id;
    if (this.connection.send({ type: "later", channel: this.channel, since })) this.asked = { later: since };
  }

  /** Show one message, wherever in the conversation it stands: `onChange({found})`, or `{lost}` where it is gone. */
  reveal(id) {
    this.wanted = id;
    this.seek();
  }

  seek() {
    const id = this.wanted;
    if (!id || !this.state || this.asked) return;
    const shown = rowOf(this.shown, id) ?? rowOf(this.state, id);
    if (shown) {
      if (!rowOf(this.shown, id)) this.toTail();
      this.wanted = null;
      this.onChange({ found: shown.id });
    } else if (this.connection.send({ type: "earlier", channel: this.channel, before: id + 1 }))
      this.asked = { around: id };
  }

  lose() {
    const id = this.wanted;
    this.wanted = null;
    this.onChange({ lost: id });
  }

  /** A page that ends with the message that is wanted becomes the window; what follows comes as the reader goes. */
  takeAround({ messages, has_earlier }) {
    const id = this.asked.around;
    this.asked = null;
    if (!rowOf({ messages }, id)) {
      this.lose();
      return;
    }
    this.past = { messages, has_earlier };
    this.seek();
  }

  /** Back to the newest messages. */
  toTail() {
    this.past = null;
    this.asked = null;
  }

  /** While the reader follows the end, what is far above goes. */
  trim() {
    if (!this.past && this.state?.messages.length > WINDOW_MAX_MESSAGES) this.state = tail(this.state);
  }

  /** A send that is over, refused or not: {text, quote}, if it was this page's. */
  settle(key, refusal = null) {
    const item = this.pending.find((waiting) => waiting.key === key);
    this.pending = this.pending.filter((waiting) => waiting.key !== key);
    this.keepPending();
    item?.settle(refusal);
    return item;
  }

  take(frame) {
    if (frame.type === "snapshot") {
      const before = this.state;
      this.state = frame.snapshot;
      this.toTail();
      this.onChange({ fresh: true, before });
    } else if (frame.type === "events") {
      this.takeEvents(frame.events);
    } else if (frame.type === "earlier" && this.state && this.asked?.around === frame.before - 1) {
      this.takeAround(frame);
    } else if (frame.type === "earlier" && this.state && this.asked?.earlier === frame.before) {
      this.asked = null;
      Object.assign(this, pageUp(this.state, this.past, frame));
      this.onChange({ kept: true });
    } else if (frame.type === "later" && this.state && this.asked?.later === frame.since) {
      this.asked = null;
      Object.assign(this, pageDown(this.state, this.past, frame));
      this.onChange({ kept: true });
    } else if (frame.type === "sent") {
      this.settle(frame.key);
      this.onChange({});
    }
    if (this.stopWanted !== null && this.state && this.state.turn?.frame !== this.stopWanted) this.wantStopped(null);
    this.seek();
  }

  takeEvents(events) {
    if (!this.state) return;
    const before = this.state;
    try {
      for (const event of events) {
        this.state = apply(this.state, event);
        // The server has these words. What says so by their key comes after them, and may come late.
        const key = event.kind === "queued" && event.body.item.key;
        if (this.pending.some((waiting) => waiting.key === key)) this.settle(key);
        if (this.past) this.past = amend(this.past, event);
      }
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      this.open();
    }
    if (this.state.stale) this.open();
    this.onChange({ before });
  }
}

/** What a message that quotes says besides its words. */
export function quoted(quote) {
  if (!quote) return {};
  const { confirm_text } = quote;
  return { quote: pointerOf(quote), ...(confirm_text ? { confirmed: true, confirm_text } : {}) };
}

/** The row that shows a message: its own, or for a tool's result the one that called the tool. */
function rowOf(view, id) {
  return view.messages.find((row) => row.id === id || row.tool_calls.some((call) => call.result?.message_id === id));
}
