"""The person speaks, and what a shadow is asking is of no use any more: it ends at once, in whatever process it runs.

Who hears the words writes that the run is cancelled and rings. Who runs it hears the ring and aborts the request; had
it not, it would find the run cancelled where it wants to store what was proposed.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from agent.bell import Bell, ring
from agent.models import InboxItem, Level, ToolCall
from agent.questions import QUESTION_TOOL
from maxclaw import clock
from maxclaw.database_threads import in_database
from memory.fact_rows import facts_are_wanted
from shadow.models import ShadowRun
from threads.models import Message, Thread

logger = logging.getLogger("maxclaw.shadow")

TOPIC = "shadow-cancel"
# For the one drain that goes on: something was queued since it looked.
MORE_WAITS = "shadow-more-waits"
INTERRUPTED_BY_MAX = "interrupted-by-max"
ISOLATED = "isolated"
CATEGORY_CHANGED = "category-changed"
DELETED = "deleted"


def cancel(thread_id: int, error: str = INTERRUPTED_BY_MAX) -> None:
    """Drop what is queued for a conversation and end what runs, without any proposal."""
    runs = ShadowRun.objects.filter(thread=thread_id)
    # In most conversations there is none; nothing is locked for that.
    open_runs = list(runs.filter(status__in=["queued", "running"]).values_list("pk", flat=True))
    if not open_runs:
        return
    with transaction.atomic():
        runs.filter(status=ShadowRun.Status.QUEUED).delete()
        # One that was queued a moment ago may have been taken.
        for pk in open_runs:
            running = runs.filter(pk=pk, status=ShadowRun.Status.RUNNING)
            if running.update(status=ShadowRun.Status.CANCELLED, error=error, ended=clock.now()):
                ring(TOPIC, {"run": pk})


def spoke_since(thread: Thread, seen: int) -> bool:
    """Whether the person said something after message `seen`: what was heard may not have been acted on yet."""
    said = Message.objects.filter(thread=thread, pk__gt=seen, role=Message.Role.USER).exclude(text="")
    answered = ToolCall.objects.filter(thread=thread, tool=QUESTION_TOOL, result__gt=seen)
    return said.exists() or answered.exists() or words_wait(thread.pk)


def words_wait(thread_id: int) -> bool:
    """Whether words of the person's wait for a conversation's next safe point."""
    waiting = InboxItem.objects.filter(thread=thread_id, state=InboxItem.State.WAITING, source="user")
    return waiting.filter(level=Level.USER).exists()


def queue_to_store(owner_id: int) -> None:
    """Keep other runs of this owner's that store what was proposed waiting until the transaction ends, before anything
    else is locked: who then waits for the facts is no shadow, and two shadows never give way to each other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('shadow.storing', %s))", [owner_id])


def somebody_waits(owner_id: int) -> bool:
    """Whether anybody waits for a row that the caller's transaction holds, as whoever speaks in a conversation does, or
    for the owner's facts, as a turn does that is to remember something."""
    if facts_are_wanted(owner_id):
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT EXISTS (
                SELECT FROM pg_locks WHERE NOT granted AND locktype IN ('transactionid', 'tuple')
                    AND pg_backend_pid() = ANY (pg_blocking_pids(pid))
            )
            """
        )
        return bool(cursor.fetchone()[0])


class Running:
    """The runs of this process, by id, each a task that a ring can end. `more` is set when something else may wait."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[bool]] = {}
        self.more = asyncio.Event()

    def start(self, run_id: int, work: Coroutine[Any, Any, bool]) -> "asyncio.Task[bool]":
        """Begin a run as a task that can be ended from outside."""
        task = asyncio.ensure_future(work)
        self._tasks[run_id] = task
        task.add_done_callback(lambda _done: self._tasks.pop(run_id, None))
        return task

    async def end_over(self) -> None:
        """End the tasks of runs that are over in the records, because a ring may have been missed."""
        self.more.set()
        if not self._tasks:
            return
        ids = list(self._tasks)
        over = await in_database(
            lambda: set(ShadowRun.objects.filter(pk__in=ids, ended__isnull=False).values_list("pk", flat=True))
        )
        for run_id in over:
            self._end(run_id)

    async def look_again(self, _payload: dict[str, Any]) -> None:
        self.more.set()

    async def heard(self, payload: dict[str, Any]) -> None:
        self._end(int(payload["run"]))

    def _end(self, run_id: int) -> None:
        task = self._tasks.get(run_id)
        if task is not None:
            task.cancel()

    async def poll(self) -> None:
        while True:
            await asyncio.sleep(settings.POLL_SECONDS)
            with contextlib.suppress(Exception):
                await self.end_over()


@asynccontextmanager
async def listening() -> AsyncIterator[Running]:
    """What runs here, with an ear of its own for rings that end it."""
    running, bell = Running(), Bell()
    bell.subscribe(TOPIC, running.heard)
    bell.subscribe(MORE_WAITS, running.look_again)
    bell.on_resync(running.end_over)
    await bell.start()
    poll = asyncio.create_task(running.poll(), name="shadow poll")
    try:
        yield running
    finally:
        poll.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await poll
        await bell.stop()
