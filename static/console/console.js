// What the theme leaves to the mouse alone, for the keyboard and for screen readers too.

const CLICKABLE = "span[x-on\\:click], div[x-on\\:click], a[x-on\\:click]:not([href])";
const SIDEBAR_ICONS = new Set(["dock_to_right", "close"]);

function makeButton(element) {
  if (element.hasAttribute("role") || element.querySelector("input, textarea, select")) return;
  element.setAttribute("role", "button");
  element.tabIndex = 0;
  if (element.classList.contains("material-symbols-outlined") && SIDEBAR_ICONS.has(element.textContent.trim())) {
    element.setAttribute("aria-label", document.querySelector("meta[name=console-sidebar]")?.content ?? "");
  }
  element.addEventListener("keydown", (event) => {
    if (event.target !== element || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    element.click();
  });
}

function prepare() {
  // Icons are words of a font: beside text they are decoration.
  for (const icon of document.querySelectorAll(".material-symbols-outlined:not([aria-label])")) {
    const holder = icon.closest("a, button");
    if (holder && holder.textContent.trim() !== icon.textContent.trim()) icon.setAttribute("aria-hidden", "true");
  }
  for (const element of document.querySelectorAll(CLICKABLE)) makeButton(element);
}

document.addEventListener("DOMContentLoaded", prepare);

// The pickers of several rows are built when the page has loaded; their hints say what an image would.
window.addEventListener("load", () =>
  setTimeout(() => {
    for (const hint of document.querySelectorAll(".help-tooltip[aria-label]")) hint.setAttribute("role", "img");
  }),
);
