"""Numbered events: what clients replay. One statement stores them and rings for each.

Kinds and bodies (the reducers in `chat/snapshot.py` and `static/chat/state.js` are their other half):

| kind | body |
|---|---|
| message | {"message": MessageView}: insert or replace by id |
| delta | {"message": id, "text": str, "thinking": str}: append to a streaming answer |
| reset | {"message": id}: empty a streaming answer, it is asked again |
| tool | {"message": id, "call": ToolView}: insert or replace a call of that message |
| queued | {"item": ItemView} |
| unqueued | {"item": id}; with "withdrawn": ItemView when the user took the words back |
| state | {"thread": ThreadView, "turn": TurnView or null} |
| anew | {}: so much changed at once that a fresh snapshot says it best |
| gone | {}: the conversation was deleted |
"""

import json
from collections.abc import Iterable
from typing import Any

from django.db import connection

from agent.bell import PG_CHANNEL
from maxclaw import clock

INLINE_MAX_BYTES = 4_000  # an event up to this size travels in the ring itself

Event = tuple[str, dict[str, Any]]

_INSERT = """
INSERT INTO agent_turnevent (thread_id, owner_id, number, kind, body, created)
SELECT %(thread)s, %(owner)s, base.number + fresh.place, fresh.kind, fresh.body, %(created)s
FROM (SELECT COALESCE(max(number), 0) AS number FROM agent_turnevent WHERE thread_id = %(thread)s) AS base,
     unnest(%(kinds)s::text[], %(bodies)s::jsonb[]) WITH ORDINALITY AS fresh(kind, body, place)
ORDER BY fresh.place
RETURNING number, pg_notify(%(channel)s, json_build_object(
    'topic', 'event', 'thread', thread_id, 'owner', owner_id, 'number', number, 'kind', kind,
    'body', CASE WHEN octet_length(body::text) <= %(inline)s THEN body END)::text)
"""
_INSERT_AND_WAKE = f"""
WITH stored AS ({_INSERT})
SELECT number FROM stored
UNION ALL
SELECT 0 FROM (SELECT pg_notify(%(channel)s, json_build_object('topic', 'wake', 'thread', %(thread)s)::text)) AS rung
"""  # noqa: S608  (both halves are constants)


def emit_all(thread_id: int, owner_id: int, events: Iterable[Event], *, wake: bool = False) -> int:
    """Store events in order and ring for each; with `wake`, ring for whoever runs turns as well. The caller's
    transaction holds the thread's row lock, so numbers have no gaps. Returns the last number (0 when there was nothing
    to say)."""
    events = list(events)
    if not events:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT_AND_WAKE if wake else _INSERT,
            {
                "thread": thread_id,
                "owner": owner_id,
                "created": clock.now(),
                "kinds": [kind for kind, _body in events],
                "bodies": [json.dumps(body, ensure_ascii=False) for _kind, body in events],
                "channel": PG_CHANNEL,
                "inline": INLINE_MAX_BYTES,
            },
        )
        return max(row[0] for row in cursor.fetchall())


def emit(thread_id: int, owner_id: int, kind: str, body: dict[str, Any]) -> int:
    """Store one event and ring."""
    return emit_all(thread_id, owner_id, [(kind, body)])
