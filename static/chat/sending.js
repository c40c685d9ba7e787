// Words on their way: into the conversation that is open, or into one that begins with them.

import { newKey, quoted } from "./conversation.js";
import { request } from "./requests.js";
import { page } from "./words.js";

const FRAME_MARGIN_BYTES = 4096; // of a frame, for what is not words

export class Sending {
  /** `current()`: the open conversation or null; `onBegun(channel)`, `onChange(change)`, `onSend()`, `onError(error)`. */
  constructor({ composer, quotes, current, level, onBegun, onChange, onSend, onError }) {
    Object.assign(this, { composer, quotes, current, level, onBegun, onChange, onSend, onError });
    this.creating = false;
  }

  /** Whether the words were taken. */
  send(text) {
    if (!text.trim()) return false;
    this.onSend();
    const conversation = this.current();
    if (!conversation) this.begin(text);
    else if (new TextEncoder().encode(text).length > page.frameLimit - FRAME_MARGIN_BYTES) this.sendByRequest(conversation, text);
    else conversation.send(text, this.quotes.take(conversation.channel));
    return true;
  }

  /** A new conversation that these are the first words of. */
  async begin(text) {
    if (this.creating) {
      this.composer.giveBack(text);
      return;
    }
    this.creating = true;
    try {
      const thread = await request("/api/threads/", { method: "POST", body: this.level.level });
      this.level.reset();
      if (this.current()) return; // the person went elsewhere meanwhile; the words are in the box below
      this.onBegun(thread.channel);
      this.send(text);
      text = "";
    } catch (error) {
      this.onError(error);
    } finally {
      this.creating = false;
      if (text) this.composer.giveBack(text);
    }
  }

  /** Words that are too long for a frame of the socket, and perhaps not for the conversation. */
  async sendByRequest(conversation, text) {
    const key = newKey();
    const quote = this.quotes.take(conversation.channel);
    conversation.pending = [...conversation.pending, { key, text, quote }];
    this.onChange({ sent: true });
    try {
      await request(`/api/threads/${conversation.channel}/messages/`, { method: "POST", body: { key, text, ...quoted(quote) } });
    } catch (error) {
      this.onError(error);
      this.comesBack(conversation, { text, quote }, error);
    }
    conversation.settle(key);
    if (conversation === this.current()) this.onChange({});
  }

  /** What was not sent stands on its own conversation's composer again, words and card. */
  comesBack(conversation, { text, quote }, refusal) {
    if (conversation === this.current()) this.composer.giveBack(text);
    else this.composer.keepFor(conversation.channel, text);
    this.quotes.giveBack(conversation.channel, quote, refusal);
  }
}
