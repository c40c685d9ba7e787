// How much of a conversation a page holds. The newest messages are always held, because events change them; of the
// rest a window that moves with the reader. However long a conversation is, no more than this is in memory and drawn.

export const WINDOW_MAX_MESSAGES = 400;
export const TAIL_MESSAGES = 100;

/** The newest messages alone, with what is folded between them: what is kept while the reader is elsewhere. */
export function tail(state, count = TAIL_MESSAGES) {
  let standing = 0;
  let place = state.messages.length;
  while (place > 0 && standing < count) {
    place -= 1;
    if (!state.messages[place].superseded) standing += 1;
  }
  return place ? { ...state, messages: state.messages.slice(place), has_earlier: true } : state;
}

/** {state, past} after an earlier page came. `past` is the window when it has left the newest messages, else null. */
export function pageUp(state, past, page) {
  const held = past ?? state;
  const first = held.messages.length ? held.messages[0].id : Infinity;
  const messages = [...page.messages.filter((message) => message.id < first), ...held.messages];
  const { has_earlier } = page;
  if (past) return { state, past: { messages: messages.slice(0, WINDOW_MAX_MESSAGES), has_earlier } };
  if (messages.length <= WINDOW_MAX_MESSAGES) return { state: { ...state, messages, has_earlier }, past: null };
  return { state: tail(state), past: { messages: messages.slice(0, WINDOW_MAX_MESSAGES), has_earlier } };
}

/** {state, past} after a later page came: where it meets the newest messages, the window is at the end again. */
export function pageDown(state, past, page) {
  if (!past) return { state, past };
  const last = past.messages.at(-1).id;
  const messages = [...past.messages, ...page.messages.filter((message) => message.id > last)];
  const tailFirst = state.messages.length ? state.messages[0].id : Infinity;
  if (!page.has_later || messages.at(-1).id >= tailFirst) {
    const room = Math.max(WINDOW_MAX_MESSAGES - state.messages.length, 0);
    const older = messages.filter((message) => message.id < tailFirst);
    const has_earlier = past.has_earlier || older.length > room;
    return {
      state: { ...state, messages: [...(room ? older.slice(-room) : []), ...state.messages], has_earlier },
      past: null,
    };
  }
  const has_earlier = past.has_earlier || messages.length > WINDOW_MAX_MESSAGES;
  return { state, past: { messages: messages.slice(-WINDOW_MAX_MESSAGES), has_earlier } };
}
