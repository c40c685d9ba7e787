"""What clients see while an answer grows: text and thinking gathered for 100 ms, then one insert and one ring."""

import asyncio
import uuid
from contextlib import suppress

from django.db import transaction

from agent.events import emit
from maxclaw.database_threads import in_database
from threads.transcript import lock_thread

BATCH_SECONDS = 0.1


class DeltaWriter:
    """Gathers one answer's deltas and stores them in order. A failed write (the lease is lost) is raised by `close`
    and by the next `add`."""

    def __init__(self, thread_id: int, owner_id: int, token: uuid.UUID) -> None:
        self._thread_id, self._owner_id, self._token = thread_id, owner_id, token
        self._message_id = 0
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._fresh = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, message_id: int, text: str = "", thinking: str = "") -> None:
        """Take a piece of the answer in."""
        if self._task is not None and self._task.done():
            self._task.result()
        self._message_id = message_id
        if text:
            self._text.append(text)
        if thinking:
            self._thinking.append(thinking)
        self._fresh.set()
        if self._task is None:
            self._task = asyncio.create_task(self._write_batches(), name="deltas")

    async def close(self) -> None:
        """Store what is still gathered and stop."""
        task, self._task = self._task, None
        if task is not None:
            if task.done():
                task.result()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._flush()

    async def _write_batches(self) -> None:
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            await self._flush()
            await asyncio.sleep(BATCH_SECONDS)

    async def _flush(self) -> None:
        if not self._text and not self._thinking:
            return
        text, thinking = "".join(self._text), "".join(self._thinking)
        self._text, self._thinking = [], []
        await in_database(self._store, text, thinking)

    def _store(self, text: str, thinking: str) -> None:
        with transaction.atomic():
            lock_thread(self._thread_id, self._token)
            body = {"message": self._message_id, "text": text, "thinking": thinking}
            emit(self._thread_id, self._owner_id, "delta", body)
