// How the page quotes: from a message, from a conversation, by the keyboard, and for a page that embeds it.

import { titleOf } from "./conversations.js";
import { Bridge } from "./embed.js";
import { offers, quotable } from "./message_actions.js";
import { isThere, pointerOf, Quotes, toMessage, toWhole } from "./quotes.js";
import { request } from "./requests.js";
import { page, say } from "./words.js";

export class Quoting {
  /** `current()`: the open conversation or null; `go(channel)`; `toBox()`; `begin(text)`: a conversation with these words. */
  constructor({ place, current, go, toBox, begin, onError }) {
    Object.assign(this, { current, go, begin, onError });
    this.quotes = new Quotes({
      place,
      onTarget: (channel) => (channel === current()?.channel ? toBox() : go(channel)),
      newChannel: async () => (await request("/api/threads/", { method: "POST", body: {} })).channel,
      onReveal: (quote) => this.reveal(quote),
      onRequest: (quote, title) => this.bridge.say({ type: "quoteRequest", quote, title }),
    });
    this.bridge = new Bridge({
      origins: page.embedOrigins,
      handlers: {
        quoteRequest: ({ quote }) => this.quotes.begin(pointerOf(quote), { told: true }),
        openQuote: ({ quote, target }) => this.quotes.open(pointerOf(quote), target),
        reveal: async (message) => (await isThere(message)) && this.reveal(message),
        send: (message) => this.sendFor(message),
      },
    });
  }

  message(message) {
    const { channel, state } = this.current();
    return this.start(toMessage(channel, message), state.thread, message.text);
  }

  whole(thread) {
    return this.start(toWhole(thread.channel), thread);
  }

  /** By the keyboard: the message with the focus, or the whole conversation. */
  here() {
    const conversation = this.current();
    const focused = document.activeElement?.closest(".message[data-message]");
    const message = focused && conversation?.shown?.messages.find((row) => row.id === Number(focused.dataset.message));
    if (offers(message, conversation?.state).has("quote")) this.message(message);
    else if (quotable(conversation?.state?.thread)) this.whole(conversation.state.thread);
  }

  async start(pointer, thread, excerpt = "") {
    try {
      await this.quotes.begin(pointer, { title: titleOf(thread), excerpt });
    } catch (error) {
      this.onError(error);
    }
  }

  reveal({ channel, message_id: id }) {
    if (channel !== this.current()?.channel) this.go(channel);
    if (id) this.current().reveal(id);
    return true;
  }

  /** The message that an address names: `#m` and its number. */
  revealNamed(hash) {
    const id = /^#m(\d+)$/.exec(hash)?.[1];
    if (id) this.current()?.reveal(Number(id));
  }

  /** Send words for the embedding page. What a quote asks to confirm, the person is asked here, and nobody else. */
  async sendFor({ channel, text, quote = null }) {
    if (typeof text !== "string" || !text.trim()) throw new Error(say("empty_message"));
    const target = channel ?? this.current()?.channel;
    const card = quote && (await this.quotes.prepare(pointerOf(quote), target));
    if (quote && !card) return false;
    if (target && !(await isThere({ channel: target }))) return false;
    if (target && target !== this.current()?.channel) this.go(target);
    if (target) this.current().send(text, card);
    else await this.begin(text);
    return true;
  }
}
