// What the server says over the socket, handed to whom it concerns.

import { titleOf } from "./conversation_rows.js";
import { say } from "./words.js";

/**
 * Returns what takes each frame. `page`: {current(), kept, conversations, alerts, login, sending, draw(),
 * showNothing(reason)}; the last is for an open conversation that is gone or never was.
 */
export function frameTaker({ current, kept, conversations, alerts, login, sending, draw, showNothing }) {
  const toConversation = (frame) => kept.get(frame.channel)?.take(frame);
  const isShown = (channel) => channel === current()?.channel;
  const takers = {
    threads: (frame) => conversations.update(frame),
    snapshot: toConversation,
    events: toConversation,
    earlier: toConversation,
    later: toConversation,
    sent: toConversation,
    chat_rejected(frame) {
      const conversation = kept.get(frame.channel);
      const item = conversation?.settle(frame.key, frame);
      if (!item) return;
      const asks = frame.code === "confirm-needed" ? say("asks_there") : frame.reason;
      const elsewhere =
        conversation !== current() &&
        conversation.state &&
        say("refused_elsewhere", { title: titleOf(conversation.state.thread) });
      alerts.show("error", elsewhere ? `${elsewhere} ${asks}` : `${frame.reason} ${say("back_to_you")}`);
      sending.comesBack(conversation, item, frame);
      if (conversation === current()) draw();
    },
    error(frame) {
      if (frame.code === "signed-out") return; // said by its own frame
      if (frame.about === "open" && isShown(frame.channel)) showNothing(frame.reason);
      else if (!frame.channel || isShown(frame.channel)) alerts.show("error", frame.reason);
    },
    gone(frame) {
      kept.forget(frame.channel);
      conversations.remove(frame.channel);
      if (isShown(frame.channel)) showNothing(say("gone"));
    },
    signed_out: () => login.isGone(),
  };
  return (frame) => takers[frame.type]?.(frame);
}
