// A <select> that can be searched. The select stays in the form and holds the value; without this script it still
// works. Keys and roles follow the combobox pattern of the ARIA Authoring Practices.

const SHOWN_MAX = 100;

export class Combobox {
  constructor(select, words) {
    this.select = select;
    this.words = words;
    this.options = [...select.options].map((option) => ({
      value: option.value,
      label: option.textContent,
      search: fold(`${option.textContent} ${option.dataset.search ?? ""}`),
    }));
    this.active = -1;
    this.build();
    this.showChosen();
  }

  build() {
    const label = document.querySelector(`label[for="${this.select.id}"]`);
    this.input = document.createElement("input");
    this.input.id = `${this.select.id}-search`;
    this.input.type = "text";
    this.input.autocomplete = "off";
    this.input.spellcheck = false;
    for (const [name, value] of Object.entries({
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": `${this.select.id}-list`,
      "aria-describedby": this.select.getAttribute("aria-describedby"),
    }))
      this.input.setAttribute(name, value);
    label.htmlFor = this.input.id;
    label.id = `${this.select.id}-label`;
    this.list = document.createElement("ul");
    this.list.id = `${this.select.id}-list`;
    this.list.className = "combobox-list";
    this.list.hidden = true;
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-labelledby", label.id);
    this.status = document.createElement("span");
    this.status.className = "unseen";
    this.status.setAttribute("role", "status");
    const place = document.createElement("div");
    place.className = "combobox";
    this.select.hidden = true;
    this.select.after(place);
    place.append(this.input, this.list, this.status);

    this.input.addEventListener("focus", () => this.input.select());
    this.input.addEventListener("click", () => this.open(""));
    this.input.addEventListener("input", () => this.open(this.input.value));
    this.input.addEventListener("keydown", (event) => this.press(event));
    this.input.addEventListener("blur", () => this.close());
    // Pressing on an entry must not take the focus: leaving the box closes the list.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => {
      const entry = event.target.closest("[role=option]");
      if (entry) this.choose(entry.dataset.value);
    });
  }

  get isOpen() {
    return !this.list.hidden;
  }

  open(sought) {
    const wanted = fold(sought).split(/\s+/).filter(Boolean);
    const found = this.options.filter((option) => wanted.every((word) => option.search.includes(word)));
    this.list.replaceChildren(...found.slice(0, SHOWN_MAX).map((option, index) => this.entry(option, index)));
    if (!found.length) {
      const nothing = document.createElement("li");
      nothing.className = "nothing";
      nothing.setAttribute("role", "option");
      nothing.setAttribute("aria-disabled", "true");
      nothing.textContent = this.words.nothingFound;
      this.list.append(nothing);
    }
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.status.textContent = found.length
      ? this.words.results.replace("{number}", found.length)
      : this.words.nothingFound;
    const chosen = this.entries().findIndex((entry) => entry.dataset.value === this.select.value);
    this.activate(sought ? (found.length ? 0 : -1) : chosen);
  }

  entry(option, index) {
    const entry = document.createElement("li");
    entry.id = `${this.list.id}-${index}`;
    entry.dataset.value = option.value;
    entry.textContent = option.label;
    entry.setAttribute("role", "option");
    entry.setAttribute("aria-selected", "false");
    return entry;
  }

  entries() {
    return [...this.list.querySelectorAll("[role=option]:not([aria-disabled])")];
  }

  activate(index) {
    const entries = this.entries();
    this.active = index;
    entries.forEach((entry, place) => entry.setAttribute("aria-selected", String(place === index)));
    if (index < 0) {
      this.input.removeAttribute("aria-activedescendant");
      return;
    }
    this.input.setAttribute("aria-activedescendant", entries[index].id);
    entries[index].scrollIntoView({ block: "nearest" });
  }

  press(event) {
    const count = this.entries().length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!this.isOpen) this.open("");
      else if (count) this.activate((this.active + (event.key === "ArrowDown" ? 1 : -1) + count) % count);
    } else if (event.key === "Enter" && this.isOpen) {
      event.preventDefault();
      if (this.active >= 0) this.choose(this.entries()[this.active].dataset.value);
    } else if (event.key === "Escape" && this.isOpen) {
      event.preventDefault();
      this.close();
    }
  }

  choose(value) {
    this.select.value = value;
    this.close();
  }

  close() {
    this.list.hidden = true;
    this.status.textContent = "";
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
    this.showChosen();
  }

  showChosen() {
    this.input.value = this.options.find((option) => option.value === this.select.value)?.label ?? "";
  }
}

// Case, accents and underscores do not matter when one searches.
function fold(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replaceAll("_", " ");
}
