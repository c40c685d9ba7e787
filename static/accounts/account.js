// The settings form: the list of time zones becomes one that can be searched, and offers the device's own.

import { Combobox } from "./combobox.js";

const place = document.getElementById("time-zone");
const select = place.querySelector("select");
const combobox = new Combobox(select, { nothingFound: place.dataset.nothingFound, results: place.dataset.results });

const button = document.getElementById("device-zone");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone !== select.value && [...select.options].some((option) => option.value === zone)) {
  button.textContent = button.dataset.words.replace("{zone}", zone);
  button.hidden = false;
  button.addEventListener("click", () => {
    combobox.choose(zone);
    button.hidden = true;
    combobox.input.focus();
    combobox.close();
  });
}
