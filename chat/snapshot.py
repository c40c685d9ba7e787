"""What a client holds of a conversation: a snapshot, and the reducer that carries it on from event to event.

`apply` and `static/chat/state.js` are one function in two languages: a snapshot with the events after it
equals a fresh snapshot, whichever side did the work. `tests/chat/test_state_replay.py` holds both to it.

Snapshot: {"thread": ThreadView, "turn": TurnView or None, "messages": [MessageView], newest page, ascending
by id, what was rewound folded (`agent/folds.py`), "has_earlier": bool, "queued": [ItemView], "rewound": id of the last
row that stood before the newest rewind that can be undone, or None, "event": number of the last event that is in it}.
The views are `agent/projection.py`'s. After an event that changed too much to be told ("anew", "gone") it has "stale":
true, until a fresh one takes its place.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from agent.folds import folded_views
from agent.frames import turn_view
from agent.models import TurnEvent
from agent.projection import queued_views, thread_view
from threads.copying import rewound_to
from threads.models import Thread

PAGE_MESSAGES = 100

Snapshot = dict[str, Any]
View = dict[str, Any]


class Gap(ValueError):
    """An event does not follow the snapshot's last one: read the missing ones first."""


@contextmanager
def one_moment() -> Iterator[None]:
    """Every query of the block sees the same moment, so that the views fit the event number beside them.

    Inside a caller's transaction the caller's isolation holds: it cannot change after the first query.
    """
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def snapshot(thread: Thread, *, page: int = PAGE_MESSAGES) -> Snapshot:
    """The conversation as it is now, its newest `page` messages. Raises Thread.DoesNotExist when it is
    gone."""
    with one_moment():
        current = Thread.objects.get(pk=thread.pk, owner_id=thread.owner_id)
        messages, has_earlier = folded_views(current, limit=page)
        return {
            "thread": thread_view(current),
            "turn": turn_view(current),
            "messages": messages,
            "has_earlier": has_earlier,
            "queued": queued_views(current),
            "rewound": rewound_to(current),
            "event": last_event(current),
        }


def earlier(thread: Thread, before_id: int, page: int = PAGE_MESSAGES) -> dict[str, Any]:
    """The `page` messages before `before_id`, what was rewound between them folded: {"messages", "has_earlier"}."""
    messages, has_earlier = folded_views(thread, before_id=before_id, limit=page)
    return {"messages": messages, "has_earlier": has_earlier}


def later(thread: Thread, after_id: int, page: int = PAGE_MESSAGES) -> dict[str, Any]:
    """The `page` messages after `after_id`, what was rewound between them folded: {"messages", "has_later"}."""
    messages, has_later = folded_views(thread, after_id=after_id, limit=page)
    return {"messages": messages, "has_later": has_later}


def last_event(thread: Thread) -> int:
    """Number of the thread's newest event, 0 without any."""
    events = TurnEvent.objects.filter(thread=thread, owner_id=thread.owner_id)
    return events.aggregate(last=Max("number"))["last"] or 0


def apply(state: Snapshot, event: dict[str, Any]) -> Snapshot:
    """The snapshot after one event {"number", "kind", "body"}. Changes nothing in place.

    An event that the snapshot holds already changes nothing; one that leaves a gap raises Gap. What concerns
    a message before the oldest one held is left out while there are earlier ones: the client reads it when it
    pages back.
    """
    number = event["number"]
    if number <= state["event"]:
        return state
    if number != state["event"] + 1:
        raise Gap(f"event {number} does not follow {state['event']}")
    reducer = REDUCERS.get(event["kind"])
    changed = reducer(state, event["body"]) if reducer else {}
    return {**state, **changed, "event": number}


def _upsert(rows: list[View], row: View) -> list[View]:
    """`rows`, ascending by id, with `row` in its place."""
    place = len(rows)
    while place > 0 and rows[place - 1]["id"] > row["id"]:
        place -= 1
    replaces = place > 0 and rows[place - 1]["id"] == row["id"]
    return [*rows[: place - 1 if replaces else place], row, *rows[place:]]


def _message(state: Snapshot, body: View) -> View:
    messages: list[View] = state["messages"]
    message = body["message"]
    if state["has_earlier"] and messages and message["id"] < messages[0]["id"]:
        return {}
    return {"messages": _upsert(messages, message)}


def _change_message(state: Snapshot, message_id: int, **changes: Any) -> View:
    messages = [
        {**row, **{name: change(row[name]) for name, change in changes.items()}} if row["id"] == message_id else row
        for row in state["messages"]
    ]
    return {"messages": messages}


def _delta(state: Snapshot, body: View) -> View:
    return _change_message(
        state,
        body["message"],
        text=lambda text: text + body.get("text", ""),
        thinking=lambda thinking: thinking + body.get("thinking", ""),
    )


def _reset(state: Snapshot, body: View) -> View:
    return _change_message(state, body["message"], text=lambda _text: "", thinking=lambda _thinking: "")


def _tool(state: Snapshot, body: View) -> View:
    return _change_message(state, body["message"], tool_calls=lambda calls: _upsert(calls, body["call"]))


def _queued(state: Snapshot, body: View) -> View:
    return {"queued": _upsert(state["queued"], body["item"])}


def _unqueued(state: Snapshot, body: View) -> View:
    return {"queued": [item for item in state["queued"] if item["id"] != body["item"]]}


def _state(_state_before: Snapshot, body: View) -> View:
    return {"thread": body["thread"], "turn": body["turn"]}


def _stale(_state_before: Snapshot, _body: View) -> View:
    return {"stale": True}


# Every kind of event there is, as `agent/events.py` lists them.
REDUCERS = {
    "message": _message,
    "delta": _delta,
    "reset": _reset,
    "tool": _tool,
    "queued": _queued,
    "unqueued": _unqueued,
    "state": _state,
    "anew": _stale,
    "gone": _stale,
}
