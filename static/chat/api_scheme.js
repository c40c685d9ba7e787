// The schema's page is light or dark like every other: its own style sheet has both, by a class. Before anything is
// drawn.

const dark = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", dress);
dress();
