// One open conversation: its state, the words on their way, and what it says over the socket.

import { apply, Gap, prepend } from "./state.js";

let counter = 0;

/** A key that makes a repeated send the same send. */
function newKey() {
  counter += 1;
  return `${Date.now().toString(36)}-${counter}-${crypto.getRandomValues(new Uint32Array(2)).join("")}`;
}

export class Conversation {
  constructor(channel, connection, onChange) {
    this.channel = channel;
    this.connection = connection;
    this.onChange = onChange;
    this.state = null;
    this.pending = []; // [{key, text}]
    this.loadingEarlier = false;
  }

  /** Say what was seen last; whatever was not confirmed goes again, under the same keys. */
  open() {
    this.loadingEarlier = false;
    this.connection.send({ type: "open", channel: this.channel, after: this.state ? this.state.event : null });
    for (const item of this.pending) this.transmit(item);
  }

  close() {
    this.connection.send({ type: "close", channel: this.channel });
  }

  send(text) {
    const item = { key: newKey(), text };
    this.pending = [...this.pending, item];
    this.transmit(item);
    this.onChange({ sent: true });
  }

  transmit({ key, text }) {
    this.connection.send({ type: "send", channel: this.channel, key, text });
  }

  stop() {
    const frame = this.state?.turn?.frame;
    if (frame) this.connection.send({ type: "stop", channel: this.channel, frame });
  }

  answer(call, text) {
    return this.connection.send({ type: "answer", channel: this.channel, call: call.id, text });
  }

  earlier() {
    if (this.loadingEarlier || !this.state?.has_earlier) return;
    const before = this.state.messages[0]?.id;
    this.loadingEarlier = this.connection.send({ type: "earlier", channel: this.channel, before });
    this.onChange({});
  }

  /** The words of a send that is over, in either way. */
  settle(key) {
    const item = this.pending.find((waiting) => waiting.key === key);
    this.pending = this.pending.filter((waiting) => waiting.key !== key);
    return item?.text;
  }

  take(frame) {
    if (frame.type === "snapshot") {
      this.state = frame.snapshot;
      this.loadingEarlier = false;
      this.onChange({ fresh: true });
    } else if (frame.type === "events") {
      this.takeEvents(frame.events);
    } else if (frame.type === "earlier" && this.state) {
      this.loadingEarlier = false;
      this.state = prepend(this.state, frame);
      this.onChange({ above: true });
    } else if (frame.type === "sent") {
      this.settle(frame.key);
      this.onChange({});
    }
  }

  takeEvents(events) {
    if (!this.state) return;
    const before = this.state;
    try {
      for (const event of events) this.state = apply(this.state, event);
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      this.open();
    }
    this.onChange({ before });
  }
}
