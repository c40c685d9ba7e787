// Follows the end of the conversation while the reader is there, and leaves them alone when they are not.

const NEAR_END_PX = 96;

export class Follower {
  constructor(scroller, button) {
    this.scroller = scroller;
    this.button = button;
    this.following = true;
    scroller.addEventListener("scroll", () => this.look(), { passive: true });
    button.addEventListener("click", () => {
      this.follow();
      scroller.focus({ preventScroll: true });
    });
    // A keyboard on a phone or a growing message box makes the place smaller: the end stays in view.
    new ResizeObserver(() => this.following && this.toEnd()).observe(scroller);
  }

  look() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    this.following = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    this.button.hidden = this.following;
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  follow() {
    this.following = true;
    this.button.hidden = true;
    this.toEnd();
  }

  /** Draw, and keep the reader's place: at the end, or at the same words. `above`: rows were added before them. */
  around(draw, { above = false } = {}) {
    const { scrollHeight, scrollTop } = this.scroller;
    const following = this.following;
    draw();
    if (above) this.scroller.scrollTop = scrollTop + this.scroller.scrollHeight - scrollHeight;
    else if (following) this.toEnd();
    else this.button.hidden = false;
  }
}
