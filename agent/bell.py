"""The bell between processes: PostgreSQL's NOTIFY, one LISTEN connection in each process that listens.

A ring only says where to look; the truth is in the tables. A ring joins its writer's transaction: it sounds at
commit and never without it. Whoever may have missed one (the connection broke) is told to resync.
"""

import asyncio
import json
import logging
import weakref
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

logger = logging.getLogger("maxclaw.bell")

PG_CHANNEL = "maxclaw"
# A network that goes silently is noticed within a minute: an ear only ever listens.
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
PAYLOAD_MAX_BYTES = 7_999  # PostgreSQL refuses 8,000
RECONNECT_FIRST_SECONDS = 0.1
RECONNECT_MAX_SECONDS = 5.0

Handler = Callable[[dict[str, Any]], Awaitable[None]]
ResyncHandler = Callable[[], Awaitable[None]]


def ring(topic: str, payload: dict[str, Any]) -> None:
    """Ring when the caller's transaction commits. Raises ValueError when the payload is over 7,999 bytes of UTF-8."""
    text = json.dumps({"topic": topic, **payload}, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > PAYLOAD_MAX_BYTES:
        raise ValueError(f"A ring carries at most {PAYLOAD_MAX_BYTES} bytes; this one has {len(text.encode())}.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [PG_CHANNEL, text])


def listen_dsn() -> str:
    """Connection string for LISTEN: direct, when a pooler that cannot keep a session stands before the database."""
    if settings.DATABASE_LISTEN_URL:
        return psycopg.conninfo.make_conninfo(settings.DATABASE_LISTEN_URL, **KEEPALIVE)
    database = connection.settings_dict
    parts = {
        "dbname": database["NAME"],
        "user": database["USER"],
        "password": database["PASSWORD"],
        "host": database["HOST"],
        "port": database["PORT"],
    }
    return psycopg.conninfo.make_conninfo(**{key: value for key, value in parts.items() if value}, **KEEPALIVE)


class Bell:
    """One process's ear. Handlers of a topic run one after the other, in the order of the rings."""

    _by_loop: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Bell]" = weakref.WeakKeyDictionary()

    def __init__(self) -> None:
        self._handlers: dict[str, list[Handler]] = defaultdict(list)
        self._resync_handlers: list[ResyncHandler] = []
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    @classmethod
    def shared(cls) -> "Bell":
        """The running event loop's bell, made at first asking."""
        loop = asyncio.get_running_loop()
        if loop not in cls._by_loop:
            cls._by_loop[loop] = cls()
        return cls._by_loop[loop]

    def subscribe(self, topic: str, handler: Handler) -> Callable[[], None]:
        """Call `handler` with each ring of the topic; returns what ends the subscription."""
        self._handlers[topic].append(handler)
        return lambda: self._handlers[topic].remove(handler)

    def on_resync(self, handler: ResyncHandler) -> Callable[[], None]:
        """Call `handler` whenever rings may have been missed; returns what ends the subscription."""
        self._resync_handlers.append(handler)
        return lambda: self._resync_handlers.remove(handler)

    @property
    def listening(self) -> bool:
        return self._listening.is_set()

    async def start(self) -> None:
        """Listen; returns once the first connection does. Starting twice is starting once."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen(), name="bell")
        await self._listening.wait()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._listening.clear()

    async def _listen(self) -> None:
        pause = RECONNECT_FIRST_SECONDS
        heard_before = False
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(listen_dsn(), autocommit=True) as ear:
                    await ear.execute(sql.SQL("LISTEN {}").format(sql.Identifier(PG_CHANNEL)))
                    self._listening.set()
                    pause = RECONNECT_FIRST_SECONDS
                    if heard_before:
                        await self._resync()
                    heard_before = True
                    async for notification in ear.notifies():
                        await self._dispatch(notification.payload)
            except (psycopg.Error, OSError) as error:
                logger.warning("The bell lost its connection (%s); listening again.", type(error).__name__)
            self._listening.clear()
            await asyncio.sleep(pause)
            pause = min(pause * 2, RECONNECT_MAX_SECONDS)

    async def _resync(self) -> None:
        for handler in list(self._resync_handlers):
            try:
                await handler()
            except Exception:
                logger.exception("A resync handler failed.")

    async def _dispatch(self, payload: str) -> None:
        try:
            ring_heard = json.loads(payload)
            topic = ring_heard.pop("topic")
        except (ValueError, KeyError, AttributeError):
            logger.warning("A ring that is not ours was ignored.")
            return
        for handler in list(self._handlers.get(topic, ())):
            try:
                await handler(ring_heard)
            except Exception:
                logger.exception("A handler of the topic %s failed.", topic)
