// Verdicts by key, while the form has the focus and nobody writes a note.

function startReview() {
  const form = document.getElementById("review");
  if (!form) return;
  form.focus({ preventScroll: true });
  const note = form.querySelector("textarea");
  const back = () => form.focus({ preventScroll: true });
  let sent = false;
  form.addEventListener("submit", (event) => {
    // A key that is held down says one thing.
    if (sent) event.preventDefault();
    sent = true;
  });
  form.addEventListener("keydown", (event) => {
    if (event.target === note) {
      if (event.key === "Escape") back();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    const key = event.key.toLowerCase();
    if (key === "e" && note) {
      event.preventDefault();
      note.focus();
      return;
    }
    if (key.length !== 1) return;
    const button = [...form.querySelectorAll("button[data-keys]:enabled")].find((one) =>
      one.dataset.keys.includes(key),
    );
    if (!button) return;
    event.preventDefault();
    button.click();
  });
}

document.addEventListener("DOMContentLoaded", startReview);
