// The conversations that the page has at hand: shown at once on return, brought up to date by events.

import { Conversation } from "./conversation.js";

const KEPT_MAX = 8;

export class KeptConversations {
  /** `onChange(conversation, change)`: see `Conversation`. */
  constructor(connection, onChange) {
    Object.assign(this, { connection, onChange });
    this.byChannel = new Map(); // the last used last
  }

  get all() {
    return [...this.byChannel.values()];
  }

  get(channel) {
    return this.byChannel.get(channel);
  }

  /** The conversation of this channel, the last used from now on. One whose words are on their way is never let go. */
  of(channel) {
    const conversation =
      this.get(channel) ?? new Conversation(channel, this.connection, (change) => this.onChange(conversation, change));
    this.byChannel.delete(channel);
    this.byChannel.set(channel, conversation);
    for (const oldest of [...this.byChannel.keys()]) {
      if (this.byChannel.size <= KEPT_MAX || oldest === channel) break;
      this.let(oldest);
    }
    return conversation;
  }

  /** Let it go, unless words are on their way into it. */
  let(channel) {
    if (!this.get(channel)?.pending.length) this.byChannel.delete(channel);
  }

  /** It is gone, and nothing in it is left to stop. */
  forget(channel) {
    this.get(channel)?.wantStopped(null);
    this.byChannel.delete(channel);
  }
}
