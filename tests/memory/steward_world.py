"""Imported conversations for tests of the steward, and the ways in which their generations end."""

import io
import json
from datetime import UTC, datetime, timedelta

from asgiref.sync import async_to_sync
from django.db import transaction

from agent import compaction, summary
from agent.import_run import ImportRun, Report
from maxclaw import clock
from memory import backlog, steward
from memory.models import Digest, Episode, Fact
from threads.models import Generation, Message, Thread

SPOKEN = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)

drain = async_to_sync(steward.drain)
read_page = async_to_sync(steward.read_page)


def import_lines(owner, conversation: str, exchanges, *, first: int = 0) -> Thread:
    """A conversation of (question, answer) pairs, two minutes apart in May 2023; `first` numbers go on where an earlier
    import ended."""
    lines = []
    for number, pair in enumerate(exchanges, first):
        for role, words in zip(("user", "assistant"), pair, strict=True):
            created = SPOKEN + timedelta(minutes=2 * number, seconds=30 * (role == "assistant"))
            line = {"conversation": conversation, "role": role, "text": words, "created": created.isoformat()}
            lines.append(json.dumps(line))
    report = Report()
    ImportRun(owner, report).take(io.BytesIO("\n".join(lines).encode()), "lines")
    assert report.left_out == 0
    return Thread.objects.get(imported_from__source=conversation, imported_from__owner=owner)


def end_generation(thread: Thread, reason: str) -> Generation:
    """End the live generation as a renewal of the context does, with a summary made by rule."""
    material = compaction.gather(thread.pk)
    made = summary.by_rule(material.rows)
    with transaction.atomic():
        done = compaction.commit(material, made, Generation.EndReason(reason), None)
    assert done is not None
    return done[0]


def rests(*threads: Thread) -> None:
    """Let conversations have been at rest for a while."""
    Thread.objects.filter(pk__in=[thread.pk for thread in threads]).update(updated=clock.now() - timedelta(hours=1))


def readable_ids(*threads: Thread) -> list[int]:
    return sorted(Message.objects.filter(backlog.readable(), thread__in=threads).values_list("pk", flat=True))


def digested_ids() -> list[int]:
    return sorted(Digest.objects.values_list("message_id", flat=True))


def outcomes(**where) -> list[str]:
    return list(Episode.objects.filter(**where).order_by("pk").values_list("outcome", flat=True))


def texts(owner, **where) -> list[str]:
    return sorted(Fact.objects.filter(owner=owner, status="active", **where).values_list("text", flat=True))
