// What a person does to a whole conversation: rename, archive, restore, branch, delete, and take that back.

import { titleOf } from "./conversation_rows.js";
import { askForLine } from "./dialogs.js";
import { showMenu } from "./menu.js";
import { quotable } from "./message_actions.js";
import { request } from "./requests.js";
import { say } from "./words.js";

const TITLE_MAX_CHARS = 200;

export class WholeConversation {
  /** `onGone(channel)`, `onBack`, `onChanged`, `onQuote` and `onLevel(thread)`, `onError(error)`. */
  constructor({ toasts, onGone, onBack, onChanged, onQuote, onLevel, onError }) {
    Object.assign(this, { toasts, onGone, onBack, onChanged, onQuote, onLevel, onError });
  }

  menu(thread, { at, from }) {
    const archived = thread.status === "archived";
    const main = thread.kind === "main";
    showMenu(
      [
        { label: say("rename"), icon: "edit", action: () => this.rename(thread) },
        quotable(thread) && { label: say("quote_whole"), icon: "quote", action: () => this.onQuote(thread) },
        !main && { label: say("level_menu"), icon: "level", action: () => this.onLevel(thread) },
        !main &&
          thread.status !== "ended" && {
            label: say(archived ? "restore" : "archive"),
            icon: archived ? "undo" : "archive",
            action: () => this.archive(thread, !archived),
          },
        ...(main
          ? []
          : [null, { label: say("delete"), icon: "delete", danger: true, action: () => this.delete(thread) }]),
      ].filter((item) => item !== false),
      { at, from, label: say("conversation_actions") },
    );
  }

  async rename(thread) {
    const focused = document.activeElement;
    const title = await askForLine({
      title: say("rename_title"),
      label: say("title"),
      value: titleOf(thread),
      action: say("rename"),
      maxLength: TITLE_MAX_CHARS,
    });
    if (focused?.isConnected) focused.focus({ preventScroll: true });
    if (title === null || title === thread.title) return;
    await this.tell(thread, "", { method: "PATCH", body: { title } }, (view) => this.onChanged(view));
  }

  async archive(thread, away) {
    await this.tell(thread, away ? "archive/" : "unarchive/", { method: "POST" }, (view) => {
      if (away) this.onGone(view, { kept: true });
      else this.onBack(view);
      const text = say(away ? "archived_toast" : "restored_toast", { title: titleOf(view) });
      this.toasts.show(text, { undo: () => this.archive(view, !away), focus: away, about: view.channel });
    });
  }

  async delete(thread) {
    await this.tell(thread, "", { method: "DELETE" }, (view) => {
      this.onGone(view, { kept: false });
      this.toasts.show(say("deleted_toast", { title: titleOf(view) }), {
        undo: () => this.undelete(view),
        focus: true,
        about: view.channel,
      });
    });
  }

  async undelete(thread) {
    await this.tell(thread, "undelete/", { method: "POST" }, (view) => this.onBack(view));
  }

  async tell(thread, rest, how, then) {
    try {
      then(await request(`/api/threads/${thread.channel}/${rest}`, how));
    } catch (error) {
      this.onError(error);
    }
  }
}
