"""One row of everything that the console lists, with words in it that must not show by themselves."""

import uuid
from datetime import timedelta
from typing import Any

from axes.models import AccessAttempt, AccessLog
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django_q.models import OrmQ, Task
from django_q.signing import SignedPackage

from accounts.models import User
from agent.models import ImportedConversation, ImportJob, InboxItem, OverflowEvent, TaskFrame, ToolCall, TurnEvent
from llm import catalog, ledger
from llm.models import ModelCall
from llm.prices import Usage
from maxclaw import clock, heartbeat
from maxclaw.schedule import TICK_FUNCTION, ensure_schedule
from memory.models import Episode, Fact, FactLog, FactUse
from shadow.models import ProposalReview
from tests.llm.requests import opened
from tests.memory.facts import fact_row
from tests.shadow.records import proposal_row
from tests.threads.records import call_tool, exchange, give_result, say, thread_of
from threads.models import Generation, Message, PrivateReading, Thread

SECRET = "secret-5d1c"


def fill(owner: User, staff: User) -> Thread:
    """A conversation of `owner` with a row in every table of the console; every private text holds SECRET."""
    thread = thread_of(owner, title=f"{SECRET} title")
    Generation.objects.filter(thread=thread).update(
        opening=f'"{SECRET} opening"',
        summary=f"{SECRET} summary",
        summary_before=f"{SECRET} before",
        standing=[{"text": f"{SECRET} standing"}],
    )
    first, _answer = exchange(thread, f"{SECRET} question", f"{SECRET} answer")
    say(thread, "user", f"{SECRET} words", meta={"quote": quote_from(thread)})
    call = call_tool(thread, arguments={"query": f"{SECRET} wire"})
    result = give_result(thread, text=f"{SECRET} result")
    Message.objects.filter(pk=result.pk).update(tool_call_id=f"{SECRET} call", model=f"{SECRET}-model")
    frame = TaskFrame.objects.create(thread=thread, owner=owner, source="user", notice=f"{SECRET} notice", steps=2)
    ToolCall.objects.create(
        thread=thread,
        owner=owner,
        frame=frame,
        message=call,
        result=result,
        call_id=f"{SECRET} call",
        tool=f"{SECRET}_tool",
        arguments={"query": f"{SECRET} arguments"},
        status="done",
        duration_ms=12,
    )
    OverflowEvent.objects.create(
        thread=thread, owner=owner, frame=frame, source="estimate", diagnosis=f"{SECRET} diagnosis", before_tokens=1
    )
    InboxItem.objects.create(
        thread=thread,
        owner=owner,
        text=f"{SECRET} waiting",
        quote={"text": SECRET},
        client_key=f"{SECRET} key",
        message=first,
    )
    TurnEvent.objects.create(thread=thread, owner=owner, number=1, kind="delta", body={"text": f"{SECRET} delta"})
    ImportedConversation.objects.create(thread=thread, owner=owner, source=f"{SECRET} file", branch=SECRET)
    ImportJob.objects.create(
        owner=owner,
        file_name=f"{SECRET}.zip",
        stored_as="0" * 32,
        state="failed",
        finished=clock.now(),
        problem=f"{SECRET} problem",
        report={"problems": [[f"{SECRET} where", f"{SECRET} why", ""]]},
    )
    PrivateReading.objects.create(reader=staff, owner=owner, thread=thread, what="conversation", first_id=1, last_id=2)
    fill_memory(thread, first, staff)
    fill_server(staff)
    fill_calls(owner, thread)
    return thread


def fill_memory(thread: Thread, words: Message, staff: User) -> None:
    """A fact with its evidence, use and log, one that it superseded, and a reading of the conversation."""
    said = {"applies_to": f"{SECRET} place", "project": f"{SECRET} project", "why": f"{SECRET} why"}
    old, fact = (fact_row(thread.owner, words, f"{SECRET} remembered {number}", **said) for number in (1, 2))
    Fact.objects.filter(pk=old.pk).update(superseded_by=fact, status="superseded")
    FactUse.objects.create(fact=fact, owner=thread.owner, how="found", message=words)
    FactUse.objects.create(fact=fact, owner=thread.owner, how="briefed", generation=words.generation)
    FactLog.objects.create(
        owner=thread.owner,
        actor=staff,
        writer="staff",
        action="correct",
        reason=f"{SECRET} reason",
        before=[old.pk],
        after=[fact.pk],
    )
    Episode.objects.create(owner=thread.owner, thread=thread, generation=words.generation, through_seq=words.pk)
    proposal = proposal_row(words, f"{SECRET} proposed", applies_to=f"{SECRET} place")
    ProposalReview.objects.create(
        proposal=proposal, owner=thread.owner, reviewer=staff, verdict="wrong", note=f"{SECRET} note"
    )
    proposal_row(words, f"{SECRET} rejected", run=proposal.run, position=1, validation_error=f"{SECRET} error")


def quote_from(thread: Thread) -> dict[str, Any]:
    """A confirmed quote whose every private field holds SECRET."""
    return {
        "kind": "message",
        "channel": thread.channel,
        "message_id": 7,
        "title": f"{SECRET} quoted title",
        "generation": 3,
        "text": f"{SECRET} quoted",
        "text_length": 20,
        "source_scope": "isolated",
        "source_category": "work",
        "target_scope": "open",
        "target_category": "",
        "needs_confirm": True,
        "confirm_text": f"{SECRET} sentence",
        "confirmed_at": "2026-11-30T06:00:00+00:00",
    }


def fill_calls(owner: User, thread: Thread) -> None:
    """Calls of several models and purposes over some days; one has no known price, one failed."""
    now = clock.now()
    for index, (name, days) in enumerate(
        [("claude-opus-5-5", 0), ("claude-opus-5-5", 1), ("claude-haiku-5-5", 1), ("claude-sonnet-5-5", 3)]
    ):
        call, _body = opened(catalog.get(name), owner=owner)
        ledger.close_call(call, outcome="complete", usage=Usage(12_000 * (index + 1), 900, 64_000))
        ModelCall.objects.filter(pk=call.pk).update(started=now - timedelta(days=days), thread_id=thread.pk)
    call, _body = opened(catalog.get("emulator-main"), owner=owner)
    ledger.close_call(call, outcome="complete", usage=Usage(4_000, 100, 0))
    opened(catalog.get("claude-opus-5-5"), owner=owner)
    ModelCall.objects.filter(pk=ModelCall.objects.latest("pk").pk).update(error=f"{SECRET} error", thread_id=thread.pk)
    ModelCall.objects.filter(pk=ModelCall.objects.latest("pk").pk).update(reserved_tokens=5_000)


def fill_server(staff: User) -> None:
    """What belongs to the server: queue, schedule, heartbeat, sign-ins, the admin's log, a group."""
    ensure_schedule()
    heartbeat.beat("worker:here:1")
    OrmQ.objects.create(
        key="maxclaw",
        payload=SignedPackage.dumps(
            {"id": "1", "name": "queued", "func": "agent.tasks.tick", "args": (7,), "kwargs": {}}
        ),
    )
    now = clock.now()
    for success in (True, False):
        Task.objects.create(
            id=uuid.uuid4().hex,
            name=f"task {success}",
            func=TICK_FUNCTION,
            started=now,
            stopped=now,
            success=success,
            result={"sweep lapsed leases": True} if success else "it failed",
        )
    for table in (AccessAttempt, AccessLog):
        extra = {"failures_since_start": 1, "post_data": f"{SECRET} typed"} if table is AccessAttempt else {}
        table.objects.create(
            username="mallory", ip_address="192.0.2.7", user_agent="curl", path_info="/login/", **extra
        )
    LogEntry.objects.create(
        user=staff,
        content_type=ContentType.objects.get_for_model(Group),
        object_id="1",
        object_repr="helpers",
        action_flag=1,
    )
    Group.objects.create(name="helpers")


def lapse(thread: Thread) -> None:
    """Leave the thread running with a lease that nobody renews."""
    Thread.objects.filter(pk=thread.pk).update(
        state="running",
        lease_token=uuid.uuid4(),
        lease_holder="web:gone:1",
        lease_until=clock.now() - timedelta(minutes=2),
    )


def forget_heartbeats() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM maxclaw_heartbeat")
