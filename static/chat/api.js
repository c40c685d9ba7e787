// The schema's page: what its own script leaves without a name or out of the keyboard's reach is mended as it appears.

function mend(root) {
  for (const row of root.querySelectorAll("tr[data-param-name]")) {
    for (const field of row.querySelectorAll("select:not([aria-label]), input:not([aria-label])")) {
      field.setAttribute("aria-label", row.dataset.paramName);
    }
  }
  for (const box of root.querySelectorAll(".microlight:not([tabindex])")) box.setAttribute("tabindex", "0");
}

new MutationObserver(() => mend(document)).observe(document.getElementById("swagger-ui"), {
  childList: true,
  subtree: true,
});
mend(document);
