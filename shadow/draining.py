"""Taking what waits: one drain goes on at a time, in whatever process, with many runs in its one event loop.

So shadows never take more than one of a queue's workers, however many triggers there are. A drain that finds another at
work rings for it and goes; the other looks again then. The claim is a lock of the database's that goes with its
connection: a worker that dies leaves none behind. Who runs what is settled by the rows of runs alone.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import psycopg
from asgiref.sync import async_to_sync
from django.db.models import QuerySet

from agent.bell import listen_dsn, ring
from maxclaw import clock
from maxclaw.database_threads import in_database
from shadow import cancelling, runs, triggers
from shadow.models import ShadowRun

AT_ONCE = 16
# No run is begun after this: a task of the queue ends in time, and the rest is another one's.
DRAIN_SECONDS = 480.0
LOCK_KEY = 0x7368_6472_6169_6E


def drain(seconds: float = DRAIN_SECONDS) -> int:
    """Run what waits, in a worker; what still does after `seconds` is another task's. Returns how many runs asked a
    model."""
    seen: set[int] = set()
    done = 0
    deadline = clock.monotonic() + seconds
    # Once more after the claim is given back: who came meanwhile found it taken.
    while _waiting(seen).exists():
        if clock.monotonic() >= deadline:
            triggers.drain_soon()
            break
        with _claim() as claimed:
            if not claimed:
                ring(cancelling.MORE_WAITS, {})
                break
            before = len(seen)
            done += async_to_sync(run_waiting)(seen, deadline)
        if len(seen) == before:
            break  # others' runs leave no room, such as those of a worker that died: the tick ends these
    return done


async def run_waiting(seen: set[int] | None = None, deadline: float | None = None) -> int:
    """Run what waits, AT_ONCE at a time in one event loop, until nothing does that is not in `seen`, which grows. After
    `deadline`, by the monotonic clock, no run is begun. Returns how many asked a model."""
    seen = set() if seen is None else seen
    deadline = clock.monotonic() + DRAIN_SECONDS if deadline is None else deadline
    done = 0
    spent: dict[int, datetime] = {}  # owners whose budget is, and until when
    async with cancelling.listening() as running:
        tasks: set[asyncio.Task[bool]] = set()
        while True:
            running.more.clear()
            room = AT_ONCE - len(tasks) if clock.monotonic() < deadline else 0
            for run_id in await in_database(_next, room, seen) if room else []:
                seen.add(run_id)
                tasks.add(running.start(run_id, runs.perform(run_id, spent)))
            if not tasks:
                return done
            ended = await _first_ended(tasks, running.more)
            tasks -= ended
            done += sum(not task.cancelled() and task.exception() is None and task.result() for task in ended)


async def _first_ended(tasks: set["asyncio.Task[bool]"], more: asyncio.Event) -> set["asyncio.Task[bool]"]:
    """Those that have ended once one has, or none once there is more to look for."""
    called = asyncio.ensure_future(more.wait())
    try:
        await asyncio.wait({*tasks, called}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        called.cancel()
    return {task for task in tasks if task.done()}


def _waiting(seen: set[int]) -> QuerySet[ShadowRun]:
    return triggers.waiting().exclude(pk__in=seen)


def _next(limit: int, seen: set[int]) -> list[int]:
    """Queued runs that this drain has not looked at yet, as many as there is room for beside those that go on."""
    room = min(limit, AT_ONCE - triggers.going_on())
    return list(_waiting(seen).values_list("pk", flat=True)[: max(room, 0)])


@contextmanager
def _claim() -> Iterator[bool]:
    """Whether this is the one drain, for the length of the block."""
    # A connection of its own, direct where a pooler stands before the database: the lock belongs to its session.
    with psycopg.connect(listen_dsn(), autocommit=True) as session:
        taken = session.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_KEY]).fetchone()
        yield bool(taken and taken[0])
        # Not left to the end of the session, which the server sees to in its own time: a drain that begins at once
        # would take this one for going on, and leave what waits to the next tick.
        session.execute("SELECT pg_advisory_unlock_all()")
