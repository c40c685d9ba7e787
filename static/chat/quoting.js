// How the page quotes: from a message, from a conversation, by the keyboard, and for a page that embeds it.

import { titleOf } from "./conversation_rows.js";
import { Bridge } from "./embed.js";
import { offers, quotable } from "./message_actions.js";
import { isThere, pointerOf, Quotes, toMessage, toWhole } from "./quotes.js";
import { Refused } from "./requests.js";
import { page, say } from "./words.js";

export class Quoting {
  /**
   * `current()`: the open conversation, null for one that does not exist yet, whose level is `level`; `go(channel)`;
   * `toBox()`; `send(text, card)` into the open one resolves to null, or to why it was refused.
   */
  constructor({ place, level, current, go, toBox, send, onError }) {
    Object.assign(this, { current, go, send, onError });
    this.quotes = new Quotes({
      place,
      level,
      onTarget: (channel) => (channel === this.channel ? toBox() : go(channel)),
      onReveal: (quote) => this.reveal(quote),
      onRequest: (quote, title) => this.bridge.say({ type: "quoteRequest", quote, title }),
    });
    this.bridge = new Bridge({
      origins: page.embedOrigins,
      handlers: {
        quoteRequest: ({ quote }) => this.requestFor(pointerOf(quote)),
        openQuote: ({ quote, target }) => this.quotes.open(pointerOf(quote), target),
        reveal: async (message) => {
          await mustBeThere(message);
          this.reveal(message);
        },
        send: (message) => this.sendFor(message),
      },
    });
  }

  get channel() {
    return this.current()?.channel ?? "";
  }

  message(message) {
    const { channel, state } = this.current();
    return this.start(toMessage(channel, message), state.thread, wordsOf(message));
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
    if (channel !== this.channel) this.go(channel);
    if (id) this.current().reveal(id);
  }

  /** The message that an address names: `#m` and its number. */
  revealNamed(hash) {
    const id = /^#m(\d+)$/.exec(hash)?.[1];
    if (id) this.current()?.reveal(Number(id));
  }

  /** Ask the person where to quote this, for the embedding page; not what cannot be quoted anywhere. */
  async requestFor(pointer) {
    await this.quotes.look(pointer, "");
    return this.quotes.begin(pointer, { told: true });
  }

  /** Send words for the embedding page. What a quote asks to confirm, the person is asked here, and nobody else. */
  async sendFor({ channel, text, quote = null }) {
    if (typeof text !== "string" || !text.trim()) throw refusal("empty_message");
    const target = channel ?? this.channel;
    if (target !== "") await mustBeThere({ channel: target });
    const card = quote === null ? null : await this.quotes.prepare(pointerOf(quote), target);
    if (quote !== null && !card) return false;
    if (target !== this.channel) this.go(target);
    const refused = await this.send(text, card);
    if (refused) throw refused;
    return true;
  }
}

const refusal = (name) => new Refused(0, "malformed", say(name));

/** Throws the sentence to answer when there is no such conversation or message, or when these are no addresses. */
async function mustBeThere({ channel, message_id: id }) {
  const named = typeof channel === "string" && /^[a-z0-9]+$/.test(channel);
  if (!named || !(await isThere({ channel }))) throw refusal("not_found");
  if (id === undefined) return;
  if (!Number.isSafeInteger(id) || id < 1 || !(await isThere({ channel, message_id: id })))
    throw refusal("quoted_message_gone");
}

/** How a message reads, without the signs of its Markdown. */
function wordsOf({ html, text }) {
  if (!html) return text;
  return new DOMParser().parseFromString(html, "text/html").body.textContent.replace(/\s+/g, " ").trim();
}
