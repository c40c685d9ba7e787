// What a rewind took out: folded away, one line with its number. What is in it is drawn, and read, when somebody opens
// it.

import { element, icon } from "./elements.js";
import { buildRow } from "./rows.js";
import { number, say } from "./words.js";

/** The stretch {first, last, count} that messages which stand together are of: a page holds only some of a long one. */
export function foldOf(messages) {
  return messages[0].fold ?? { first: messages[0].id, last: messages.at(-1).id, count: messages.length };
}

export class Fold {
  /** `messages`: those of the stretch that the page holds, at least one. */
  constructor(messages, actions, { open = false } = {}) {
    this.messages = messages;
    this.actions = actions;
    this.stretch = foldOf(messages);
    this.whole = null; // messages of the stretch down to its end, read because the page held too few
    const { count } = this.stretch;
    this.body = element("div", { class: "rewound-rows" });
    this.details = element(
      "details",
      { class: "fold" },
      element(
        "summary",
        {},
        icon("chevron", "chevron"),
        say(count === 1 ? "rewound_one" : "rewound_many", { number: number(count) }),
      ),
      this.body,
    );
    this.details.addEventListener("toggle", () => this.toggled());
    const undo = element(
      "button",
      { class: "quiet undo-rewind", type: "button", hidden: true, onclick: () => actions.undoRewind() },
      icon("undo"),
      say("undo_rewind"),
    );
    this.node = element("div", { class: "rewound" }, this.details, undo);
    this.details.open = open;
  }

  get open() {
    return this.details.open;
  }

  /** Whether what is drawn is what these messages stand for. */
  shows(messages) {
    const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
    return same(foldOf(messages), this.stretch) && (this.whole !== null || same(messages, this.messages));
  }

  holds(id) {
    return [...this.messages, ...(this.whole ?? [])].some((message) => message.id === id);
  }

  /** Open it, then go on. */
  show(then) {
    if (this.open && this.body.childElementCount) then();
    else {
      this.details.addEventListener("toggle", then, { once: true });
      this.details.open = true;
    }
  }

  async toggled() {
    if (!this.open) {
      this.body.replaceChildren();
      return;
    }
    this.draw();
    if (this.whole || this.messages.length >= this.stretch.count) return;
    // From the end on, and as far back as what was drawn already.
    let rows = [];
    do {
      const read = await this.read(rows[0]?.id ?? this.stretch.last + 1);
      if (!read?.length) return;
      rows = [...read, ...rows];
    } while (rows[0].id > this.messages[0].id);
    this.whole = rows;
    if (this.open) this.draw();
  }

  async read(before) {
    const { first } = this.stretch;
    return (await this.actions.before(before))?.filter((message) => message.id >= first && message.superseded) ?? null;
  }

  draw() {
    const rows = this.whole ?? this.messages;
    const drawn = new Map(
      [...this.body.querySelectorAll(":scope > [data-message]")].map((node) => [node.dataset.message, node]),
    );
    const nodes = rows.map(
      (row) => drawn.get(String(row.id)) ?? buildRow(row, { actions: this.actions, folded: true }),
    );
    const more = this.whole && rows[0].id > this.stretch.first;
    const button = more
      ? element(
          "button",
          { class: "button", type: "button", onclick: () => this.more(button) },
          say("earlier_messages"),
        )
      : "";
    this.body.replaceChildren(...[button, ...nodes].filter(Boolean));
  }

  async more(button) {
    button.disabled = true;
    const read = await this.read(this.whole[0].id);
    if (read?.length) this.whole = [...read, ...this.whole];
    if (this.open) this.draw();
    (this.body.querySelector(":scope > button") ?? this.details.querySelector("summary")).focus({
      preventScroll: true,
    });
  }
}
