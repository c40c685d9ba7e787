// Below the message box: which model answers, how full its context is, what the conversation has cost.

import { element } from "./elements.js";
import { keep, kept } from "./keeping.js";
import { showMenu } from "./menu.js";
import { money, number, page, percent, say } from "./words.js";

const NEARLY_FULL = 0.7; // of the budget: from here on the context is renewed at the end of a turn

const KEPT_MODEL = "new model"; // as long as the words that will begin the conversation

export class Meter {
  /** `onModel(name)`, `onRenew()`; `load(channel)` resolves to a MeterView or null; `category()` of a conversation that
   * does not exist yet. */
  constructor({ modelButton, button, panel, load, category, onModel, onRenew }) {
    Object.assign(this, { modelButton, button, panel, load, category, onModel, onRenew });
    this.channel = null;
    this.view = null;
    button.addEventListener("click", () => this.toggle(panel.hidden));
    modelButton.addEventListener("click", () => this.choose());
    panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.toggle(false);
      button.focus();
    });
    document.addEventListener("pointerdown", (event) => {
      if (!panel.hidden && !panel.contains(event.target) && !button.contains(event.target)) this.toggle(false);
    });
  }

  /** Show another conversation's, or nothing for one that does not exist yet. */
  async use(channel) {
    if (channel !== this.channel) {
      this.channel = channel;
      this.view = null;
      this.pick = "";
      this.draw();
    }
    await this.refresh();
  }

  async refresh() {
    const { channel } = this;
    if (!channel) return;
    const view = await this.load(channel);
    if (view && channel === this.channel) {
      this.view = view;
      this.draw();
    }
  }

  /** The thread's own pick may change in another tab. */
  picked(name) {
    this.pick = name;
    this.drawModel();
  }

  toggle(open) {
    this.panel.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
    if (open) this.panel.focus({ preventScroll: true });
  }

  draw() {
    const { view } = this;
    this.button.hidden = !view;
    if (!view) this.toggle(false);
    this.drawModel();
    if (!view) return;
    // Null: not known, which is not the same as empty.
    const share = view.budget && view.live_tokens !== null ? Math.min(view.live_tokens / view.budget, 1) : null;
    for (const node of [this.button, this.panel]) {
      node.style.setProperty("--share", share ?? 0);
      node.dataset.level = share === null ? "unknown" : share >= NEARLY_FULL ? "high" : "low";
    }
    this.button.querySelector("span").textContent = share === null ? "–" : percent(share);
    const name = share === null ? say("meter_button_unknown") : say("meter_button", { share: percent(share) });
    this.button.setAttribute("aria-label", name);
    this.panel.replaceChildren(...this.details(view, share));
  }

  /** The model that the person picked for a conversation that does not exist yet, where it may read its category. */
  get newPick() {
    const pick = kept(KEPT_MODEL) ?? "";
    return (page.models[this.category()] ?? []).includes(pick) ? pick : "";
  }

  resetNew() {
    keep(KEPT_MODEL, "");
  }

  drawModel() {
    const { view, modelButton } = this;
    const isNew = this.channel === "";
    modelButton.hidden = !view && !isNew;
    if (modelButton.hidden) return;
    const pick = isNew ? this.newPick : this.pick;
    const name = pick || (isNew ? say("servers_choice") : view.model || say("no_model"));
    modelButton.querySelector("span").textContent = name;
    modelButton.dataset.picked = pick;
    modelButton.setAttribute("aria-label", say("model_button", { model: name }));
  }

  details(view, share) {
    const unknown = view.cost_unknown;
    const cost = unknown
      ? say(Number(view.cost) ? "cost_at_least" : "cost_unknown", { cost: money(view.cost) })
      : money(view.cost);
    return [
      element("h2", {}, say("context")),
      element("div", { class: "meter-bar", "aria-hidden": "true" }, element("i", {})),
      element(
        "dl",
        {},
        element("dt", {}, say("tokens_live")),
        element(
          "dd",
          {},
          share === null
            ? this.tokens(view)
            : say("tokens_of", { live: number(view.live_tokens), budget: number(view.budget), share: percent(share) }),
        ),
        element("dt", {}, say("counted_for")),
        element("dd", {}, view.model || say("no_model")),
        element("dt", {}, say("cache_share")),
        element("dd", {}, view.cache_read_share === null ? say("not_yet") : percent(view.cache_read_share)),
        element("dt", {}, say("cost")),
        element("dd", {}, cost),
      ),
      unknown ? element("p", { class: "meter-note" }, say("cost_unknown_calls", { number: number(unknown) })) : "",
      element(
        "button",
        {
          class: "button",
          type: "button",
          onclick: () => {
            this.toggle(false);
            this.onRenew();
          },
        },
        say("renew"),
      ),
      element("p", { class: "meter-note" }, say("renew_hint")),
    ].filter(Boolean);
  }

  /** Where there is no share to tell, what is known of it. */
  tokens({ live_tokens, budget }) {
    if (live_tokens !== null) return say("tokens_alone", { live: number(live_tokens) });
    return budget ? say("tokens_unknown_of", { budget: number(budget) }) : say("not_yet");
  }

  choose() {
    const isNew = this.channel === "";
    if (!this.view && !isNew) return;
    const choices = isNew ? (page.models[this.category()] ?? []) : this.view.choices;
    const picked = isNew ? this.newPick : this.pick;
    const pick = (name) => {
      if (!isNew) return this.onModel(name);
      keep(KEPT_MODEL, name);
      return this.drawModel();
    };
    const items = ["", ...choices].map((name) => ({
      label: name || say("servers_choice"),
      hint: name ? "" : say("servers_choice_hint"),
      checked: picked === name,
      action: () => pick(name),
    }));
    showMenu(items, { at: this.modelButton, label: say("model") });
  }
}
