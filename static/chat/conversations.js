// The list of conversations: newest first, by day, searched by title; archived ones are a list of their own, with
// those that were deleted a moment ago and can be brought back.

import { byAge, conversationRow, deletedRow, moreButton } from "./conversation_rows.js";
import { element, icon } from "./elements.js";
import { request } from "./requests.js";
import { noteTitles } from "./titles.js";
import { page, say } from "./words.js";

const SEARCH_DELAY_MS = 180;
const PAGE_ROWS = 60; // of the list that the socket brings, and of what is shown more: chat/conversations.py
const REQUEST_MAX_ROWS = 200;

export class Conversations {
  /** `onOpen(channel)` for a plain click, links work by themselves otherwise; `onMenu(thread, {at, from})`. */
  constructor({ nav, search, archivedButton, onOpen, onMenu, onRename, onDelete, onBringBack, onError }) {
    Object.assign(this, { nav, search, archivedButton, onOpen, onMenu, onRename, onDelete, onBringBack, onError });
    this.lines = new Map(); // channel -> {key: what it shows, node}
    this.first = { threads: [], has_more: false };
    this.current = "";
    this.archived = false;
    this.found = null; // what was read: a search, the archived ones, more than the first page; or null
    this.wanted = new Map(); // what is asked for, as JSON -> how many pages of it, where that is more than one
    this.deletedPages = 1; // how much of what was deleted is shown
    this.reading = Promise.resolve();
    this.next = null; // the reading after the one under way
    search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.find(), SEARCH_DELAY_MS);
    });
    search.addEventListener("keydown", (event) => this.onSearchKey(event));
    archivedButton.addEventListener("click", () => this.showArchived(!this.archived));
    nav.addEventListener("click", (event) => this.onClick(event));
    nav.addEventListener("keydown", (event) => this.onKey(event));
    nav.addEventListener("contextmenu", (event) => this.onContextMenu(event));
  }

  onSearchKey(event) {
    if (event.key === "Escape" && this.search.value) {
      event.preventDefault();
      this.search.value = "";
      this.find();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      this.links()[0]?.focus();
    }
  }

  onClick(event) {
    const more = event.target.closest("button.row-menu");
    const link = event.target.closest("a[data-channel]");
    if (more) this.onMenu(this.threadOf(more.previousElementSibling), { at: more });
    else if (link && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey && event.button === 0) {
      event.preventDefault();
      this.onOpen(link.dataset.channel);
    }
  }

  onKey(event) {
    const link = event.target.closest("a[data-channel]");
    if (!link || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const links = this.links();
    const place = links.indexOf(link);
    if (event.key === "ArrowDown") links[place + 1]?.focus();
    else if (event.key === "ArrowUp") (links[place - 1] ?? this.search).focus();
    else if (event.key === "ArrowRight") this.onMenu(this.threadOf(link), { at: link.nextElementSibling, from: link });
    else if (event.key === "F2") this.onRename(this.threadOf(link));
    else if (event.key === "Delete") this.onDelete(this.threadOf(link));
    else return;
    event.preventDefault();
  }

  onContextMenu(event) {
    const link = event.target.closest("li")?.querySelector("a[data-channel]");
    if (!link || event.shiftKey) return;
    event.preventDefault();
    const byKeyboard = event.clientX === 0 && event.clientY === 0;
    this.onMenu(this.threadOf(link), { at: byKeyboard ? link : { x: event.clientX, y: event.clientY }, from: link });
  }

  links() {
    return [...this.nav.querySelectorAll("a[data-channel]")];
  }

  threadOf(link) {
    return this.threads.find((thread) => thread.channel === link.dataset.channel);
  }

  async showArchived(archived) {
    this.archived = archived;
    this.deletedPages = 1;
    this.archivedButton.setAttribute("aria-pressed", String(archived));
    await this.find();
  }

  get threads() {
    return (this.found ?? this.first).threads;
  }

  get hasMore() {
    return (this.found ?? this.first).has_more;
  }

  /** A fresh first page of the active ones, from the server. Whatever else is shown is read again: rows come and go. */
  update(list) {
    this.first = list;
    noteTitles(list.threads);
    this.find();
  }

  /** One thread's own view is newer than the list's. */
  updateThread(view) {
    noteTitles([view]);
    const rows = [...this.first.threads, ...(this.found?.threads ?? [])];
    const known = rows.filter((row) => row.channel === view.channel);
    // An answer that grows changes nothing here, ten times a second.
    if (known.every((row) => row === view || JSON.stringify(row) === JSON.stringify(view))) return;
    const replace = (rows) => rows.map((row) => (row.channel === view.channel ? view : row));
    this.first = { ...this.first, threads: replace(this.first.threads) };
    if (this.found) this.found = { ...this.found, threads: replace(this.found.threads) };
    this.draw();
  }

  select(channel) {
    this.current = channel;
    this.draw();
  }

  remove(channel) {
    const without = (rows) => rows.filter((thread) => thread.channel !== channel);
    this.first = { ...this.first, threads: without(this.first.threads) };
    if (this.found)
      this.found = { ...this.found, threads: without(this.found.threads), deleted: without(this.found.deleted) };
    this.draw();
  }

  get query() {
    const search = this.search.value.trim();
    return { ...(search ? { search } : {}), ...(this.archived ? { status: "archived" } : {}) };
  }

  /** Show what is asked for. Whoever asks while something is read gets the reading after it. */
  find() {
    const key = JSON.stringify(this.query);
    if (key === "{}" && !this.wanted.has(key)) {
      this.found = null;
      this.draw();
      return Promise.resolve();
    }
    this.next ??= this.reading.then(() => {
      this.next = null;
      this.reading = this.read();
      return this.reading;
    });
    return this.next;
  }

  async read() {
    const { query } = this;
    const key = JSON.stringify(query);
    const isOld = () => JSON.stringify(this.query) !== key; // another question overtook it
    const found = await this.readPages(query, this.wanted.get(key) ?? 1, isOld);
    if (!found) return;
    // Whatever can still be brought back stands with what was put away.
    const gone = this.archived ? await this.readPages({ ...query, status: "deleted" }, this.deletedPages, isOld) : null;
    if (isOld()) return;
    this.found = { ...found, deleted: gone?.threads ?? [], more_deleted: gone?.has_more ?? false };
    this.draw();
  }

  /** {threads, has_more}: so many pages of what the query asks for; null where that failed or `isOld()`. */
  async readPages(query, pages, isOld) {
    let missing = pages * PAGE_ROWS; // the main conversation stands outside the pages
    let found = { threads: [], has_more: true };
    while (found.has_more && missing > 0) {
      const limit = Math.min(missing, REQUEST_MAX_ROWS);
      missing -= limit;
      const before = found.threads.length ? { before: found.threads.at(-1).channel } : {};
      const page = await this.load({ ...query, limit, ...before });
      if (!page || isOld()) return null;
      found = { threads: [...found.threads, ...page.threads], has_more: page.has_more };
    }
    return found;
  }

  async moreDeleted() {
    const count = this.found.deleted.length;
    this.deletedPages += 1;
    await this.find();
    this.nav.querySelectorAll(".bring-back")[count]?.focus();
  }

  async more() {
    const key = JSON.stringify(this.query);
    const count = this.threads.length;
    this.wanted.set(key, (this.wanted.get(key) ?? 1) + 1);
    await this.find();
    if (JSON.stringify(this.query) === key) this.links()[count]?.focus();
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
    const focused = this.nav.contains(document.activeElement) ? document.activeElement.dataset.channel : undefined;
    const place = this.nav.scrollTop;
    if (!threads.length) {
      this.nav.replaceChildren(...this.deleted(), element("p", { class: "empty" }, this.nothing()), this.everything());
      return;
    }
    const main = threads.filter((thread) => thread.kind === "main");
    const groups = [["", main], ...byAge(threads.filter((thread) => thread.kind !== "main"))];
    this.nav.replaceChildren(
      ...this.deleted(),
      ...groups.flatMap(([name, rows]) =>
        rows.length
          ? [name ? element("h2", {}, name) : "", element("ul", {}, ...rows.map((thread) => this.line(thread)))]
          : [],
      ),
      this.hasMore ? moreButton(() => this.more()) : "",
      this.everything(),
    );
    const shown = new Set(threads.map((thread) => thread.channel));
    for (const channel of [...this.lines.keys()]) if (!shown.has(channel)) this.lines.delete(channel);
    this.nav.scrollTop = place;
    if (focused) {
      this.nav.querySelector(`a[data-channel="${focused}"]`)?.focus({ preventScroll: true });
    }
  }

  /** What was deleted and is not erased yet. */
  deleted() {
    const threads = this.found?.deleted ?? [];
    if (!threads.length) return [];
    return [
      element("h2", { id: "deleted-list" }, say("deleted_list")),
      element("ul", {}, ...threads.map((thread) => deletedRow(thread, () => this.onBringBack(thread)))),
      this.found.more_deleted ? moreButton(() => this.moreDeleted(), { "aria-describedby": "deleted-list" }) : "",
    ];
  }

  nothing() {
    const search = this.search.value.trim();
    if (search) return say("nothing_found", { query: search });
    return say(this.archived ? "no_archived" : "no_conversations");
  }

  /** From titles on to the words that were said: what Enter in the field opens too. */
  everything() {
    const query = this.search.value.trim();
    if (!query) return "";
    const href = `${page.home}search/?${new URLSearchParams({ q: query })}`;
    return element("a", { class: "button more", href }, icon("search"), say("search_everything", { query }));
  }

  /** A row that is as it was stays the same node: a menu that hangs on it, and the focus, stay with it. */
  line(thread) {
    const key = JSON.stringify([thread, thread.channel === this.current]);
    const known = this.lines.get(thread.channel);
    if (known?.key === key) return known.node;
    const node = conversationRow(thread, thread.channel === this.current);
    this.lines.set(thread.channel, { key, node });
    return node;
  }
}
