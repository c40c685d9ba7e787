// The list of conversations: newest first, by day, searched by title.

import { element } from "./elements.js";
import { request } from "./requests.js";
import { daysAgo, page, say } from "./words.js";

const SEARCH_DELAY_MS = 180;

export class Conversations {
  /** `onOpen(channel)` for a plain click; links work by themselves otherwise. */
  constructor({ nav, search, onOpen, onError }) {
    Object.assign(this, { nav, search, onOpen, onError });
    this.first = { threads: [], has_more: false };
    this.older = [];
    this.current = "";
    this.found = null; // the answer to a search, or null
    search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.find(), SEARCH_DELAY_MS);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && search.value) {
        search.value = "";
        this.find();
      }
    });
    nav.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-channel]");
      if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
      event.preventDefault();
      this.onOpen(link.dataset.channel);
    });
  }

  get threads() {
    if (this.found) return this.found.threads;
    const known = new Set(this.first.threads.map((thread) => thread.channel));
    return [...this.first.threads, ...this.older.filter((thread) => !known.has(thread.channel))];
  }

  get hasMore() {
    return this.found ? this.found.has_more : (this.olderHasMore ?? this.first.has_more);
  }

  /** A fresh first page, from the server. */
  update(list) {
    this.first = list;
    this.draw();
  }

  /** One thread's own view is newer than the list's. */
  updateThread(view) {
    const replace = (rows) => rows.map((row) => (row.channel === view.channel ? view : row));
    this.first = { ...this.first, threads: replace(this.first.threads) };
    this.older = replace(this.older);
    this.draw();
  }

  select(channel) {
    this.current = channel;
    this.draw();
  }

  remove(channel) {
    this.older = this.older.filter((thread) => thread.channel !== channel);
    this.first = { ...this.first, threads: this.first.threads.filter((thread) => thread.channel !== channel) };
    this.draw();
  }

  async find() {
    const query = this.search.value.trim();
    if (!query) {
      this.found = null;
      this.draw();
      return;
    }
    const found = await this.load({ search: query });
    // An answer that another one overtook is old.
    if (found && this.search.value.trim() === query) {
      this.found = found;
      this.draw();
    }
  }

  async more() {
    const last = this.threads.at(-1);
    const query = this.found ? { search: this.search.value.trim(), before: last.channel } : { before: last.channel };
    const loaded = await this.load(query);
    if (!loaded) return;
    if (this.found) this.found = { threads: [...this.found.threads, ...loaded.threads], has_more: loaded.has_more };
    else {
      this.older = [...this.older, ...loaded.threads];
      this.olderHasMore = loaded.has_more;
    }
    this.draw();
    this.nav.querySelector(`a[data-channel="${loaded.threads[0]?.channel}"]`)?.focus();
  }

  async load(query) {
    try {
      return await request(`/api/threads/?${new URLSearchParams(query)}`);
    } catch (error) {
      this.onError(error);
      return null;
    }
  }

  draw() {
    const { threads } = this;
    const focused = document.activeElement?.dataset?.channel;
    const place = this.nav.scrollTop;
    if (!threads.length) {
      const text = this.found ? say("nothing_found", { query: this.search.value.trim() }) : say("no_conversations");
      this.nav.replaceChildren(element("p", { class: "empty" }, text));
      return;
    }
    const main = threads.filter((thread) => thread.kind === "main");
    const groups = [["", main], ...this.byAge(threads.filter((thread) => thread.kind !== "main"))];
    this.nav.replaceChildren(
      ...groups.flatMap(([name, rows]) =>
        rows.length
          ? [name ? element("h2", {}, name) : "", element("ul", {}, ...rows.map((thread) => this.line(thread)))]
          : [],
      ),
      this.hasMore
        ? element("button", { class: "button more", type: "button", onclick: () => this.more() }, say("more_conversations"))
        : "",
    );
    this.nav.scrollTop = place;
    if (focused && this.nav.contains(document.activeElement) === false) {
      this.nav.querySelector(`a[data-channel="${focused}"]`)?.focus({ preventScroll: true });
    }
  }

  byAge(threads) {
    const groups = new Map([["today", []], ["yesterday", []], ["last_week", []], ["older", []]]);
    for (const thread of threads) {
      const ago = daysAgo(new Date(thread.updated));
      groups.get(ago <= 0 ? "today" : ago === 1 ? "yesterday" : ago <= 7 ? "last_week" : "older").push(thread);
    }
    return [...groups].map(([name, rows]) => [say(name), rows]);
  }

  line(thread) {
    const name = titleOf(thread);
    const state = thread.state === "running" ? "running" : thread.state === "waiting" ? "waiting" : "";
    const said = { running: say("running"), waiting: say("waiting_for_you") }[state];
    return element(
      "li",
      {},
      element(
        "a",
        {
          href: `${page.home}c/${thread.channel}/`,
          "data-channel": thread.channel,
          "aria-current": thread.channel === this.current ? "page" : null,
          title: name,
        },
        element("span", { class: "name" }, name),
        thread.kind === "task" ? element("span", { class: "badge" }, say("task")) : "",
        thread.scope === "isolated" ? element("span", { class: "badge" }, say("isolated")) : "",
        thread.category ? element("span", { class: "badge" }, thread.category) : "",
        state ? element("span", { class: `dot ${state}`, role: "img", "aria-label": said, title: said }) : "",
      ),
    );
  }
}

export function titleOf(thread) {
  return thread.title || say(thread.kind === "main" ? "main" : "untitled");
}
