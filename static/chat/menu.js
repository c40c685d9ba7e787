// Menus: opened by a button, a right click or the keyboard; on a phone a sheet at the bottom.

import { element, icon } from "./elements.js";

const MARGIN_PX = 8;
let open = null;

/**
 * Show a menu. `items`: [{label, icon, action, danger, checked, hint} or null for a line]; `checked` (true or false)
 * makes it one of a choice. `at`: an element, or {x, y}. The focus goes back to `from` when it closes.
 */
export function showMenu(items, { at, from, label }) {
  closeMenu();
  const node = element(
    "div",
    { class: "menu", role: "menu", "aria-label": label },
    ...items.map((item) => (item ? line(item) : element("div", { class: "menu-line", role: "separator" }))),
  );
  node.addEventListener("keydown", onKey);
  document.body.append(node);
  const expanded = at instanceof Element && at.hasAttribute("aria-haspopup") ? at : null;
  expanded?.setAttribute("aria-expanded", "true");
  open = { node, from: from ?? (at instanceof Element ? at : document.activeElement), expanded };
  place(node, at);
  focusables()[0]?.focus({ preventScroll: true });
  document.addEventListener("pointerdown", onOutside, true);
  addEventListener("resize", onResize);
}

export function closeMenu({ refocus = false } = {}) {
  if (!open) return;
  const { node, from, expanded } = open;
  open = null;
  node.remove();
  expanded?.setAttribute("aria-expanded", "false");
  document.removeEventListener("pointerdown", onOutside, true);
  removeEventListener("resize", onResize);
  if (refocus && from?.isConnected) from.focus({ preventScroll: true });
}

/** A <details> that behaves as a menu: it closes when something else is pressed, and on Escape. */
export function closeLikeMenu(details) {
  document.addEventListener("pointerdown", (event) => {
    if (details.open && !details.contains(event.target)) details.open = false;
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    event.preventDefault();
    event.stopPropagation();
    details.open = false;
    details.querySelector("summary").focus();
  });
}

function line(item) {
  const choice = item.checked !== undefined;
  return element(
    "button",
    {
      type: "button",
      role: choice ? "menuitemradio" : "menuitem",
      "aria-checked": choice ? String(item.checked) : null,
      class: item.danger ? "menu-item danger" : "menu-item",
      tabindex: "-1",
      onclick: () => {
        closeMenu({ refocus: true });
        item.action();
      },
    },
    choice ? icon(item.checked ? "done" : "none") : item.icon ? icon(item.icon) : "",
    element("span", {}, item.label, item.hint ? element("small", {}, item.hint) : ""),
  );
}

function focusables() {
  return [...(open?.node.querySelectorAll(".menu-item") ?? [])];
}

function onKey(event) {
  const items = focusables();
  const now = items.indexOf(document.activeElement);
  const target = {
    ArrowDown: items[(now + 1) % items.length],
    ArrowUp: items[(now - 1 + items.length) % items.length],
    Home: items[0],
    End: items.at(-1),
  }[event.key];
  if (target) target.focus();
  else if (event.key === "Escape") closeMenu({ refocus: true });
  else if (event.key === "Tab") closeMenu({ refocus: true });
  else if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const letter = event.key.toLowerCase();
    const after = [...items.slice(now + 1), ...items.slice(0, now + 1)];
    after.find((item) => item.textContent.trim().toLowerCase().startsWith(letter))?.focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

function onOutside(event) {
  if (!open.node.contains(event.target)) closeMenu();
}

function onResize() {
  closeMenu();
}

function place(node, at) {
  const box = at instanceof Element ? at.getBoundingClientRect() : { left: at.x, right: at.x, top: at.y, bottom: at.y };
  const { offsetWidth: width, offsetHeight: height } = node;
  const below = box.bottom + height + MARGIN_PX <= innerHeight || box.top - height < MARGIN_PX;
  const top = below ? box.bottom + 4 : box.top - height - 4;
  const left = box.left + width + MARGIN_PX <= innerWidth ? box.left : box.right - width;
  node.style.top = `${Math.max(MARGIN_PX, Math.min(top, innerHeight - height - MARGIN_PX))}px`;
  node.style.left = `${Math.max(MARGIN_PX, left)}px`;
}
