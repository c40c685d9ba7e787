"""A small world for tests of turns: the real runner and bell in this process, the real SDK over HTTP, the emulator."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from django.db import connection

from accounts.models import User
from agent import questions, sending, stopping
from agent.bell import Bell
from agent.models import InboxItem, TaskFrame, ToolCall
from agent.runner import Runner
from llm.emulator.client import EmulatorControl
from maxclaw import clock
from maxclaw.database_threads import in_database
from threads.lifecycle import create_thread
from threads.models import Message, Thread

WAIT_SECONDS = 60.0
_keys = itertools.count(1)


class World:
    """One process's worth of MaxClaw."""

    def __init__(self, emulator: EmulatorControl, runner: Runner) -> None:
        self.emulator = emulator
        self.runner = runner

    async def new_thread(self, owner: User, **fields: Any) -> Thread:
        return await in_database(lambda: create_thread(owner, **fields))

    async def say(self, thread: Thread, text: str, key: str | None = None) -> InboxItem:
        """Send the owner's words."""
        return await in_database(
            lambda: sending.send(thread.owner, thread.channel, text, client_key=key or f"key-{next(_keys)}")
        )

    async def ask(self, thread: Thread, text: str) -> list[Message]:
        """Send words and wait until the thread rests; returns its rows."""
        await self.say(thread, text)
        await self.rest(thread)
        return await self.rows(thread)

    async def answer(self, thread: Thread, call: ToolCall, text: str) -> None:
        await in_database(lambda: questions.answer_question(thread.owner, thread.channel, call.pk, text))

    async def stop(self, thread: Thread, frame: TaskFrame) -> None:
        await in_database(lambda: stopping.stop(thread.owner, thread.channel, frame.pk))

    async def rest(self, thread: Thread) -> Thread:
        """Wait until nothing runs or waits on the thread (an open question card counts as rest)."""

        def rests() -> Thread | None:
            # The thread last: what waited before may have been taken meanwhile.
            waiting = InboxItem.objects.filter(thread=thread, state="waiting", level__gte=2).exists()
            suspended = TaskFrame.objects.filter(thread=thread, state="suspended").exists()
            fresh = Thread.objects.select_related("owner").get(pk=thread.pk)
            busy = fresh.state == Thread.State.RUNNING or (fresh.state == Thread.State.IDLE and (waiting or suspended))
            return None if busy else fresh

        return await self.until(rests)

    async def until(self, look: Callable[[], Any]) -> Any:
        """Wait until `look` (a unit of database work) returns something true; returns it."""
        deadline = clock.monotonic() + WAIT_SECONDS
        while True:
            found = await in_database(look)
            if found:
                return found
            if clock.monotonic() > deadline:
                raise TimeoutError("It did not happen.")
            await asyncio.sleep(0.02)

    async def running_frame(self, thread: Thread) -> TaskFrame:
        return await self.until(lambda: TaskFrame.objects.filter(thread=thread, state="running").first())

    async def rows(self, thread: Thread) -> list[Message]:
        return await in_database(lambda: list(Message.objects.filter(thread=thread).order_by("id")))

    async def held(self, count: int = 1) -> None:
        """Wait until the emulator holds answers."""
        await asyncio.to_thread(self.emulator.wait_for_held, count)


@asynccontextmanager
async def running_world(emulator: EmulatorControl) -> AsyncIterator[World]:
    """Bell and runner, started and stopped as the server does."""
    bell = Bell.shared()
    await bell.start()
    runner = Runner()
    await runner.start()
    try:
        yield World(emulator, runner)
    finally:
        await runner.stop()
        await bell.stop()


def database_url() -> str:
    """The URL of the test database, for other processes."""
    database = connection.settings_dict
    credentials = f"{database['USER']}:{database['PASSWORD']}@" if database["PASSWORD"] else f"{database['USER']}@"
    host = database["HOST"]
    if host.startswith("/"):
        return f"postgresql://{credentials}/{database['NAME']}?host={host}"
    return f"postgresql://{credentials}{host}:{database['PORT'] or 5432}/{database['NAME']}"
