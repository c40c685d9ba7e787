// What the page says of its connection, and of a login that ended meanwhile.

import { element } from "./elements.js";
import { page, say } from "./words.js";

export class Login {
  /** `renew()`: connect anew, with whatever login the browser has by then. */
  constructor(alerts, renew) {
    this.alerts = alerts;
    this.gone = false;
    document.addEventListener("visibilitychange", () => {
      // Whoever signed in again in another tab comes back to find this one working.
      if (this.gone && document.visibilityState === "visible") renew();
    });
  }

  isGone() {
    this.gone = true;
    this.alerts.show("signed-out", say("signed_out"), {
      link: `${page.login}?next=${encodeURIComponent(location.pathname)}`,
      linkText: say("sign_in"),
      dismissible: false,
    });
  }

  isBack() {
    this.gone = false;
    this.alerts.hide("signed-out");
  }
}

/** Say in `place` how the connection is: the name of a state of `connection.js`. */
export function showState(place, name) {
  if (place.dataset.state === name) return;
  place.dataset.state = name;
  place.replaceChildren(element("span", {}, say(name)));
}
