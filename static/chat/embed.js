// The bridge to a page that embeds this one. It listens to the window around this page alone, and only where that
// window's origin is one of those that the server's configuration names.
//
// | message | from | meaning |
// |---|---|---|
// | quoteRequest {quote, title?} | the embedding page | ask the person where to quote this, as its own menu does |
// | quoteRequest {quote, title} | this page | somebody began to quote this |
// | openQuote {quote, target} | the embedding page | put this quote on that conversation's composer |
// | reveal {channel, message_id?} | the embedding page | show a conversation, at a message |
// | send {channel?, text, quote?} | the embedding page | send words; what a quote asks to confirm, the person is asked
// |
//
// Each message is {maxclaw: 1, type, id?, ...}. Each one that is taken is answered {maxclaw: 1, type: "answer", id, ok,
// reason?} when it is done: words that are sent when the server took them. The reason is a sentence for a person, and
// missing where the person thought better of it. Whatever comes from elsewhere is not answered at all.

import { say } from "./words.js";

const VERSION = 1;

export class Bridge {
  /** `handlers`: {quoteRequest, openQuote, reveal, send}, each a function of the message; what they throw is the
   * reason. */
  constructor({ origins, handlers }) {
    Object.assign(this, { origins, handlers });
    this.origin = null; // known once the embedding page has spoken
    if (parent === window || !origins.length) return;
    addEventListener("message", (event) => this.receive(event));
  }

  async receive(event) {
    if (event.source !== parent || !this.origins.includes(event.origin)) return;
    const message = event.data;
    if (message?.maxclaw !== VERSION || !Object.hasOwn(this.handlers, message.type)) return;
    this.origin = event.origin;
    try {
      const done = await this.handlers[message.type](message);
      this.say({ type: "answer", id: message.id ?? null, ok: done !== false });
    } catch (error) {
      this.say({
        type: "answer",
        id: message.id ?? null,
        ok: false,
        reason: error.reason ?? say(navigator.onLine ? "failed" : "offline"),
      });
    }
  }

  /** Tell the embedding page, and no other. */
  say(message) {
    if (this.origin) parent.postMessage({ maxclaw: VERSION, ...message }, this.origin);
  }
}
