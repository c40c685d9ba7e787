// Follows the end of the conversation while the reader is there, and leaves them alone when they are not.

const NEAR_END_PX = 96;
const AHEAD_SCREENS = 1.5; // pages are fetched before the reader reaches their place

export class Follower {
  /** `onNear("start" | "end")`: the reader comes near an edge of what is drawn. */
  constructor(scroller, button, onNear) {
    Object.assign(this, { scroller, button, onNear });
    this.rows = scroller.firstElementChild;
    this.join();
    this.atTail = true; // whether the end of what is drawn is the end of the conversation
    scroller.addEventListener("scroll", () => this.look(), { passive: true });
    // A keyboard on a phone or a growing message box makes the place smaller: the end stays in view.
    new ResizeObserver(() => this.follows() && this.toEnd()).observe(scroller);
  }

  /** From now on the end is followed, wherever the reader is. */
  join() {
    this.following = true;
    this.top = 0; // where the end was shown last
  }

  /** Whether the end is followed. Who has just scrolled up is known by the place: the event comes a frame later. */
  follows() {
    if (this.following && this.scroller.scrollTop < this.top - 1) this.following = this.isNearEnd();
    return this.following;
  }

  isNearEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return this.atTail && scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  }

  look() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    const below = scrollHeight - scrollTop - clientHeight;
    this.following = this.isNearEnd();
    this.button.hidden = this.following;
    if (scrollTop < clientHeight * AHEAD_SCREENS) this.onNear("start");
    if (!this.atTail && below < clientHeight * AHEAD_SCREENS) this.onNear("end");
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.top = this.scroller.scrollTop;
  }

  follow() {
    this.join();
    this.button.hidden = true;
    this.toEnd();
  }

  /** Draw, and keep the reader's place: at the end, or at the same words, whatever comes or goes around them. */
  around(draw) {
    const following = this.follows();
    const anchor = following ? null : this.firstInView();
    const before = anchor?.getBoundingClientRect().top;
    draw();
    if (following && this.atTail) this.toEnd();
    else if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.button.hidden = this.following && this.atTail;
  }

  firstInView() {
    const { top } = this.scroller.getBoundingClientRect();
    let first = 0;
    let last = this.rows.children.length - 1;
    // Rows stand one below the other, so the first in view is found by halving.
    while (first < last) {
      const middle = (first + last) >> 1;
      if (this.rows.children[middle].getBoundingClientRect().bottom > top + 1) last = middle;
      else first = middle + 1;
    }
    return this.rows.children[first] ?? null;
  }
}
