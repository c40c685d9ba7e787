"""Made-up histories of a conversation, for both reducers: no database, any order that numbers allow."""

import random
from typing import Any

Event = dict[str, Any]


def thread_view(random_: random.Random) -> dict[str, Any]:
    return {"channel": "abc", "title": f"title {random_.randrange(9)}", "state": random_.choice(["idle", "running"])}


def message_view(random_: random.Random, message_id: int) -> dict[str, Any]:
    state = random_.choice(["streaming", "complete", "interrupted"])
    return {
        "id": message_id,
        "role": random_.choice(["user", "assistant", "event"]),
        "text": random_.choice(["", "words", "字 and “quotes” \\ \u2028 🙂"]),
        "thinking": random_.choice(["", "hm"]),
        "state": state,
        "superseded": random_.random() < 0.1,
        "tool_calls": [tool_view(random_, number) for number in range(random_.randrange(3))],
    }


def tool_view(random_: random.Random, call_id: int) -> dict[str, Any]:
    return {
        "id": call_id,
        "tool": "search",
        "status": random_.choice(["running", "done"]),
        "arguments": {"n": random_.random()},
    }


def item_view(random_: random.Random, item_id: int) -> dict[str, Any]:
    return {"id": item_id, "key": f"key-{item_id}", "text": f"waiting {random_.randrange(9)}"}


def event_body(random_: random.Random, kind: str) -> dict[str, Any]:
    message_id = random_.randrange(1, 12)
    bodies: dict[str, Any] = {
        "message": lambda: {"message": message_view(random_, message_id)},
        "delta": lambda: {
            "message": message_id,
            "text": random_.choice(["", "more ", "字"]),
            "thinking": random_.choice(["", "hm "]),
        },
        "reset": lambda: {"message": message_id},
        "tool": lambda: {"message": message_id, "call": tool_view(random_, random_.randrange(5))},
        "queued": lambda: {"item": item_view(random_, random_.randrange(5))},
        "unqueued": lambda: {"item": random_.randrange(5)},
        "state": lambda: {
            "thread": thread_view(random_),
            "turn": random_.choice([None, {"frame": 1, "state": "running", "level": 3}]),
        },
        "anew": dict,
        "unheard-of": lambda: {"anything": 1},
    }
    return bodies[kind]()


KINDS = ["message", "delta", "reset", "tool", "queued", "unqueued", "state", "anew", "unheard-of"]


def random_history(seed: int, length: int = 40) -> tuple[dict[str, Any], list[Event]]:
    """A snapshot and the events after it; some events come again."""
    random_ = random.Random(seed)
    first = random_.randrange(1, 6)
    start: dict[str, Any] = {
        "thread": thread_view(random_),
        "turn": None,
        "messages": [message_view(random_, number) for number in range(first, first + random_.randrange(4))],
        "has_earlier": random_.random() < 0.5,
        "queued": [item_view(random_, 1)] if random_.random() < 0.5 else [],
        "event": random_.randrange(100),
    }
    events: list[Event] = []
    for number in range(start["event"] + 1, start["event"] + 1 + length):
        kind = random_.choice(KINDS)
        events.append({"number": number, "kind": kind, "body": event_body(random_, kind)})
        if random_.random() < 0.1:
            events.append(random_.choice(events))
    return start, events
