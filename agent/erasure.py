"""What the rows of turns export of a person, and how they go."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Model

from accounts import erasing
from accounts.models import User
from agent import import_jobs
from agent.models import ImportedConversation, ImportJob, InboxItem, OverflowEvent, TaskFrame, ToolCall, TurnEvent
from maxclaw.sentences import read
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
            "format": imported.format,
            "source": imported.source,
            "branch": imported.branch,
            "created": imported.created.isoformat(),
        }
    for job in erasing.in_batches(ImportJob.objects.filter(owner=user)):
        yield {
            "record": "import",
            "file_name": job.file_name,
            "state": job.state,
            "report": _as_read(job.report),
            "problem": str(read(job.problem)),
            "created": job.created.isoformat(),
            "finished": job.finished and job.finished.isoformat(),
        }


def _as_read(report: dict[str, Any]) -> dict[str, Any]:
    problems = [[str(read(where)), str(read(why)), source] for where, why, source in report.get("problems", [])]
    return {**report, "problems": problems}


def erase_thread(thread: Thread) -> None:
    _forget_in_reports(thread)  # while it is known which conversation of a file this was
    for table in TABLES:
        table._default_manager.filter(thread=thread).delete()


def _forget_in_reports(thread: Thread) -> None:
    """Reports of imports name what was left out by its title. Titles are no names: whose line it is, the id of the
    conversation in the file says."""
    sources = set(ImportedConversation.objects.filter(thread=thread).values_list("source", flat=True))
    for job in ImportJob.objects.select_for_update().filter(owner_id=thread.owner_id).order_by("pk") if sources else []:
        problems = job.report.get("problems", [])
        kept = [problem for problem in problems if problem[-1] not in sources]
        # The worker of one that goes on has a report of its own, which it stores over this one.
        if job.finished is None:
            job.report["forgotten"] = sorted({*job.report.get("forgotten", []), *sources})
        elif len(kept) == len(problems):
            continue
        job.report["problems"] = kept
        job.save(update_fields=["report"])


def erase_user(user: User) -> None:
    for table in TABLES:
        table._default_manager.filter(owner=user).delete()
    jobs = ImportJob.objects.filter(owner=user)
    for stored_as in jobs.values_list("stored_as", flat=True):
        transaction.on_commit(partial(import_jobs.remove_file, stored_as))
    jobs.delete()
