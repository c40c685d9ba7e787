// Walking through messages with the keyboard: one message takes the focus, arrows move it, Enter opens its menu.

export class Walker {
  /** `onMenu(id, node, place)`: the menu of a message was asked for. */
  constructor(scroller, root, onMenu) {
    Object.assign(this, { scroller, root, onMenu });
    this.current = null;
    root.addEventListener("focusin", (event) => this.choose(event.target.closest(".message[data-message]")));
    root.addEventListener("contextmenu", (event) => this.rightClick(event));
    root.addEventListener("keydown", (event) => this.onKey(event));
    scroller.addEventListener("keydown", (event) => {
      if (event.target === scroller && event.key === "ArrowUp" && event.altKey) this.step(-1, event);
    });
  }

  messages() {
    return [...this.root.querySelectorAll(".message[data-message]")];
  }

  /** After drawing: exactly one message is in the tab order. */
  refresh() {
    if (this.current?.isConnected) return;
    this.choose(this.messages().at(-1) ?? null);
  }

  choose(node) {
    if (!node || node === this.current) return;
    if (this.current) this.reach(this.current, "-1");
    this.current = node;
    this.reach(node, "0");
  }

  reach(node, tabindex) {
    node.tabIndex = Number(tabindex);
    for (const button of node.querySelectorAll(".message-actions button")) button.tabIndex = Number(tabindex);
  }

  /** To the message before or after this one; from anywhere else, to the last one. */
  step(by, event) {
    const messages = this.messages();
    if (!messages.length) return;
    const inside = this.current?.contains(document.activeElement);
    const now = messages.indexOf(this.current);
    const target = inside ? messages[now + by] : messages.at(-1);
    event?.preventDefault();
    if (!target) return;
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: "nearest" });
  }

  onKey(event) {
    if (event.target !== this.current || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (event.key === "ArrowDown") this.step(1, event);
    else if (event.key === "ArrowUp") this.step(-1, event);
    else if (event.key === "Enter") {
      event.preventDefault();
      this.onMenu(Number(this.current.dataset.message), this.current, this.current);
    }
  }

  rightClick(event) {
    const node = event.target.closest(".message[data-message]");
    // What the browser's own menu is for stays with it: links, boxes, a selection.
    const own = event.target.closest("a, input, textarea") || !getSelection().isCollapsed;
    if (!node || own || event.shiftKey || node.closest(".rewound")) return;
    event.preventDefault();
    const byKeyboard = event.clientX === 0 && event.clientY === 0;
    const box = node.getBoundingClientRect();
    const inside = event.clientY >= box.top && event.clientY <= box.bottom;
    this.onMenu(
      Number(node.dataset.message),
      node,
      byKeyboard || !inside ? node : { x: event.clientX, y: event.clientY },
    );
  }
}
