// Quotes: what waits on the composer of the conversation it was chosen for, and cards that lead to the source.
//
// A quote has two ends. Its pointer leads to the source; where it waits and where it is sent is its target, which is the
// key under which it is kept here.

import { askToConfirm } from "./dialogs.js";
import { element, icon } from "./elements.js";
import { request } from "./requests.js";
import { chooseTarget } from "./target_chooser.js";
import { page, say } from "./words.js";

const EXCERPT_MAX_CHARS = 280;
const POINTER = ["kind", "channel", "message_id"];

export const pointerOf = (quote) => Object.fromEntries(POINTER.filter((name) => name in quote).map((name) => [name, quote[name]]));
export const toMessage = (channel, message) => ({ kind: "message", channel, message_id: message.id });
export const toWhole = (channel) => ({ kind: "channel", channel });
export const addressOf = ({ channel, message_id: id }) => `${page.home}c/${channel}/${id ? `#m${id}` : ""}`;

const nameOf = (quote) =>
  say(quote.kind === "message" ? "quoted_message" : "quoted_conversation", { title: quote.title || say("untitled") });

export class Quotes {
  /**
   * `place`: where the card of the open conversation stands. `onTarget(channel)`: go there; `newChannel()` resolves to
   * the channel of a conversation made for it; `onReveal(quote)`; `onRequest(pointer, title)`: somebody began to quote.
   */
  constructor({ place, onTarget, newChannel, onReveal, onRequest }) {
    Object.assign(this, { place, onTarget, newChannel, onReveal, onRequest });
    this.shown = null;
    this.channel = "";
  }

  /** Ask where to, and put the quote on that conversation's composer. Throws what the server refuses. */
  async begin(pointer, { title = "", excerpt = "", told = false } = {}) {
    if (!told) this.onRequest(pointer, title);
    const target = await chooseTarget({
      from: pointer.channel,
      here: pointer.kind === "message",
      accept: async (chosen) => {
        const channel = chosen || (await this.newChannel());
        return (await this.wait(pointer, channel, excerpt)) ? channel : null;
      },
    });
    if (target) this.onTarget(target);
    return Boolean(target);
  }

  /** Put a quote on the composer of `target`, and go there. A downgrade asks once, in the server's words. */
  async open(pointer, target, { excerpt = "" } = {}) {
    if (!(await this.wait(pointer, target, excerpt))) return false;
    this.onTarget(target);
    return true;
  }

  async wait(pointer, target, excerpt) {
    const card = await this.prepare(pointer, target);
    if (card) this.put(target, { ...card, excerpt: excerpt.slice(0, EXCERPT_MAX_CHARS) });
    return card !== null;
  }

  /** What will be sent of a quote, confirmed where that is asked for; null when the person thought better of it. */
  async prepare(pointer, target) {
    const seen = await request("/api/quotes/preview/", { method: "POST", body: { quote: pointer, target: target ?? "" } });
    if (seen.needs_confirm && !(await this.confirm(seen.confirm_text))) return null;
    return { ...seen.quote, confirmed: seen.needs_confirm };
  }

  confirm(text) {
    return askToConfirm({ title: say("quote_confirm"), text, action: say("quote_hand_over") });
  }

  // What waits, by the channel of its target. It lasts as long as the tab, as drafts do.

  put(target, quote) {
    try {
      sessionStorage.setItem(`quote ${target}`, JSON.stringify(quote));
    } catch {
      return;
    }
    if (target === this.channel) this.draw();
  }

  waiting(target) {
    const kept = target && sessionStorage.getItem(`quote ${target}`);
    return kept ? JSON.parse(kept) : null;
  }

  /** Take what waits for `target` off its composer: it goes with the words that are sent now. */
  take(target) {
    const quote = this.waiting(target);
    if (quote) this.drop(target);
    return quote;
  }

  drop(target) {
    sessionStorage.removeItem(`quote ${target}`);
    if (target === this.channel) this.draw();
  }

  /** A message was refused: its card stands on the composer again. When what it asks to confirm has changed, ask. */
  async giveBack(target, quote, { code, reason } = {}) {
    if (!quote || this.waiting(target)) return;
    const asks = code === "confirm-needed";
    this.put(target, { ...quote, confirmed: asks ? false : quote.confirmed });
    if (asks && target === this.channel && (await this.confirm(reason))) this.put(target, { ...quote, confirmed: true });
  }

  /** Show what waits for this conversation, and nothing that waits for another. */
  use(channel) {
    this.channel = channel;
    this.draw();
  }

  draw() {
    const quote = this.waiting(this.channel);
    this.place.hidden = !quote;
    this.place.replaceChildren(...(quote ? [this.pendingCard(quote)] : []));
  }

  pendingCard(quote) {
    return element(
      "div",
      { class: "quote-pending", role: "group", "aria-label": say("quote_pending") },
      icon("quote"),
      element(
        "div",
        { class: "quote-said" },
        this.link(quote),
        quote.excerpt ? element("p", { class: "quote-excerpt" }, quote.excerpt) : "",
        quote.confirmed ? element("p", { class: "quote-note" }, say("quote_confirmed")) : "",
      ),
      element(
        "button",
        { class: "icon-button small", type: "button", title: say("quote_remove"), "aria-label": say("quote_remove"), onclick: () => this.drop(this.channel) },
        icon("close"),
      ),
    );
  }

  /** The card of a quote in the timeline: it leads back to the source, and says so when that is gone. */
  card(quote) {
    return element("div", { class: "quote-card" }, icon("quote"), this.link(quote));
  }

  link(quote) {
    const link = element("a", { class: "quote-link", href: addressOf(quote) }, nameOf(quote));
    link.addEventListener("click", async (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
      event.preventDefault();
      if (await isThere(quote)) this.onReveal(quote);
      else sayGone(link, quote);
    });
    return link;
  }
}

/** Whether the source can still be seen; an answer that did not come counts as yes, and going there will say. */
export async function isThere(quote) {
  const rest = quote.message_id ? `messages/${quote.message_id}/` : "level/";
  try {
    await request(`/api/threads/${quote.channel}/${rest}`);
  } catch (error) {
    return error.status !== 404;
  }
  return true;
}

function sayGone(link, quote) {
  const card = link.parentElement;
  if (card.querySelector(".quote-gone")) return;
  const sentence = say(quote.kind === "message" ? "quoted_message_gone" : "quoted_conversation_gone");
  card.classList.add("gone");
  link.after(element("p", { class: "quote-gone", role: "status" }, sentence));
}
