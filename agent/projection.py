"""What clients see of the records: plain dictionaries, the same in a snapshot and in an event.

Never in here: wire text, a quote's text and levels, anything of another thread.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from agent import notices
from agent.models import InboxItem, TaskFrame, ToolCall, TurnEvent
from agent.quoting import card_of
from maxclaw.text import head
from threads.models import Message, Thread

RESULT_VIEW_MAX_CHARS = 4_000

STREAMING = "streaming"
COMPLETE = "complete"
INTERRUPTED = "interrupted"

# What `Message.meta` may say: "state" of an assistant row, "thinking" for the reader, "notice" (a sentence by the
# server for the person, with its code), "quote".
View = dict[str, Any]


def thread_view(thread: Thread) -> View:
    return {
        "channel": thread.channel,
        "title": thread.title,
        "kind": thread.kind,
        "status": thread.status,
        "scope": thread.scope,
        "category": thread.category,
        "state": thread.state,
        "model": thread.model,
        "updated": thread.updated.isoformat(),
    }


def turn_view_of(frame: TaskFrame | None) -> View | None:
    """The topmost open frame as clients see it; None when no turn is open."""
    if frame is None or frame.state in (TaskFrame.State.DONE, TaskFrame.State.FAILED):
        return None
    return {"frame": frame.pk, "state": frame.state, "level": frame.level}


def item_view(item: InboxItem) -> View:
    return {
        "id": item.pk,
        "key": item.client_key or "",
        "text": item.text,
        "quote": card_of(item.quote),
        "created": item.created.isoformat(),
    }


def queued_views(thread: Thread) -> list[View]:
    """The user's words that wait for a safe point. Other items are the server's business."""
    waiting = InboxItem.objects.filter(
        thread=thread, owner_id=thread.owner_id, state=InboxItem.State.WAITING, source="user"
    )
    return [item_view(item) for item in waiting.order_by("id")]


def tool_view(call: ToolCall, result: Message | None = None) -> View:
    result = result or call.result
    return {
        "id": call.pk,
        "tool": call.tool,
        "arguments": call.arguments,
        "status": call.status,
        "result": None
        if result is None
        else {
            "message_id": result.pk,
            "text": head(result.text, RESULT_VIEW_MAX_CHARS),
            "chars": len(result.text),
            "is_error": result.is_error,
            "left_out": result.meta.get("left_out"),
        },
        "started": call.started.isoformat() if call.started else None,
        "duration_ms": call.duration_ms,
    }


def message_view(
    message: Message,
    ordinal: int,
    calls: Iterable[ToolCall] = (),
    text: str | None = None,
    thinking: str = "",
    superseded: bool | None = None,
    fold: View | None = None,
) -> View:
    """One row; `ordinal` is its generation's. A streaming answer's text so far comes from its events. "code" says which
    notice it is, blank for what is none. "fold": the stretch of rewound rows that it is of, see `agent/folds.py`; None
    wherever rows are not folded."""
    return {
        "id": message.pk,
        "role": message.role,
        "text": notices.text_of(message) if text is None else text,
        "thinking": message.meta.get("thinking", "") or thinking,
        "state": message.meta.get("state", COMPLETE),
        "created": message.created.isoformat(),
        "generation": ordinal,
        "superseded": message.left_because == Message.LeftBecause.SUPERSEDED if superseded is None else superseded,
        "fold": fold,
        "notice": bool(message.meta.get("notice")),
        "code": str(message.meta.get("notice") or ""),
        "quote": card_of(message.meta.get("quote")),
        "tool_calls": [tool_view(call) for call in calls],
    }


def message_views(
    thread: Thread, before_id: int | None = None, limit: int = 100, after_id: int | None = None
) -> list[View]:
    """The newest rows a person sees, ascending, older than `before_id`; with `after_id` the oldest newer than that.
    Four queries at most, and one for each streaming answer.

    Event rows are shown when they are notices to the person. A row that was copied within the thread stands once, in
    its own place, and counts as rewound only when its copies are too.
    """
    rows = shown_rows(thread)
    if before_id is not None:
        rows = rows.filter(id__lt=before_id)
    if after_id is not None:
        page = list(rows.filter(id__gt=after_id).select_related("generation").order_by("id")[:limit])
    else:
        page = list(rows.select_related("generation").order_by("-id")[:limit])[::-1]
    rewound = _rewound(thread, page)
    return row_views(page, rewound)


def shown_rows(thread: Thread) -> QuerySet[Message]:
    """The rows of a thread that a person sees, rewound ones too, each in its own place."""
    rows = Message.objects.filter(thread=thread, owner_id=thread.owner_id).exclude(role=Message.Role.TOOL)
    return rows.exclude(role=Message.Role.EVENT, meta__notice__isnull=True).exclude(copied_from__thread_id=thread.pk)


def row_views(rows: Sequence[Message], rewound: Container[int], folds: Mapping[int, View] | None = None) -> list[View]:
    """A view of each row, its generation fetched with it; `rewound` has the ids of those that were taken out."""
    calls = _calls_by_message([row.pk for row in rows])
    return [_row_view(row, calls[row.pk], row.pk in rewound, (folds or {}).get(row.pk)) for row in rows]


def _rewound(thread: Thread, page: Sequence[Message]) -> set[int]:
    left = {row.pk for row in page if row.left_because == Message.LeftBecause.SUPERSEDED}
    if not left:
        return left
    copies = Message.objects.filter(thread=thread, copied_from_id__in=left)
    standing = copies.exclude(left_because=Message.LeftBecause.SUPERSEDED).values_list("copied_from_id", flat=True)
    return left - {source for source in standing if source is not None}


def _row_view(row: Message, calls: Sequence[ToolCall], superseded: bool, fold: View | None) -> View:
    ordinal = row.generation.ordinal
    if row.meta.get("state") == STREAMING:
        text, thinking = streamed_so_far(row)
        return message_view(row, ordinal, calls, text=text, thinking=thinking, superseded=superseded)
    return message_view(row, ordinal, calls, superseded=superseded, fold=fold)


def _calls_by_message(message_ids: list[int]) -> dict[int, list[ToolCall]]:
    grouped: dict[int, list[ToolCall]] = defaultdict(list)
    calls = ToolCall.objects.filter(message_id__in=message_ids).select_related("result")
    for call in calls.order_by("position", "id"):
        grouped[call.message_id].append(call)
    return grouped


def streamed_so_far(message: Message) -> tuple[str, str]:
    """Text and thinking of a streaming answer, joined from its events since the last reset."""
    text: list[str] = []
    thinking: list[str] = []
    events = TurnEvent.objects.filter(
        thread_id=message.thread_id, kind__in=["delta", "reset"], body__message=message.pk
    )
    for kind, body in events.order_by("number").values_list("kind", "body"):
        if kind == "reset":
            text, thinking = [], []
        else:
            text.append(body.get("text", ""))
            thinking.append(body.get("thinking", ""))
    return "".join(text), "".join(thinking)
