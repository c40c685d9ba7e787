// Scope and category: badges, the choice for a new conversation, and making one stricter with the consequences said.

import { confirmingDialog, dialogButtons } from "./dialogs.js";
import { element, icon } from "./elements.js";
import { keep, kept } from "./keeping.js";
import { showMenu } from "./menu.js";
import { request } from "./requests.js";
import { page, say } from "./words.js";

/** What a conversation is besides its title: elements, in the same order everywhere. */
export function badgesOf(thread) {
  return [thread.kind === "task" && say("task"), thread.scope === "isolated" && say("isolated"), thread.category]
    .filter(Boolean)
    .map((name) => element("span", { class: "badge" }, name));
}

const KEPT_LEVEL = "new level"; // as long as the words that will begin the conversation

/** The level of the conversation that does not exist yet. */
export class NewLevel {
  constructor(onChange) {
    this.onChange = onChange;
    this.level = JSON.parse(kept(KEPT_LEVEL) ?? "null") ?? { scope: "open", category: "" };
  }

  reset() {
    this.level = { scope: "open", category: "" };
    keep(KEPT_LEVEL, "");
  }

  /** Ask for it, before something is put there. Resolves to whether the person chose. */
  ask() {
    return new Promise((resolve) => {
      const isolate = element("input", { type: "checkbox", id: "level-isolate" });
      isolate.checked = this.level.scope === "isolated";
      const names = ["", ...page.categories.map(({ name }) => name)];
      const category = element(
        "select",
        { id: "level-category" },
        ...names.map((name) => element("option", { value: name }, name || say("no_category"))),
      );
      category.value = this.level.category;
      const meaning = element("ul", { class: "consequences", "aria-live": "polite" });
      const look = () => {
        const labelled = page.categories.find(({ name }) => name === category.value);
        const said = [
          isolate.checked ? page.isolating : say("open_hint"),
          labelled?.meaning ?? say("no_category_hint"),
        ];
        meaning.replaceChildren(...said.map((sentence) => element("li", {}, sentence)));
      };
      const form = element(
        "form",
        { method: "dialog", class: "stack level-form", onchange: look },
        element("label", { class: "check", for: "level-isolate" }, isolate, say("isolated")),
        ...(names.length > 1 ? [element("label", { for: "level-category" }, say("category")), category] : []),
        meaning,
        dialogButtons(
          element("button", { class: "primary", type: "submit", value: "yes", autofocus: true }, say("quote_here")),
        ),
      );
      look();
      confirmingDialog(say("quote_in_new"), form, (yes) => {
        if (yes) this.choose({ scope: isolate.checked ? "isolated" : "open", category: category.value });
        resolve(yes);
      });
    });
  }

  button() {
    const names = [say(this.level.scope === "isolated" ? "isolated" : "open"), this.level.category].filter(Boolean);
    const node = element(
      "button",
      {
        class: "quiet new-level",
        type: "button",
        "aria-haspopup": "menu",
        "aria-expanded": "false",
        onclick: () => this.menu(node),
      },
      element("span", { class: "unseen" }, `${say("level")}: `),
      element("span", {}, names.join(" · ")),
      icon("chevron"),
    );
    return node;
  }

  menu(at) {
    const scope = (name, hint) => ({
      label: say(name),
      hint,
      checked: this.level.scope === name,
      action: () => this.choose({ scope: name }),
    });
    const category = (name, label, hint) => ({
      label,
      hint,
      checked: this.level.category === name,
      action: () => this.choose({ category: name }),
    });
    const categories = page.categories.map(({ name, meaning }) => category(name, name, meaning));
    showMenu(
      [
        scope("open", say("open_hint")),
        scope("isolated", page.isolating),
        ...(categories.length ? [null, category("", say("no_category"), say("no_category_hint")), ...categories] : []),
      ],
      { at, label: say("level") },
    );
  }

  choose(change) {
    this.level = { ...this.level, ...change };
    keep(KEPT_LEVEL, JSON.stringify(this.level));
    this.onChange();
  }
}

/** Show the level of a conversation, what stricter ones mean, make it one of them. Resolves to its view, or null. */
export async function changeLevel(thread) {
  const address = `/api/threads/${thread.channel}/level/`;
  const known = await request(address);
  const chosen = await askForLevel(known);
  return chosen ? request(address, { method: "PUT", body: chosen }) : null;
}

function askForLevel(known) {
  return new Promise((resolve) => {
    const isolate = element("input", { type: "checkbox", id: "level-isolate" });
    isolate.checked = known.scope === "isolated";
    isolate.disabled = !known.may_isolate;
    const names = known.category ? [known.category] : ["", ...known.categories];
    const category = element(
      "select",
      { id: "level-category" },
      ...names.map((name) => element("option", { value: name }, name || say("no_category"))),
    );
    category.value = known.category;
    category.disabled = names.length < 2;
    const consequences = element("ul", { class: "consequences", "aria-live": "polite" });
    const apply = element("button", { class: "primary", type: "submit", value: "yes" }, say("make_stricter"));
    const look = () => {
      const isolates = known.may_isolate && isolate.checked;
      const labels = category.value !== known.category;
      apply.disabled = !isolates && !labels;
      const said = [...(isolates ? known.isolating : []), ...(labels ? known.labelling[category.value] : [])];
      const all = said.length ? [...new Set([...said, ...known.common])] : [];
      consequences.replaceChildren(...all.map((sentence) => element("li", {}, sentence)));
    };
    const fixed = !known.may_isolate && names.length < 2;
    const form = element(
      "form",
      { method: "dialog", class: "stack level-form", onchange: look },
      fixed ? element("p", {}, say("level_fixed")) : element("p", {}, say("level_once")),
      element("label", { class: "check", for: "level-isolate" }, isolate, say("isolated")),
      element("label", { for: "level-category" }, say("category")),
      category,
      consequences,
      dialogButtons(apply),
    );
    look();
    confirmingDialog(say("level"), form, (yes) => {
      const isolates = known.may_isolate && isolate.checked;
      const labels = category.value !== known.category;
      resolve(
        yes ? { ...(isolates ? { scope: "isolated" } : {}), ...(labels ? { category: category.value } : {}) } : null,
      );
    });
  });
}
