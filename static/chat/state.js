// The client's half of chat/snapshot.py: a snapshot and the events after it equal a fresh snapshot.
// Nothing is changed in place: a row that is another object has changed, and only then is it drawn again.

export class Gap extends Error {}

export function apply(state, event) {
  if (event.number <= state.event) return state;
  if (event.number !== state.event + 1) {
    throw new Gap(`event ${event.number} does not follow ${state.event}`);
  }
  const reducer = reducers[event.kind];
  const changed = reducer ? reducer(state, event.body) : {};
  return { ...state, ...changed, event: event.number };
}

/** A stretch of history {messages, has_earlier} after an event: what concerns its messages, and nothing else. */
export function amend(stretch, event) {
  const id = event.kind === "message" ? event.body.message.id : event.body.message;
  if (typeof id !== "number" || !stretch.messages.some((row) => row.id === id)) return stretch;
  return { ...stretch, ...reducers[event.kind]?.(stretch, event.body) };
}

/** An earlier page {messages, has_earlier} before the messages held. */
export function prepend(state, page) {
  const first = state.messages.length ? state.messages[0].id : Infinity;
  const older = page.messages.filter((message) => message.id < first);
  return { ...state, messages: [...older, ...state.messages], has_earlier: page.has_earlier };
}

function upsert(rows, row) {
  let place = rows.length;
  while (place > 0 && rows[place - 1].id > row.id) place -= 1;
  const replaces = place > 0 && rows[place - 1].id === row.id;
  return [...rows.slice(0, replaces ? place - 1 : place), row, ...rows.slice(place)];
}

function changeMessage(state, id, change) {
  return { messages: state.messages.map((row) => (row.id === id ? { ...row, ...change(row) } : row)) };
}

const reducers = {
  message(state, body) {
    const { messages } = state;
    if (state.has_earlier && messages.length && body.message.id < messages[0].id) return {};
    return { messages: upsert(messages, body.message) };
  },
  delta(state, body) {
    return changeMessage(state, body.message, (row) => ({
      text: row.text + (body.text ?? ""),
      thinking: row.thinking + (body.thinking ?? ""),
    }));
  },
  reset(state, body) {
    return changeMessage(state, body.message, () => ({ text: "", thinking: "" }));
  },
  tool(state, body) {
    return changeMessage(state, body.message, (row) => ({ tool_calls: upsert(row.tool_calls, body.call) }));
  },
  queued(state, body) {
    return { queued: upsert(state.queued, body.item) };
  },
  unqueued(state, body) {
    return { queued: state.queued.filter((item) => item.id !== body.item) };
  },
  state(_state, body) {
    return { thread: body.thread, turn: body.turn };
  },
  // Too much changed to be told: only a fresh snapshot says it.
  anew: () => ({ stale: true }),
  gone: () => ({ stale: true }),
};
