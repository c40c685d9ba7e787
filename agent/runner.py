"""Runs turns as tasks of the ASGI process. Holds nothing whose loss would matter: who has what is in the tables."""

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.conf import settings

from agent import taking
from agent.bell import Bell
from agent.leases import Holding
from agent.turn import CancelReason, Turn
from maxclaw.database_threads import in_database

logger = logging.getLogger("maxclaw.runner")

TAKE_AGAIN_SECONDS = (1, 2)
SHUTDOWN_SECONDS = 4  # less than the supervisor waits (maxclaw.supervisor.GRACE_SECONDS)


class Runner:
    """Takes threads that are due: when it hears a ring, when it starts, and every POLL_SECONDS in case a ring was
    lost. Any number of processes may run one; the lease decides who gets a thread."""

    def __init__(self) -> None:
        self.holder = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self._driving: dict[int, asyncio.Task[None]] = {}
        self._turns: dict[int, Turn] = {}
        self._again: set[int] = set()
        self._stops: set[int] = set()
        self._poll: asyncio.Task[None] | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._stopping = False

    async def start(self) -> None:
        """Listen and look. The bell must be started by the caller."""
        bell = Bell.shared()
        self._unsubscribe = [
            bell.subscribe("wake", self._on_wake),
            bell.subscribe("stop", self._on_stop),
            bell.on_resync(self._look),
        ]
        self._poll = asyncio.create_task(self._look_again_and_again(), name="runner")

    async def stop(self) -> None:
        """Take nothing more; running turns end as interrupted, with all that was received kept."""
        self._stopping = True
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._poll is not None:
            self._poll.cancel()
            with suppress(asyncio.CancelledError):
                await self._poll
        for turn in list(self._turns.values()):
            turn.cancel(CancelReason.SHUTDOWN)
        if self._driving:
            await asyncio.wait(list(self._driving.values()), timeout=SHUTDOWN_SECONDS)

    @property
    def running(self) -> int:
        """How many turns this process runs."""
        return len(self._turns)

    def nudge(self, thread_id: int) -> None:
        """Look at one thread now."""
        if self._stopping:
            return
        if thread_id in self._driving:
            # It may be past its last look at what waits: look once more when it ends.
            self._again.add(thread_id)
            return
        task = asyncio.create_task(self._drive(thread_id), name=f"thread {thread_id}")
        self._driving[thread_id] = task

    async def _drive(self, thread_id: int) -> None:
        try:
            while not self._stopping:
                self._again.discard(thread_id)
                holding = await self._take(thread_id)
                if holding is not None:
                    self._turns[thread_id] = turn = Turn(holding)
                    try:
                        await self._run(turn)
                    finally:
                        self._turns.pop(thread_id, None)
                # A turn looks at all that waits before it ends: only a ring since then is news.
                if thread_id not in self._again:
                    return
        finally:
            self._driving.pop(thread_id, None)

    async def _run(self, turn: Turn) -> None:
        # A stop that was rung between the taking and this line found no turn to cancel, nor did the runner's own.
        running = asyncio.ensure_future(turn.run())
        if turn.holding.frame_id in self._stops or self._stopping:
            await asyncio.sleep(0)
            turn.cancel(CancelReason.SHUTDOWN if self._stopping else CancelReason.STOP)
        self._stops.discard(turn.holding.frame_id)
        try:
            await running
        except asyncio.CancelledError:
            if not running.done():
                turn.cancel(CancelReason.SHUTDOWN)
                await asyncio.wait([running])
            raise

    async def _take(self, thread_id: int) -> Holding | None:
        """Take it, where somebody may. What hinders the taking (a database that is away, a lock) often passes: it is
        tried a few times more before the thread waits for the next look."""
        for pause in (*TAKE_AGAIN_SECONDS, None):
            try:
                return await in_database(taking.take, thread_id, self.holder)
            except Exception:
                logger.exception("Could not take thread %s.", thread_id)
            if pause is not None and not self._stopping:
                await asyncio.sleep(pause)
            if self._stopping:
                break
        return None

    async def _on_wake(self, ring: dict[str, Any]) -> None:
        self.nudge(int(ring["thread"]))

    async def _on_stop(self, ring: dict[str, Any]) -> None:
        thread_id, frame_id = int(ring["thread"]), int(ring["frame"])
        turn = self._turns.get(thread_id)
        if turn is not None and turn.holding.frame_id == frame_id:
            turn.cancel(CancelReason.STOP)
        elif turn is None and thread_id in self._driving:
            self._stops.add(frame_id)

    async def _look_again_and_again(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(settings.POLL_SECONDS)

    async def _look(self) -> None:
        try:
            due = await in_database(_due)
        except Exception:
            logger.exception("Could not look for threads that are due.")
            return
        for thread_id in due:
            self.nudge(thread_id)


def _due() -> list[int]:
    lapsed = taking.lapsed_threads().values_list("pk", flat=True)
    ready = taking.ready_threads().values_list("pk", flat=True)
    return sorted({*lapsed, *ready})
