"""What is under way while a conversation or a person is erased writes nothing of them afterwards: an open request,
after which no further one goes out, and an import."""

import asyncio
import json
import threading
from contextlib import nullcontext

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from accounts import erasing
from accounts.models import User
from agent import compaction, import_jobs, import_rows
from llm import budgets
from llm.emulator.client import text
from llm.models import ModelCall
from maxclaw.database_threads import in_database
from memory import steward
from shadow import cursors, draining, triggers
from tests.accounts.test_erasing import places_with
from tests.agent.conftest import roomy_messages, small_budget
from tests.agent.renewing import ASKED as SUMMARY_ASKED
from tests.agent.renewing import LONG
from tests.agent.world import running_world
from tests.maxclaw.running import wait_until
from tests.memory.steward_world import rests
from tests.shadow.playing import ASKED as SHADOW_ASKED
from tests.threads.records import exchange, thread_of
from threads.models import Thread

__all__ = ["roomy_messages", "small_budget"]  # fixtures

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-b7d2"


@pytest.fixture
def errors_quote(emulator, settings):
    """Requests that are matched are held until "asked" is released, and then fail with an error that quotes the canary.
    They would be made again."""
    settings.MODEL_RETRY_BASE_SECONDS = 0.01

    def prepare(match):
        emulator.answer(text("word " * 20), match=match, hold="asked", times=-1)
        emulator.fault("error_event", message=f"overloaded at {CANARY}", match=match, times=-1)

    return prepare


def work_of(purpose, thread):
    return {
        "steward": lambda: steward.read_page(thread.pk),
        "shadow": lambda: draining.run_waiting(),
        "compaction": lambda: compaction.compact_idle(thread.pk),
    }[purpose]()


@pytest.mark.parametrize("erased", ["person", "conversation"])
@pytest.mark.parametrize("purpose", ["steward", "shadow", "compaction"])
def test_a_call_that_fails_after_the_erasure_leaves_numbers_alone(
    emulator, errors_quote, alice, request, purpose, erased
):
    match = {"steward": {"model": "emulator-light"}, "shadow": SHADOW_ASKED, "compaction": SUMMARY_ASKED}[purpose]
    warm = purpose == "compaction"
    if warm:
        request.getfixturevalue("small_budget"), request.getfixturevalue("roomy_messages")
    thread = thread_of(alice)
    cursors.initialize()
    if not warm:
        exchange(thread, f"I prefer {CANARY} tea.")
        rests(thread)

    async def scenario():
        async with running_world(emulator) if warm else nullcontext() as world:
            if warm:
                emulator.answer(text("Yes."))
                await world.ask(thread, CANARY + LONG[: len(LONG) // 2])
            if purpose == "shadow":
                await in_database(triggers.trigger, thread.pk, "waiting-max")
            errors_quote(match)
            before = len(emulator.requests(bodies=False))
            work = asyncio.create_task(work_of(purpose, thread))
            await asyncio.to_thread(emulator.wait_for_held, seconds=60.0)
            if erased == "person":
                await in_database(lambda: erasing.erase_user(User.objects.get(pk=alice.pk)))
            else:
                await in_database(erasing.erase_thread, thread)
            emulator.release("asked")
            await work
            return len(emulator.requests(bodies=False)) - before

    assert async_to_sync(scenario)() == 1, "nothing more is asked of what was erased"
    assert not Thread.objects.filter(pk=thread.pk).exists()
    assert places_with(CANARY) == []
    call = ModelCall.objects.get(purpose=purpose)
    assert (call.thread_id, call.generation_id, call.last_message_id, call.answer_message_id) == (None,) * 4
    assert (call.request_id, call.error, call.body_sha256) == ("",) * 3
    assert call.owner_id == (None if erased == "person" else alice.pk)
    used = sum(getattr(call, name) or 0 for name in budgets.TOKEN_COLUMNS)
    assert call.outcome == "transient" and used > 0
    assert budgets.spent_today(None).tokens == used, "no budget is reset by erasing"


@pytest.mark.parametrize("place", ["within a conversation", "between two", "once the threads are known"])
def test_an_import_that_goes_on_after_the_erasure_leaves_nothing(alice, settings, tmp_path, monkeypatch, place):
    """Held in the second of its conversations, or behind it; or it ends that one when the erasure, which listed what is
    to be erased, has not come to the account yet."""
    settings.DATA_DIR = tmp_path / "data"
    name, file = import_jobs.new_file()
    with file:
        for number in range(4):
            said = {"conversation": f"{CANARY} {number}", "role": "user", "created": "2024-01-01"}
            file.write(json.dumps(said | {"text": f"{CANARY} words"}).encode() + b"\n")
    job = import_jobs.start(alice, name, f"{CANARY}.jsonl")
    stored = Thread.objects.filter(owner=alice, kind="web")
    held, may_go_on = threading.Event(), threading.Event()

    def held_second(work):
        calls = []

        def held_work(*arguments, **options):
            done = work(*arguments, **options)
            calls.append(None)
            if len(calls) == 2:
                held.set()
                may_go_on.wait(30)
            return done

        return held_work

    if place == "between two":
        monkeypatch.setattr(import_jobs._Work, "_after_each", held_second(import_jobs._Work._after_each))
    else:
        monkeypatch.setattr(import_rows, "add", held_second(import_rows.add))
    importing = threading.Thread(target=lambda: (import_jobs.run(job.pk), connection.close()))
    importing.start()
    assert held.wait(30)
    assert stored.count() == (2 if place == "between two" else 1)
    threads_of = erasing._threads_of

    def known_and_then_one_more(modules, user):
        found = threads_of(modules, user)
        if not may_go_on.is_set():
            may_go_on.set()
            wait_until(lambda: stored.count() > 1, what="the end of the conversation")
        return found

    if place == "once the threads are known":
        monkeypatch.setattr(erasing, "_threads_of", known_and_then_one_more)
    erasing.erase_user(User.objects.get(pk=alice.pk))
    may_go_on.set()
    importing.join(30)
    assert not User.objects.filter(pk=alice.pk).exists()
    assert places_with(CANARY) == []
    assert not list(import_jobs.folder().iterdir())
