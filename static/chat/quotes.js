// Quotes: what waits on the composer of the conversation it was chosen for, and cards that lead to the source.
//
// A quote has two ends. Its pointer leads to the source; where it waits and where it is sent is its target, which is
// the key under which it is kept here.

import { askToConfirm } from "./dialogs.js";
import { element, icon } from "./elements.js";
import { keep, kept } from "./keeping.js";
import { request } from "./requests.js";
import { chooseTarget } from "./target_chooser.js";
import { page, say } from "./words.js";

const EXCERPT_MAX_CHARS = 280;
const POINTER = ["kind", "channel", "message_id"];

/** What points at the source; what is no quote at all is the server's to judge. */
export function pointerOf(quote) {
  if (quote === null || typeof quote !== "object") return quote;
  return Object.fromEntries(POINTER.filter((name) => name in quote).map((name) => [name, quote[name]]));
}
export const toMessage = (channel, message) => ({ kind: "message", channel, message_id: message.id });
export const toWhole = (channel) => ({ kind: "channel", channel });
export const addressOf = ({ channel, message_id: id }) => `${page.home}c/${channel}/${id ? `#m${id}` : ""}`;

const nameOf = (quote) =>
  say(quote.kind === "message" ? "quoted_message" : "quoted_conversation", { title: quote.title || say("untitled") });

export class Quotes {
  /**
   * `place`: where the cards of the open conversation stand; `level`: of the conversation that begins with what is sent
   * next, whose channel is "". `onTarget(channel)`: go there; `onReveal(quote)`; `onRequest(pointer, title)`: somebody
   * began to quote.
   */
  constructor({ place, level, onTarget, onReveal, onRequest }) {
    Object.assign(this, { place, level, onTarget, onReveal, onRequest });
    this.channel = "";
  }

  /** Ask where to, and put the quote on that conversation's composer. Throws what the server refuses. */
  async begin(pointer, { title = "", excerpt = "", told = false } = {}) {
    if (!told) this.onRequest(pointer, title);
    const target = await chooseTarget({
      from: pointer.channel,
      here: pointer.kind === "message",
      accept: async (chosen) => {
        const before = this.level.level;
        if (!chosen && !(await this.level.ask())) return null;
        let placed = false;
        try {
          placed = await this.wait(pointer, chosen, excerpt);
        } finally {
          if (!placed && !chosen) this.level.choose(before);
        }
        return placed ? chosen : null;
      },
    });
    if (target !== null) this.onTarget(target);
    return target !== null;
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
    const seen = await this.look(pointer, target);
    if (seen.needs_confirm && !(await this.confirm(seen.confirm_text))) return null;
    return { ...seen.quote, confirm_text: seen.confirm_text };
  }

  /** What the server says of a quote before it is sent. Throws what it refuses. */
  look(pointer, target) {
    const body = { quote: pointer, target: target ?? null, ...(target === "" ? this.level.level : {}) };
    return request("/api/quotes/preview/", { method: "POST", body });
  }

  confirm(text) {
    return askToConfirm({ title: say("quote_confirm"), text, action: say("quote_hand_over") });
  }

  // What waits, by the channel of its target: first the cards that came back with words that were refused, in their
  // order, then the one that the person chose last. Each message takes the first along.

  cards(target) {
    return JSON.parse(kept(`quote ${target}`) ?? "[]");
  }

  keepCards(target, cards) {
    keep(`quote ${target}`, cards.length ? JSON.stringify(cards) : "");
    if (target === this.channel) this.draw();
  }

  put(target, card) {
    this.keepCards(target, [...this.cards(target).filter((one) => one.returned), card]);
  }

  /** Take what goes with the words that are sent now off the composer of `target`. */
  take(target) {
    const [card = null, ...rest] = this.cards(target);
    if (card) this.keepCards(target, rest);
    return card;
  }

  /** Put `others` in the place of one card. */
  replace(target, card, ...others) {
    const cards = this.cards(target);
    const place = cards.findIndex((one) => JSON.stringify(one) === JSON.stringify(card));
    if (place < 0) return;
    cards.splice(place, 1, ...others);
    this.keepCards(target, cards);
  }

  /** A message was refused: its card stands on the composer again. When what it asks to confirm has changed, ask. */
  async giveBack(target, quote, { code, reason } = {}) {
    if (!quote) return;
    const asks = code === "confirm-needed";
    const card = { ...quote, ...(asks ? { confirm_text: "" } : {}), returned: true };
    const cards = this.cards(target);
    cards.splice(cards.filter((one) => one.returned).length, 0, card);
    this.keepCards(target, cards);
    if (!asks || target !== this.channel) return;
    if (await this.confirm(reason)) this.replace(target, card, { ...card, confirm_text: reason });
  }

  /** What was to go to a conversation that is gone waits for a new one, where other boundaries are crossed. */
  moveToNew(from, unsent) {
    const cards = [...unsent.filter(Boolean), ...this.cards(from)].map((card) => ({
      ...card,
      confirm_text: "",
      returned: true,
    }));
    this.keepCards(from, []);
    this.keepCards("", [...cards, ...this.cards("")]);
  }

  /** Show what waits for this conversation, and nothing that waits for another. */
  use(channel) {
    this.channel = channel;
    this.draw();
  }

  draw() {
    const cards = this.cards(this.channel);
    this.place.hidden = !cards.length;
    this.place.replaceChildren(...cards.map((card, place) => this.pendingCard(card, place === 0)));
  }

  pendingCard(card, next) {
    return element(
      "div",
      { class: "quote-pending", role: "group", "aria-label": say(next ? "quote_pending" : "quote_pending_later") },
      icon("quote"),
      element(
        "div",
        { class: "quote-said" },
        this.link(card),
        card.excerpt ? element("p", { class: "quote-excerpt" }, card.excerpt) : "",
        card.confirm_text ? element("p", { class: "quote-note" }, say("quote_confirmed")) : "",
        next ? "" : element("p", { class: "quote-note" }, say("quote_pending_later")),
      ),
      element(
        "button",
        {
          class: "icon-button small",
          type: "button",
          title: say("quote_remove"),
          "aria-label": say("quote_remove"),
          onclick: () => this.replace(this.channel, card),
        },
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
