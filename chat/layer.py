"""The channel layer: groups live in this process's memory, and the database's NOTIFY rings in every process.

What travels is a doorbell; truth is in tables. Whoever may have missed a ring (the listener lost its
connection, a consumer fell a thousand messages behind) is told `{"type": "resync"}` and reads on from the
last number it sent. The published PostgreSQL layer doubles messages on concurrent connects, loses large ones
and stays deaf after the listener's connection breaks; this one keeps nothing that could.
"""

import asyncio
import time
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer

from agent.bell import Bell, ring
from maxclaw.database_threads import in_database

CAPACITY = 1_000
RESYNC = {"type": "resync"}
CHANGE_THE_LIST = {"state", "anew", "gone"}


class MessageTooLarge(ValueError):
    """A group message does not fit a NOTIFY. Store a row and ring its number instead."""


def thread_group(thread_id: int) -> str:
    """The group of everyone who has the thread open."""
    return f"thread.{thread_id}"


def user_group(user_id: int) -> str:
    """The group of every socket of one user."""
    return f"user.{user_id}"


def ring_group(group: str, message: dict[str, Any]) -> None:
    """Send `message` to a group in every process, when the caller's transaction commits; a rollback sends
    nothing.

    Raises MessageTooLarge over 7,999 bytes of UTF-8 (a Chinese character is three), everything included.
    """
    try:
        ring("group", {"group": group, "message": message})
    except ValueError as error:
        raise MessageTooLarge(f"Store a row and ring its number instead. {error}") from error


class NotifyChannelLayer(InMemoryChannelLayer):
    """Group membership in memory; sending to a group goes through the database's NOTIFY, to this process
    too."""

    def __init__(self, capacity: int = CAPACITY, **options: Any) -> None:
        super().__init__(capacity=capacity, **options)
        self.channels: dict[str, asyncio.Queue[tuple[float, dict[str, Any]]]]
        self.groups: dict[str, dict[str, float]]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Hear the bell in the running event loop. Callers that come at once share one subscription."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Queues belong to the loop they were made in; nothing of an ended loop can be delivered.
            self._loop, self._listening = loop, None
            self.channels = {}
            self.groups = {}
        task = self._listening
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._listening = loop.create_task(self._subscribe())
        # Shielded: one cancelled consumer must not take the subscription from the others.
        await asyncio.shield(task)

    async def _subscribe(self) -> None:
        bell = Bell.shared()
        bell.subscribe("group", self._on_group)
        bell.subscribe("event", self._on_event)
        bell.subscribe("list", self._on_list)
        bell.on_resync(self._on_resync)
        await bell.start()

    async def new_channel(self, prefix: str = "specific.") -> str:
        await self.listen()
        name: str = await super().new_channel(prefix)
        return name

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send to the group in every process. Raises MessageTooLarge."""
        self.require_valid_group_name(group)
        await in_database(ring_group, group, message)

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        """Put a message on one channel of this process. A full queue is swapped for one resync."""
        try:
            await super().send(channel, message)
        except ChannelFull:
            queue = self.channels[channel]
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait((time.time() + self.expiry, dict(RESYNC)))

    def forget(self, channel: str) -> None:
        """Drop the channel's queue and memberships: its consumer is gone, in whatever way."""
        self.channels.pop(channel, None)
        for group, members in list(self.groups.items()):
            members.pop(channel, None)
            if not members:
                del self.groups[group]

    def _clean_expired(self) -> None:
        """Nothing expires: an old ring is still true, queues are bounded by capacity, and expiry would
        silently take a slow consumer, or one that is a day old, out of its groups."""

    async def _deliver(self, group: str, message: dict[str, Any]) -> None:
        for channel in list(self.groups.get(group, ())):
            await self.send(channel, message)

    async def _on_group(self, payload: dict[str, Any]) -> None:
        await self._deliver(payload["group"], payload["message"])

    async def _on_event(self, payload: dict[str, Any]) -> None:
        message = {name: value for name, value in payload.items() if name != "topic"}
        await self._deliver(thread_group(payload["thread"]), {"type": "thread.event", **message})
        if payload["kind"] in CHANGE_THE_LIST:
            # Title, state or time changed, or it went or came back: so did the list that every page shows.
            await self._deliver(user_group(payload["owner"]), {"type": "list.changed"})

    async def _on_list(self, payload: dict[str, Any]) -> None:
        await self._deliver(user_group(payload["owner"]), {"type": "list.changed"})

    async def _on_resync(self) -> None:
        for channel in {channel for members in self.groups.values() for channel in members}:
            await self.send(channel, RESYNC)
