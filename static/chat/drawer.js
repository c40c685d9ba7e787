// On a phone the list of conversations is a drawer: opened by a button, closed by Escape, the backdrop or a choice.

export class Drawer {
  constructor(body, sidebar, backdrop, openButton, closeButton) {
    Object.assign(this, { body, sidebar, backdrop, openButton, closeButton });
    openButton.addEventListener("click", () => this.open());
    closeButton.addEventListener("click", () => this.close());
    backdrop.addEventListener("click", () => this.close());
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.shiftKey || !this.isOpen || event.defaultPrevented) return;
      event.preventDefault();
      this.close();
    });
  }

  get isOpen() {
    return this.body.classList.contains("drawer-open");
  }

  open() {
    this.set(true);
    this.closeButton.focus();
  }

  close() {
    if (!this.isOpen) return;
    this.set(false);
    this.openButton.focus();
  }

  set(open) {
    this.body.classList.toggle("drawer-open", open);
    this.backdrop.hidden = !open;
    this.openButton.setAttribute("aria-expanded", String(open));
    // Behind the drawer nothing takes the focus.
    document.getElementById("conversation").inert = open;
  }
}
