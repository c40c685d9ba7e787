// The conversation as elements. A row is drawn again only when what it shows is another.

import { editRow, isEdited } from "./editing.js";
import { element, icon, reconcile } from "./elements.js";
import { Fold, foldOf } from "./folds.js";
import { buildRow, growRow, refreshRow } from "./rows.js";
import { dayKey, dayName, say } from "./words.js";

const POINTED_MS = 2400;

/** What a person unfolds at the lower edge comes into sight. */
function showUnfolded({ target }) {
  const fold = target.closest("summary")?.parentElement;
  if (!fold?.matches(".tool-card, .thinking, .renewal")) return;
  // Open and shut is the browser's to do, after the click.
  requestAnimationFrame(() => fold.open && fold.scrollIntoView({ block: "nearest" }));
}

export class Timeline {
  /** `actions`: what rows can ask for, see `main.js`. */
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
    root.addEventListener("click", showUnfolded);
    this.clear();
  }

  clear() {
    this.rows = new Map(); // message id -> {node, message, day}
    this.days = new Map(); // first message's id -> {node, key}
    this.folds = new Map(); // first message's id -> Fold
    this.waiting = new Map(); // client key -> {node, fate}
    this.root.replaceChildren();
  }

  /** Instead of a conversation: a welcome, or why there is none. */
  showOnly(node) {
    this.clear();
    this.root.replaceChildren(node);
  }

  /** `view`: a snapshot or a window of its history; `pending`: [{key, text, quote}] on their way to the server. */
  draw(view, pending, { loading = false } = {}) {
    const nodes = [this.edge("earlier", view.has_earlier, loading)];
    this.built = []; // messages whose rows are new nodes
    const used = { rows: new Set(), days: new Set(), folds: new Set() };
    const last = view.has_later ? null : view.messages.findLast((message) => !message.superseded);
    let day = null;
    for (const part of parts(view.messages)) {
      const first = part[0];
      const key = this.dayOf(first);
      if (key !== day) {
        nodes.push(this.daySign(first, key));
        used.days.add(first.id);
      }
      day = this.dayOf(part.at(-1));
      if (first.superseded) used.folds.add(foldOf(part).first);
      else used.rows.add(first.id);
      nodes.push(first.superseded ? this.fold(part) : this.row(first, view, first === last));
    }
    for (const [name, ids] of Object.entries(used))
      for (const id of [...this[name].keys()]) if (!ids.has(id)) this[name].delete(id);
    this.offerUndo(view);
    this.root.dataset.rests = String(
      view.thread?.state === "idle" && view.thread.status === "active" && !view.turn && !view.queued.length,
    );
    if (working(view)) nodes.push(this.workingSign());
    nodes.push(...this.words(view.queued, pending), this.edge("later", view.has_later, loading));
    reconcile(this.root, nodes.filter(Boolean));
    // Words in place of others that were begun before this row was drawn, here or in another life of the page.
    for (const message of this.built)
      if (message.role === "user" && isEdited(message)) this.edit(message, { focus: false });
  }

  edge(name, there, loading) {
    if (!there) return null;
    const known = `${name}Edge`;
    this[known] ??= element("button", {
      class: "button timeline-edge",
      type: "button",
      onclick: () => this.actions[name](),
    });
    this[known].textContent = say(loading ? "loading_messages" : `${name}_messages`);
    this[known].toggleAttribute("aria-busy", loading);
    return this[known];
  }

  dayOf(message) {
    const known = this.rows.get(message.id);
    if (known?.message.created === message.created && known.day) return known.day;
    return dayKey(new Date(message.created));
  }

  daySign(message, key) {
    const known = this.days.get(message.id);
    if (known?.key === key) return known.node;
    const node = element("h2", { class: "day" }, dayName(new Date(message.created)));
    this.days.set(message.id, { key, node });
    return node;
  }

  workingSign() {
    this.workingNode ??= element("p", { class: "working" }, say("working"));
    return this.workingNode;
  }

  row(message, view, isLast) {
    const known = this.rows.get(message.id);
    let node = known?.node;
    if (!known || !same(known.message, message)) {
      const grown = known && known.message.state === "streaming" && message.state === "streaming";
      node = grown ? growRow(known, message, this.actions) : buildRow(message, { actions: this.actions, known });
      if (known && known.node !== node) replace(known.node, node);
    }
    if (node !== known?.node) this.built.push(message);
    this.rows.set(message.id, { node, message, day: known?.day ?? dayKey(new Date(message.created)) });
    node.classList.toggle("last", isLast);
    refreshRow(node, message, view, isLast);
    return node;
  }

  fold(messages) {
    const { first } = foldOf(messages);
    const known = this.folds.get(first);
    if (known?.shows(messages)) return known.node;
    const fold = new Fold(messages, this.actions, { open: known?.open });
    this.folds.set(first, fold);
    return fold.node;
  }

  /** The newest rewind can be undone, where what it left behind is shown. */
  offerUndo(view) {
    const candidates = [...this.folds].filter(([first]) => typeof view.rewound === "number" && first <= view.rewound);
    const chosen =
      candidates.length && !view.turn && view.thread?.status === "active"
        ? Math.max(...candidates.map(([first]) => first))
        : null;
    for (const [first, { node }] of this.folds) node.querySelector(".undo-rewind").hidden = first !== chosen;
  }

  /** Let the person say something else in place of one of their messages. */
  edit(message, { focus = true } = {}) {
    const node = this.node(message.id);
    if (!node || node.dataset.editing) return;
    editRow(node, message, {
      focus,
      onSend: (text) => this.actions.resend(message, text),
      onEnd: () => node.isConnected && node.focus({ preventScroll: true }),
    });
  }

  node(id) {
    return this.rows.get(id)?.node;
  }

  /** Show the reader one message that is drawn, out of its fold when it was rewound. */
  reveal(id) {
    const fold = [...this.folds.values()].find((one) => one.holds(id));
    if (fold) fold.show(() => this.point(id));
    else this.point(id);
  }

  point(id) {
    const node = this.root.querySelector(`[data-message="${id}"]`);
    if (!node) return;
    node.scrollIntoView({ block: "center" });
    node.focus({ preventScroll: true });
    node.classList.add("pointed");
    setTimeout(() => node.classList.remove("pointed"), POINTED_MS);
  }

  /** Words that are not in the record yet: queued at the server, or on their way to it. */
  words(queued, pending) {
    const known = new Set(queued.map((item) => item.key));
    const rows = [
      ...queued.map((item) => ({
        key: item.key || `item ${item.id}`,
        text: item.text,
        quote: item.quote,
        fate: "queued",
        item,
      })),
      ...pending.filter((item) => !known.has(item.key)).map((item) => ({ ...item, fate: "sending" })),
    ];
    const nodes = rows.map((row) => {
      const before = this.waiting.get(row.key);
      if (before?.fate === row.fate) return before.node;
      const node = this.waitingRow(row);
      this.waiting.set(row.key, { node, fate: row.fate });
      return node;
    });
    const keys = new Set(rows.map((row) => row.key));
    for (const key of [...this.waiting.keys()]) if (!keys.has(key)) this.waiting.delete(key);
    return nodes;
  }

  waitingRow({ key, text, quote, fate, item }) {
    const takeBack = item
      ? element(
          "button",
          { class: "quiet take-back", type: "button", onclick: () => this.actions.takeBack(item) },
          icon("undo"),
          say("take_back"),
        )
      : "";
    return element(
      "article",
      { class: "message from-user on-its-way", "data-key": key, "data-fate": fate },
      quote ? this.actions.quoteCard(quote) : "",
      element("div", { class: "bubble" }, text),
      element("div", { class: "fate" }, element("span", {}, say(fate)), takeBack),
    );
  }
}

/** Messages one by one, rewound ones that stand together as one part. */
function* parts(messages) {
  let rewound = [];
  for (const message of messages) {
    if (message.superseded) {
      rewound.push(message);
      continue;
    }
    if (rewound.length) yield rewound;
    rewound = [];
    yield [message];
  }
  if (rewound.length) yield rewound;
}

/** A fresh snapshot holds equal messages as other objects: what is drawn, and open, and focused, stays. */
function same(one, other) {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** The focus stays with a row that is drawn again. */
function replace(old, fresh) {
  const focused = old === document.activeElement;
  old.replaceWith(fresh);
  if (focused) fresh.focus({ preventScroll: true });
}

/** Whether a turn runs and nothing on the page shows that yet. */
function working(view) {
  if (view.turn?.state !== "running") return false;
  const last = view.messages.at(-1);
  if (!last) return true;
  if (last.state === "streaming") return !last.text;
  return !last.tool_calls.some((call) => call.status === "running" || call.status === "waiting");
}
