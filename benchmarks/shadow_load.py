"""Shadows beside people: how soon one goes when its person speaks, and what turns feel of many that run at once."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks.harness import ROOT, percentile, table

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from llm.emulator.client import EmulatorControl
    from shadow.models import ShadowRun
    from threads.models import Thread

FIRST_TOKEN_MS = 300
SAID = "I prefer the morning for this, and I live in Porto now."
DRAINS = "import django; django.setup(); from shadow.tasks import drain; drain()"
# A minute's tick of a moment when everything rested for long enough, and what it queued.
TICKS = (
    "import django; django.setup(); from maxclaw import clock; from shadow import tasks, ticks; "
    "ticks.shadow_tick(clock.now()); tasks.drain()"
)
RESTED_SECONDS = 21 * 60
DRAINS_WHEN_TOLD = f"import sys; {DRAINS}; [drain() for line in sys.stdin]"
PATIENCE_SECONDS = 120.0


async def turns(said: Iterable[tuple["Thread", str]]) -> list[float]:
    """Let conversations go on, one turn after the other; milliseconds from the words to the first token of each."""
    from agent.bell import Bell
    from agent.runner import Runner
    from maxclaw.database_threads import in_database

    await Bell.shared().start()
    runner = Runner()
    await runner.start()
    try:
        return [await in_database(_turn, thread, words) for thread, words in said]
    finally:
        await runner.stop()
        await Bell.shared().stop()


def _turn(thread: "Thread", words: str) -> float:
    from agent.sending import send
    from llm.models import ModelCall
    from maxclaw import clock
    from threads.models import Message, Thread

    rows = Message.objects.filter(thread=thread).count()
    sent = clock.now()
    send(thread.owner, thread.channel, words, client_key=f"{thread.pk}-{sent.timestamp()}")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        fresh = Thread.objects.get(pk=thread.pk)
        if fresh.state == Thread.State.IDLE and Message.objects.filter(thread=thread).count() >= rows + 2:
            break
        if time.monotonic() > deadline:
            raise SystemExit(f"A turn did not end: {fresh.state}.")
        time.sleep(0.01)
    call = ModelCall.objects.filter(thread_id=thread.pk, purpose="turn", started__gte=sent).earliest("pk")
    return (call.started - sent).total_seconds() * 1000 + (call.first_token_ms or 0)


def cancels(emulator: "EmulatorControl", number: int) -> list[float]:
    """Milliseconds from a person's words, sent in this process, to the end of the request that waits for its answer in
    another one, as the ledger has it."""
    from agent.sending import send
    from llm.models import ModelCall
    from shadow.models import ShadowRun

    emulator.set_pace({"first_token_ms": 60_000, "tokens_per_second": None})
    said, ended = [], []
    threads = _fresh_threads("interrupting", number)
    worker = _worker(DRAINS_WHEN_TOLD, stdin=subprocess.PIPE)
    assert worker.stdin is not None
    try:
        for thread in threads:
            assert _queue([thread]) == 1
            worker.stdin.write(b"drain\n")
            worker.stdin.flush()
            asked = ShadowRun.objects.filter(thread=thread, status="running", call__isnull=False)
            _wait_for(asked.exists, 0.01)
            time.sleep(0.2)  # the request is on its way
            calls = ModelCall.objects.filter(pk=asked.get().call or 0, outcome="interrupted")
            began = time.perf_counter()
            send(thread.owner, thread.channel, "Wait.", client_key=f"wait-{thread.pk}")
            said.append((time.perf_counter() - began) * 1000)
            _wait_for(calls.exists, 0.002)
            ended.append((time.perf_counter() - began) * 1000)
            run = ShadowRun.objects.filter(thread=thread).latest("pk")
            assert (run.status, run.error) == ("cancelled", "interrupted-by-max"), (run.status, run.error)
    finally:
        worker.stdin.close()
        worker.wait()
    emulator.set_pace("instant")
    table(
        "A person's words while a shadow's request runs in another process, ms",
        ("until", "times", "p50", "p95"),
        [
            (name, len(took), percentile(took, 0.5), percentile(took, 0.95))
            for name, took in (
                ("the words are stored and the run is cancelled", said),
                ("the request has ended", ended),
            )
        ],
    )
    return ended


def _wait_for(look: Callable[[], bool], every_seconds: float) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not look():
        if time.monotonic() > deadline:
            raise SystemExit("It did not happen.")
        time.sleep(every_seconds)


def _worker(program: str, stdin: int | None = None, **environment: str) -> "subprocess.Popen[bytes]":
    """A process as the queue's workers are: of their role, without a pool of connections."""
    environment = {**os.environ, "MAXCLAW_ROLE": "worker", **environment}
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=stdin, stdout=subprocess.DEVNULL)


async def under_load(emulator: "EmulatorControl", due: int, loaded_turns: int) -> float:
    """The median first token of turns while a worker reads what became due at once, over that without."""
    from maxclaw.database_threads import in_database

    emulator.set_pace({"first_token_ms": FIRST_TOKEN_MS, "tokens_per_second": None})
    threads = await in_database(_fresh_threads, "busy", 2 * loaded_turns)
    alone = await turns((thread, SAID) for thread in threads[:loaded_turns])
    waiting = await in_database(_fresh_threads, "due", due)
    await in_database(_rest_alone, waiting)
    worker = _worker(TICKS, MAXCLAW_CLOCK_SHIFT_SECONDS=str(RESTED_SECONDS))
    try:
        runs = await in_database(_runs_of, waiting)
        await in_database(_wait_for, runs.exists, 0.01)
        loaded = await turns((thread, SAID) for thread in threads[loaded_turns:])
        queued = await in_database(runs.count)  # the tick queues them in steps
        working = worker.poll() is None
    finally:
        worker.terminate()
        worker.wait()
    emulator.set_pace("instant")
    table(
        f"First token in ms while {queued:,} conversations that became due at once are read"
        f"{'' if working else ', until before the last turn'}",
        ("", "turns", "p50", "p95"),
        [
            (name, len(took), percentile(took, 0.5), percentile(took, 0.95))
            for name, took in (("alone", alone), ("under load", loaded))
        ],
    )
    return percentile(loaded, 0.5) / percentile(alone, 0.5)


def _fresh_threads(name: str, number: int) -> list["Thread"]:
    """Conversations of one unread exchange each."""
    from django.db import transaction

    from accounts.models import User
    from shadow import cursors
    from threads.lifecycle import create_thread
    from threads.models import Message
    from threads.transcript import NewMessage, append_many, live_generation, text_block

    owner = User.objects.create_user(name)
    lines = [
        NewMessage(role=role, text=words, blocks=[text_block(words)])
        for role, words in ((Message.Role.USER, f"I prefer tea. {SAID}"), (Message.Role.ASSISTANT, "Good to know."))
    ]
    threads = []
    with transaction.atomic():
        for place in range(number):
            thread = create_thread(owner, title=f"{name} {place}")
            append_many(thread, live_generation(thread), lines)
            threads.append(thread)
    cursors.initialize()
    return threads


def _rest_alone(threads: Sequence["Thread"]) -> None:
    """People talk in all others while these rest: no tick finds any but these due."""
    from maxclaw import clock
    from threads.models import Thread

    moment = clock.now() + timedelta(seconds=RESTED_SECONDS)
    Thread.objects.exclude(pk__in=[thread.pk for thread in threads]).update(updated=moment)


def _runs_of(threads: Sequence["Thread"]) -> "QuerySet[ShadowRun]":
    from shadow.models import ShadowRun

    return ShadowRun.objects.filter(thread__in=[thread.pk for thread in threads])


def _queue(threads: Sequence["Thread"]) -> int:
    from shadow.models import ShadowRun

    rows = [ShadowRun(thread=thread, owner_id=thread.owner_id, reason="idle-or-ended") for thread in threads]
    return len(ShadowRun.objects.bulk_create(rows))
