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
from tests.agent import exports
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


def import_exports(owner, tmp_path) -> list[Thread]:
    """A conversation as ChatGPT exports it (with a call of a tool, and an answer that was asked for again, which is a
    branch) and one as Claude does (with thinking and a call of a tool), of May 2023. Returns their threads: the first
    conversation's, the second one's, the branch."""
    at = [SPOKEN + timedelta(minutes=minute) for minute in range(8)]
    nodes = {
        "root": (None, None),
        "hidden": ("root", exports.message("system", "", metadata={"is_visually_hidden_from_conversation": True})),
        "asks": ("hidden", exports.message("user", GARDEN_ASKS, at=at[0])),
        "calls": ("asks", exports.call("python", "print(lisbon.climate)", at=at[1])),
        "output": ("calls", exports.output("python", "mild; I prefer oranges", at=at[2])),
        "first": ("output", exports.message("assistant", "Oranges, as you prefer oranges.", at=at[3])),
        "again": ("output", exports.message("assistant", "Lemons and bougainvillea.", at=at[4])),
        "doubts": ("again", exports.message("user", "Do I like roses?", at=at[5])),
        "answer": ("doubts", exports.message("assistant", "You never said. I prefer not to guess.", at=at[6])),
    }
    garden = exports.chatgpt("garden", nodes, "answer", title="Garden", at=at[0])
    result = [{"type": "text", "text": "我喜欢下雨。", "uuid": exports.uuid(2, 9)}]
    thought = exports.block("thinking", thinking="我喜欢猜。", summaries=[])
    called = exports.block("tool_use", id="toolu_boat", name="repl", input={"code": "weather()"})
    found = exports.block("tool_result", tool_use_id="toolu_boat", name="repl", content=result, is_error=False)
    spoken = [
        ("human", [_said("我住在杭州。")]),
        ("assistant", [thought, called, found, _said("好的。")]),
        ("human", [_said("我喜欢安静的早晨。")]),
        ("assistant", [_said("明白了。")]),
    ]
    ids = [exports.ROOT_PARENT, *(exports.uuid(2, number) for number in range(len(spoken)))]
    told = [
        exports.claude_message(ids[number], ids[number - 1], sender, blocks, at=at[number])
        for number, (sender, blocks) in enumerate(spoken, 1)
    ]
    boat = exports.claude(exports.uuid(2), told, title="Boat", at=at[0])
    for conversation in (garden, boat):
        report = Report()
        path = exports.write_json(tmp_path / "conversations.json", [conversation])
        with path.open("rb") as file:
            ImportRun(owner, report).take(file, path.name)
        assert report.left_out == 0
    whole = Thread.objects.filter(owner=owner, kind="web", copied_from__isnull=True)
    return [*whole.order_by("-title"), Thread.objects.get(owner=owner, copied_from__isnull=False)]


GARDEN_ASKS = "I live in Lisbon. We decided to paint the fence yesterday, because it was grey. What grows there?"


def _said(words):
    return exports.block("text", text=words, citations=[])


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
