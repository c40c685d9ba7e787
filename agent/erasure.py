"""What the rows of turns export of a person, and how they go."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Model

from accounts import erasing
from accounts.models import User
from agent.models import ImportedConversation, InboxItem, OverflowEvent, TaskFrame, ToolCall, TurnEvent
from threads.models import Thread

# Rows before what they refer to.
TABLES: tuple[type[Model], ...] = (ImportedConversation, TurnEvent, OverflowEvent, ToolCall, InboxItem, TaskFrame)


def export(user: User) -> Iterator[dict[str, Any]]:
    """Turns, tool calls and what waits of a person, as one dict each. Events repeat what these and messages hold."""
    for frame in erasing.in_batches(TaskFrame.objects.filter(owner=user).select_related("thread")):
        yield {
            "record": "turn",
            "channel": frame.thread.channel,
            "id": frame.pk,
            "level": frame.level,
            "source": frame.source,
            "state": frame.state,
            "end_reason": frame.end_reason,
            "notice": frame.notice,
            "created": frame.created.isoformat(),
            "ended": frame.ended and frame.ended.isoformat(),
        }
    for call in erasing.in_batches(ToolCall.objects.filter(owner=user).select_related("thread")):
        yield {
            "record": "tool_call",
            "channel": call.thread.channel,
            "message": call.message_id,
            "call_id": call.call_id,
            "tool": call.tool,
            "arguments": call.arguments,
            "status": call.status,
            "result": call.result_id,
            "started": call.started and call.started.isoformat(),
            "duration_ms": call.duration_ms,
        }
    for item in erasing.in_batches(InboxItem.objects.filter(owner=user).select_related("thread")):
        yield {
            "record": "inbox_item",
            "channel": item.thread.channel,
            "level": item.level,
            "source": item.source,
            "text": item.text,
            "quote": item.quote,
            "state": item.state,
            "message": item.message_id,
            "created": item.created.isoformat(),
        }
    for imported in erasing.in_batches(ImportedConversation.objects.filter(owner=user).select_related("thread")):
        yield {
            "record": "imported_conversation",
            "channel": imported.thread.channel,
            "source": imported.source,
            "created": imported.created.isoformat(),
        }


def erase_thread(thread: Thread) -> None:
    for table in TABLES:
        table._default_manager.filter(thread=thread).delete()


def erase_user(user: User) -> None:
    for table in TABLES:
        table._default_manager.filter(owner=user).delete()
