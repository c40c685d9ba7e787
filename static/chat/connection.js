// One socket for the page. It comes back by itself: soon, then more slowly, at once when the network or the reader
// does.

const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 15000;
const PING_MS = 25000;
const PONG_LIMIT_MS = 10000;

export class Connection {
  /** `onFrame(frame)`, `onOpen()`, `onState("connecting" | "connected" | "reconnecting" | "offline")`. */
  constructor({ onFrame, onOpen, onState }) {
    this.handlers = { onFrame, onOpen, onState };
    this.pause = FIRST_PAUSE_MS;
    this.everOpen = false;
    addEventListener("online", () => this.retryNow());
    addEventListener("offline", () => this.sayState());
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.retryNow();
    });
  }

  get open() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  start() {
    clearTimeout(this.retry);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/ws/chat/`);
    this.socket = socket;
    this.sayState();
    socket.addEventListener("open", () => {
      this.everOpen = true;
      this.pause = FIRST_PAUSE_MS;
      this.sayState();
      this.schedulePing();
      this.handlers.onOpen();
    });
    socket.addEventListener("message", (message) => {
      const frame = JSON.parse(message.data);
      this.schedulePing();
      if (frame.type !== "pong") this.handlers.onFrame(frame);
    });
    socket.addEventListener("close", () => {
      if (this.socket === socket) this.lost();
    });
  }

  /** Whether the frame went out. What did not is sent again by whoever needs it, after `onOpen`. */
  send(frame) {
    if (!this.open) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** A new socket, with whatever login the browser has by now. */
  renew() {
    const old = this.socket;
    this.socket = null;
    old?.close();
    this.start();
  }

  retryNow() {
    if (this.open) this.ping();
    else if (this.socket?.readyState !== WebSocket.CONNECTING) {
      this.pause = FIRST_PAUSE_MS;
      this.start();
    }
  }

  lost() {
    clearTimeout(this.pingTimer);
    clearTimeout(this.pongTimer);
    clearTimeout(this.retry);
    this.sayState();
    // Spread out, so that a restarted server does not meet every page in the same moment.
    this.retry = setTimeout(() => this.start(), this.pause * (0.6 + 0.8 * Math.random()));
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
  }

  schedulePing() {
    clearTimeout(this.pingTimer);
    clearTimeout(this.pongTimer);
    this.pingTimer = setTimeout(() => this.ping(), PING_MS);
  }

  ping() {
    if (!this.send({ type: "ping" })) return;
    clearTimeout(this.pongTimer);
    const socket = this.socket;
    this.pongTimer = setTimeout(() => {
      // A socket that is dead without knowing it: a lid was closed, a network changed.
      if (this.socket !== socket) return;
      this.socket = null;
      socket.close();
      this.lost();
    }, PONG_LIMIT_MS);
  }

  sayState() {
    const lost = navigator.onLine ? "reconnecting" : "offline";
    this.handlers.onState(this.open ? "connected" : this.everOpen ? lost : "connecting");
  }
}
