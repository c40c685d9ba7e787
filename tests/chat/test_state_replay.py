"""Whatever happens in a conversation: an old snapshot and the events after it equal a fresh snapshot."""

import asyncio
import copy
from collections import Counter

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent import revising, sending
from agent.models import InboxItem, ToolCall, TurnEvent
from agent.refusals import Refused
from chat.conversations import archive_conversation, rename_conversation, unarchive_conversation
from chat.snapshot import Gap, apply, snapshot
from llm.emulator import client as emulated
from maxclaw.database_threads import in_database
from tests.agent.world import running_world
from tests.chat.histories import random_history
from threads.models import Message, Thread
from threads.verification import verify_thread

EXAMPLES = 6
PAGE = 6  # small, so that long conversations outgrow it

ANSWERS = {
    "text": [emulated.text("Aye, ", pieces=["Aye", ", "])],
    "long": [emulated.text("a word and another " * 40)],
    "thinking": [emulated.thinking("Let me see."), emulated.text("I thought of it, 字.")],
    "history": [emulated.text("I look."), emulated.tool_use("message_history_read", {"channel": "nosuchthread"})],
    "question": [emulated.tool_use("ask_user_question", {"question": "Which?", "options": ["a", "b"]})],
    "unknown tool": [emulated.tool_use("no_such_tool", {"x": 1})],
}
FAULTS = {
    "drop": {"kind": "drop", "after_deltas": 1},
    "overloaded": {"kind": "status", "status": 529},
    "bad": {"kind": "status", "status": 400},
}
ACTIONS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(sorted(ANSWERS))),
    st.tuples(st.just("fault"), st.sampled_from(sorted(FAULTS))),
    st.tuples(st.just("look"), st.sampled_from([0.0, 0.02, 0.08])),
    st.tuples(st.sampled_from(["stop", "answer", "rename", "archive", "unarchive", "rest"]), st.none()),
    st.tuples(st.sampled_from(["rewind", "edit", "retry", "undo", "withdraw"]), st.integers(0, 3)),
)


# Between them every kind of action where it has an effect, which chance alone does not find in so few examples.
REVISED = [("answer", None), ("rest", None), ("rewind", 0), ("undo", 0), ("retry", 0), ("rest", None), ("edit", 0)]
WITHDRAWN = [("stop", None), ("rest", None), ("rename", None), ("archive", None), ("unarchive", None)]
WITHDRAWN += [
    ("fault", "bad"),
    ("rest", None),
    ("say", "long"),
    ("look", 0.08),
    ("say", "text"),
    ("withdraw", 0),
    ("stop", None),
]


@pytest.mark.django_db(transaction=True)
def test_a_snapshot_of_any_moment_and_the_events_after_it_equal_a_fresh_one(alice, emulator):
    did: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @example(REVISED)
    @example(WITHDRAWN)
    @given(st.lists(ACTIONS, min_size=3, max_size=8))
    def holds(actions):
        emulator.reset()
        emulator.set_pace({"first_token_ms": 15, "tokens_per_second": 300})
        async_to_sync(scenario)(emulator, alice, actions, did)

    holds()
    assert [name for name in CHANGES if not did[name]] == [], f"these never had an effect: {did}"
    assert did["compared"] >= 3 * EXAMPLES, did


async def scenario(emulator, owner, actions, did):
    """Some actions on a conversation with an answered turn and an open question; counts those that had an effect."""
    async with running_world(emulator) as world:
        thread = await world.new_thread(owner)
        moments = [await look(thread)]
        for name, what in [("say", "text"), ("rest", None), ("say", "question"), ("rest", None), *actions]:
            before = await in_database(all_events, thread)
            taken = await act(world, thread, owner, name, what)
            moments.append(await look(thread))
            did[name] += taken and len(await in_database(all_events, thread)) > len(before)
        await world.rest(thread)
        fresh = await look(thread)
        events = await in_database(all_events, thread)
        # Whatever was done, every request of it can be rebuilt and proved.
        report = await in_database(verify_thread, thread)
        assert report.findings == []
        assert report.calls == report.proved
        for moment in moments:
            replayed = replay(moment, events)
            # What changed too much to be told is read anew by every client.
            if not replayed.get("stale"):
                did["compared"] += 1
                assert newest_page(replayed) == newest_page(fresh)


async def look(thread):
    return await in_database(lambda: snapshot(thread, page=PAGE))


async def act(world, thread, owner, name, what):
    """Do one thing; returns whether it found something to do it to and was not refused."""
    try:
        if name == "say":
            world.emulator.answer(*ANSWERS[what])
            await world.say(thread, f"Tell me: {what}")
        elif name == "fault":
            world.emulator.fault(**FAULTS[what])
            await world.say(thread, "Try this")
        elif name == "look":
            await asyncio.sleep(what)
        elif name == "stop":
            return await in_database(stop_whatever_runs, thread, owner)
        elif name == "answer":
            call = await in_database(lambda: ToolCall.objects.filter(thread=thread, status="waiting").first())
            if call is None:
                return False
            await world.answer(thread, call, "a")
        elif name == "rest":
            await world.rest(thread)
        elif name in REVISIONS:
            return await in_database(revise, name, thread, owner, what)
        else:
            change = {"rename": rename, "archive": archive_conversation, "unarchive": unarchive_conversation}[name]
            await in_database(change, owner, thread.channel)
    except Refused:
        return False  # nothing was stored, so nothing is to be told
    return True


def rename(owner, channel):
    rename_conversation(owner, channel, "Another title")


REVISIONS = ("rewind", "edit", "retry", "undo", "withdraw")
# What has to have had an effect in some example, or the test says nothing of it.
CHANGES = ("say", "fault", "stop", "answer", "rename", "archive", "unarchive", *REVISIONS)


def revise(name, thread, owner, which):
    rows = list(Message.objects.filter(thread=thread, role__in=["user", "assistant"]).order_by("id"))
    row = rows[which % len(rows)].pk if rows else 0
    key = f"{name}-{len(rows)}-{which}"
    if name == "rewind":
        revising.rewind(owner, thread.channel, row)
    elif name == "edit":
        revising.edit(owner, thread.channel, row, "Other words", client_key=key)
    elif name == "retry":
        revising.retry(owner, thread.channel, client_key=key)
    elif name == "undo":
        revising.undo_rewind(owner, thread.channel)
    else:
        # In one unit, so that no turn takes the words between, however slow the machine is.
        with transaction.atomic():
            item = InboxItem.objects.filter(thread=thread, state="waiting").first()
            item = item or sending.send(owner, thread.channel, "Never mind", client_key=key)
            revising.withdraw(owner, thread.channel, item.pk)
    return True


def stop_whatever_runs(thread, owner):
    from agent.models import TaskFrame
    from agent.stopping import stop

    frame = TaskFrame.objects.filter(thread=thread).exclude(state__in=["done", "failed"]).first()
    if frame is None:
        return False
    stop(owner, thread.channel, frame.pk)
    return True


def all_events(thread: Thread):
    rows = TurnEvent.objects.filter(thread=thread).order_by("number").values_list("number", "kind", "body")
    return [{"number": number, "kind": kind, "body": body} for number, kind, body in rows]


def replay(state, events):
    for event in events:
        state = apply(state, event)
    return state


def newest_page(state):
    """What a fresh snapshot would hold of it: a replayed one has kept the older messages too."""
    messages = state["messages"]
    return {**state, "messages": messages[-PAGE:], "has_earlier": state["has_earlier"] or len(messages) > PAGE}


@pytest.mark.parametrize("seed", range(50))
def test_reducing_changes_nothing_in_place(seed):
    state, events = random_history(seed)
    before = copy.deepcopy(state)
    replay(state, events)
    assert state == before


def test_an_event_that_leaves_a_gap_is_refused_and_a_known_one_changes_nothing():
    state, _events = random_history(1)
    number = state["event"]
    with pytest.raises(Gap):
        apply(state, {"number": number + 2, "kind": "unqueued", "body": {"item": 1}})
    assert apply(state, {"number": number, "kind": "reset", "body": {"message": 1}}) is state


def test_a_message_before_the_oldest_one_held_is_left_to_paging():
    state: dict = {"thread": {}, "turn": None, "messages": [{"id": 5}], "has_earlier": True, "queued": [], "event": 1}
    event = {"number": 2, "kind": "message", "body": {"message": {"id": 3}}}
    assert apply(state, event)["messages"] == [{"id": 5}]
    assert apply({**state, "has_earlier": False}, event)["messages"] == [{"id": 3}, {"id": 5}]


@pytest.mark.django_db(transaction=True)
def test_a_snapshot_is_of_one_moment(alice):
    """A message that commits between the queries of a snapshot is in none of its parts."""
    from unittest import mock

    from chat import snapshot as module
    from tests.chat.records import say
    from threads.lifecycle import create_thread

    thread = create_thread(alice)
    say(thread, "before")
    real = module.thread_view

    def interrupted(current):
        async_to_sync(in_database)(say, thread, "meanwhile")
        return real(current)

    with mock.patch.object(module, "thread_view", interrupted):
        state = snapshot(thread)
    assert [row["text"] for row in state["messages"]] == ["before"]
    assert state["event"] == 1
