// What the rows of the timeline can ask for: each an entry point of the server's, and what the page does after it.

import { copyText } from "./clipboard.js";
import { newKey } from "./conversation.js";
import { titleOf } from "./conversation_rows.js";
import { offers } from "./message_actions.js";
import { tooLong } from "./sending.js";
import { say } from "./words.js";

/**
 * `page`: {current(), ask(rest, how), edit(message), go(channel), quoting(), comesBack(conversation, item), toBox(),
 * announce(text), refuse(name of a sentence), told(text)}.
 */
export function rowActions(page) {
  // Change what stands: the conversation itself arrives by the socket. Resolves to whether it was done.
  const revise = async (rest, body) => (await page.ask(rest, { method: "POST", body })) !== null;
  return {
    state: () => page.current()?.state ?? null,
    earlier: () => page.current()?.earlier(),
    later: () => page.current()?.later(),
    copy: (message) => copyText(message.text),
    quote: (message) => page.quoting().message(message),
    quoteCard: (card) => page.quoting().quotes.card(card),
    retry: () => revise("retry/", { key: newKey() }),
    undoRewind: () => revise("undo-rewind/"),
    answer(call, text) {
      const conversation = page.current();
      if (conversation && tooLong(conversation.answerFrame(call, text)))
        return revise("answer/", { call: call.id, text });
      if (!conversation?.answer(call, text)) page.refuse("failed");
    },
    edit(message) {
      if (!offers(message, page.current()?.state).has("edit")) page.refuse("at_work");
      else page.edit(message);
    },
    resend: (message, text) => revise(`messages/${message.id}/edit/`, { text, key: newKey() }),
    async rewind(message) {
      if (!(await revise(`messages/${message.id}/rewind/`))) return;
      page.announce(say("rewound_now"));
      page.toBox();
    },
    async fork(message) {
      const thread = await page.ask(`messages/${message.id}/fork/`, { method: "POST" });
      if (!thread) return;
      page.go(thread.channel);
      page.told(say("forked_toast", { title: titleOf(thread) }));
    },
    async takeBack(item) {
      const conversation = page.current();
      const taken = await page.ask(`queued/${item.id}/`, { method: "DELETE" });
      if (taken) page.comesBack(conversation, taken);
    },
    async wholeText(messageId) {
      return (await page.ask(`messages/${messageId}/`))?.text ?? null;
    },
    /** The messages before one as they were said, nothing folded: ascending, or null. */
    async before(id) {
      return (await page.ask(`messages/?before=${id}`))?.messages ?? null;
    },
    async summary(ordinal) {
      return (await page.ask(`generations/${ordinal}/`))?.summary ?? null;
    },
  };
}
