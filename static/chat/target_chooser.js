// Choosing the conversation to quote in: a list that is searched as one types.

import { titleOf } from "./conversation_rows.js";
import { closeOnBackdrop } from "./dialogs.js";
import { element, icon } from "./elements.js";
import { badgesOf } from "./levels.js";
import { request } from "./requests.js";
import { say } from "./words.js";

const SEARCH_DELAY_MS = 150;
const SHOWN = 40;

/**
 * Calls `accept(channel)` with what the person chose, "" for a new conversation, and closes when that is done: until
 * then nothing else on the page can be written or sent. Resolves to what it resolved to, null when the person thought
 * better of it. `from`: channel of the conversation that is quoted; `here`: whether that may be the target too.
 */
export function chooseTarget({ from, here, accept }) {
  return new Promise((resolve, reject) => new Chooser(from, here, accept, resolve, reject));
}

class Chooser {
  constructor(from, here, accept, resolve, reject) {
    Object.assign(this, { from, here, accept, resolve, reject });
    this.taken = null; // what became of the choice
    this.active = -1;
    this.before = document.activeElement;
    this.box = element("input", {
      type: "search",
      id: "target-search",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "target-list",
      "aria-autocomplete": "list",
      "aria-label": say("search_target"),
      placeholder: say("search_target"),
      autocomplete: "off",
      maxlength: "200",
    });
    this.list = element("ul", { id: "target-list", role: "listbox", "aria-label": say("quote_where") });
    this.said = element("p", { class: "empty", role: "status", hidden: true });
    this.dialog = element(
      "dialog",
      { class: "dialog target-chooser", "aria-labelledby": "target-title" },
      element("h2", { id: "target-title" }, say("quote_where")),
      this.box,
      this.list,
      this.said,
      element(
        "div",
        { class: "dialog-buttons" },
        element("button", { class: "button", type: "button", onclick: () => this.dialog.close() }, say("cancel")),
      ),
    );
    this.box.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.find(), SEARCH_DELAY_MS);
    });
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.take(option);
    });
    this.dialog.addEventListener("cancel", (event) => this.dialog.hasAttribute("aria-busy") && event.preventDefault());
    this.dialog.addEventListener("close", () => {
      this.dialog.remove();
      if (this.taken === null && this.before?.isConnected) this.before.focus({ preventScroll: true });
      this.resolve(this.taken);
    });
    closeOnBackdrop(this.dialog);
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.box.focus();
    this.find();
  }

  async find() {
    const search = this.box.value.trim();
    let found;
    try {
      found = await request(`/api/threads/?${new URLSearchParams({ limit: SHOWN, ...(search ? { search } : {}) })}`);
    } catch (error) {
      this.tell(error.reason ?? say("failed"));
      return;
    }
    if (search !== this.box.value.trim()) return; // another answer is on its way
    const threads = found.threads.filter((thread) => this.here || thread.channel !== this.from);
    const options = threads.map((thread) => this.option(thread));
    if (say("untitled").toLowerCase().includes(search.toLowerCase())) options.unshift(this.newOption());
    options.forEach((option, place) => option.setAttribute("id", `target-${place}`));
    this.list.replaceChildren(...options);
    this.tell(options.length ? "" : say("nothing_found", { query: search }));
    this.activate(search || options.length < 2 ? 0 : 1);
  }

  option(thread) {
    const own = thread.channel === this.from ? element("span", { class: "badge" }, say("this_conversation")) : "";
    return element(
      "li",
      { role: "option", "data-channel": thread.channel, "aria-selected": "false" },
      element("span", { class: "name" }, titleOf(thread)),
      own,
      ...badgesOf(thread),
    );
  }

  newOption() {
    return element(
      "li",
      { role: "option", "data-channel": "", "aria-selected": "false", class: "new" },
      icon("new"),
      element("span", { class: "name" }, say("untitled")),
    );
  }

  tell(sentence) {
    this.said.textContent = sentence;
    this.said.hidden = !sentence;
  }

  onKey(event) {
    const last = this.list.children.length - 1;
    const target = { ArrowDown: Math.min(this.active + 1, last), ArrowUp: Math.max(this.active - 1, 0) }[event.key];
    if (target !== undefined) this.activate(target);
    else if (event.key === "Enter" && !event.isComposing && this.list.children[this.active])
      this.take(this.list.children[this.active]);
    else return;
    event.preventDefault();
  }

  activate(place) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    const option = this.list.children[place];
    this.active = option ? place : -1;
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.box.setAttribute("aria-activedescendant", option.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  async take(option) {
    if (this.dialog.hasAttribute("aria-busy")) return;
    this.dialog.setAttribute("aria-busy", "true");
    try {
      this.taken = await this.accept(option.dataset.channel);
    } catch (error) {
      this.reject(error);
    }
    this.dialog.close();
  }
}
