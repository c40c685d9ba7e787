// Words on their way: into the conversation that is open, or into one that begins with them.

import { quoted } from "./conversation.js";
import { keep, kept } from "./keeping.js";
import { request } from "./requests.js";
import { page, say } from "./words.js";

const BEGINNING = "beginning"; // name of what is kept: the first words of a conversation that is being made

export class Sending {
  /**
   * `current()`: the open conversation or null; `beginning()`: what one that does not exist yet begins with.
   * `onBegun(channel)` returns the conversation that began, and shows it where nobody went elsewhere;
   * `onChange(change)`, `onSend()`, `onError(error)`.
   */
  constructor({ composer, quotes, current, beginning, onBegun, onChange, onSend, onError }) {
    Object.assign(this, { composer, quotes, current, beginning, onBegun, onChange, onSend, onError });
    this.creating = false;
  }

  get channel() {
    return this.current()?.channel ?? "";
  }

  /** Whether the words were taken. */
  send(text) {
    if (!text.trim()) return false;
    this.onSend();
    this.sendWith(text, this.quotes.take(this.channel));
    return true;
  }

  /** Send into the open conversation, or begin one. Resolves to null once the server took it, or to why it did not. */
  sendWith(text, quote) {
    const conversation = this.current();
    return conversation ? this.deliver(conversation, text, quote) : this.begin(text, quote);
  }

  deliver(conversation, text, quote) {
    const item = conversation.add(text, quote);
    if (tooLong(conversation.frameOf(item))) this.sendByRequest(conversation, item);
    else conversation.transmit(item);
    if (conversation === this.current()) this.onChange({ sent: true });
    return item.outcome;
  }

  /** Words that were on their way when the page was loaded anew: the conversation sends what goes over the socket. */
  resume(conversation) {
    for (const item of conversation.pending)
      if (tooLong(conversation.frameOf(item))) this.sendByRequest(conversation, item);
  }

  /** Words for a conversation that had not begun when the page went stand on the composer of a new one again. */
  resumeBeginning() {
    const unsent = JSON.parse(kept(BEGINNING) ?? "null");
    keep(BEGINNING, "");
    if (unsent) this.standsAgain("", unsent);
  }

  /** A new conversation that these are the first words of. */
  async begin(text, quote) {
    if (this.creating) {
      this.standsAgain("", { text, quote });
      return { reason: say("failed") };
    }
    this.creating = true;
    keep(BEGINNING, JSON.stringify({ text, quote }));
    let thread;
    try {
      thread = await request("/api/threads/", { method: "POST", body: this.beginning() });
    } catch (error) {
      this.onError(error);
      this.standsAgain("", { text, quote });
      return error;
    } finally {
      this.creating = false;
      keep(BEGINNING, "");
    }
    return this.deliver(this.onBegun(thread.channel), text, quote);
  }

  /** Words that are too long for a frame of the socket, and perhaps not for the conversation. */
  async sendByRequest(conversation, item) {
    const { key, text, quote } = item;
    item.byRequest = true;
    let refusal = null;
    try {
      await request(`/api/threads/${conversation.channel}/messages/`, {
        method: "POST",
        body: { key, text, ...quoted(quote) },
      });
    } catch (error) {
      refusal = error;
      this.onError(error);
    }
    if (!conversation.settle(key, refusal)) return;
    if (refusal) this.comesBack(conversation, item, refusal);
    if (conversation === this.current()) this.onChange({});
  }

  /** What was not sent stands on its own conversation's composer again, words and card; on a new one's when its own is
   * gone. */
  comesBack(conversation, unsent, refusal) {
    const gone = refusal?.code === "no-such-thread" && conversation !== this.current();
    this.standsAgain(gone ? "" : conversation.channel, unsent, refusal);
  }

  standsAgain(channel, { text, quote }, refusal) {
    if (channel === this.channel) this.composer.giveBack(text);
    else this.composer.keepFor(channel, text);
    this.quotes.giveBack(channel, quote, refusal);
  }
}

/** Whether a frame is more than the socket takes. As the server measures it: signs that need an escape, and what is
 * quoted, count too. */
export function tooLong(frame) {
  return new TextEncoder().encode(JSON.stringify(frame)).length > page.frameLimit;
}
