"""The socket of one page: frames in, snapshots and events out, in order, without gaps, nothing twice.

Bells say only that there may be something new. For each open conversation the consumer remembers the number
of the last event it sent: a bell with the next one and its body is passed on, anything else is read from the
table.
"""

import asyncio
import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from channels.consumer import AsyncConsumer, get_handler_name
from channels.exceptions import StopConsumer
from django.utils import translation
from django.utils.translation import gettext as _

from agent.refusals import Refused
from chat import replay
from chat.actions import ACTIONS
from chat.conversations import conversations, existing
from chat.frames import BadFrame, Frame, parse, said
from chat.layer import thread_group, user_group
from chat.presentation import needs_rendering, present_event
from chat.sessions import SignedOut, as_signed_in, signed_in_user
from maxclaw.database_threads import in_database
from threads.access import NoSuchThread

logger = logging.getLogger("maxclaw.chat")

SEND_TIMEOUT_SECONDS = 20.0  # a client that does not read holds its task no longer than this
SESSION_CHECK_SECONDS = 30.0
SIGN_OUT_DELAY_SECONDS = 0.5
LIST_DELAY_SECONDS = 0.3  # a turn changes the list several times in a moment; one reading serves all
OPEN_MAX_CHANNELS = 16
TRY_AGAIN_LATER = 1013
NO_SUCH_THREAD = "no-such-thread"


@dataclass
class OpenThread:
    """One conversation that the page shows, and how far it has been told."""

    channel: str
    thread_id: int
    last: int


class ChatConsumer(AsyncConsumer):
    """One page. Frames are handled one after the other, and so are bells: nothing here needs a lock."""

    def __init__(self) -> None:
        self.opened: dict[int, OpenThread] = {}
        self.user_id: int | None = None
        self.session_key: str | None = None
        self.language: str | None = None
        self.signed_out = False
        self._timers: set[asyncio.Task[None]] = set()
        self._list_due = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # However it ended, cancelled too: no timer, queue or membership stays behind.
            for timer in self._timers:
                timer.cancel()
            self.channel_layer.forget(self.channel_name)

    # The connection

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Hand the message to its method. No database connection is held between messages, so none is to be
        closed."""
        await getattr(self, get_handler_name(message))(message)

    async def websocket_connect(self, _message: dict[str, Any]) -> None:
        user, session = self.scope["user"], self.scope["session"]
        self.user_id, self.session_key = user.pk, session.session_key
        # Refused handshakes look like a dead server to a browser: accept, and say what is wrong.
        await self._send_message({"type": "websocket.accept"})
        if not user.is_authenticated:
            await self._say_signed_out()
            return
        self.language = user.language
        await self.channel_layer.group_add(user_group(user.pk), self.channel_name)
        self._start_timer(self._watch_session())
        await self.list_due({})

    async def websocket_disconnect(self, _message: dict[str, Any]) -> None:
        raise StopConsumer

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        text = message.get("text")
        with translation.override(self.language):
            try:
                frame = parse(text, message.get("bytes"))
            except BadFrame as bad:
                await self._send_frame({"type": "error", "code": bad.code, "reason": bad.sentence, **said(text)})
                return
            await self._handle(frame)

    async def _handle(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "ping":
            await self._send_frame({"type": "pong"})
        elif kind == "close":
            await self._close_channel(frame["channel"])
        else:
            try:
                await self._act(kind, frame)
            except SignedOut:
                await self._refuse(frame, "signed-out", _("You are signed out. Sign in again to go on."))
                await self._say_signed_out()
            except NoSuchThread:
                await self._say_gone(frame)
            except Refused as refused:
                if refused.code == NO_SUCH_THREAD:
                    await self._say_gone(frame)
                else:
                    await self._refuse(frame, refused.code, refused.sentence)
            except StopConsumer:
                raise
            except Exception:
                # The words go back to the page, which keeps its socket; what went wrong is ours to read.
                logger.exception("A frame of type %s failed.", kind)
                await self._refuse(frame, "failed", _("The server could not do this just now. Try again in a moment."))

    async def _act(self, kind: str, frame: Frame) -> None:
        if self.signed_out:
            raise SignedOut
        if kind == "open":
            await self._open(frame)
            return
        outcome = await self._in_session(ACTIONS[kind], frame)
        if kind in ("earlier", "later"):
            # The answer names what was asked for: the page may have moved on.
            await self._send_frame({**frame, **outcome})
        elif kind == "send":
            # The item's event goes first, so that the page can swap the words it shows as on their way for
            # it.
            await self._catch_up_channel(frame["channel"])
            await self._send_frame({"type": "sent", "channel": frame["channel"], "key": frame["key"]})

    # Conversations

    async def _open(self, frame: Frame) -> None:
        if len(self.opened) >= OPEN_MAX_CHANNELS and self._find(frame["channel"]) is None:
            raise Refused(
                "too-many-open",
                _("At most %(limit)s conversations can be open at once in one page.") % {"limit": OPEN_MAX_CHANNELS},
            )
        thread_id, first = await self._in_session(ACTIONS["open"], frame)
        # Reading came before joining, so that nobody joins what is not theirs; what fell between is read
        # after.
        await self.channel_layer.group_add(thread_group(thread_id), self.channel_name)
        open_thread = self.opened[thread_id] = OpenThread(frame["channel"], thread_id, first.last)
        if first.events is None and first.snapshot is None:
            # An empty answer still tells the page that it is up to date.
            first = replay.Next(first.last, events=[])
        await self._send_next(open_thread, first)
        await self._catch_up(open_thread)

    async def _close_channel(self, channel: str) -> None:
        open_thread = self._find(channel)
        if open_thread is not None:
            del self.opened[open_thread.thread_id]
            await self.channel_layer.group_discard(thread_group(open_thread.thread_id), self.channel_name)

    def _find(self, channel: str) -> OpenThread | None:
        return next((row for row in self.opened.values() if row.channel == channel), None)

    async def _catch_up_channel(self, channel: str) -> None:
        open_thread = self._find(channel)
        if open_thread is not None:
            await self._catch_up(open_thread)

    async def _catch_up(self, open_thread: OpenThread) -> None:
        """Send everything after the last event sent."""
        while self.opened.get(open_thread.thread_id) is open_thread:
            found = await self._in_session(replay.continue_thread, open_thread.channel, open_thread.last)
            if found.events is None and found.snapshot is None:
                return
            await self._send_next(open_thread, found)

    async def _send_next(self, open_thread: OpenThread, found: replay.Next) -> None:
        open_thread.last = found.last
        if found.snapshot is not None:
            await self._send_frame({"type": "snapshot", "channel": open_thread.channel, "snapshot": found.snapshot})
        else:
            await self._send_frame({"type": "events", "channel": open_thread.channel, "events": found.events})

    # What the layer brings

    async def thread_event(self, message: dict[str, Any]) -> None:
        """One event of an open conversation, perhaps without its body."""
        open_thread = self.opened.get(message["thread"])
        if open_thread is None or message["number"] <= open_thread.last:
            return
        told = message.get("body") is not None and message["kind"] not in replay.TOLD_BY_SNAPSHOT
        if told and message["number"] == open_thread.last + 1:
            event = {name: message[name] for name in ("number", "kind", "body")}
            if needs_rendering(event):
                event = await sync_to_async(present_event, thread_sensitive=False)(event)
            await self._send_next(open_thread, replay.Next(event["number"], events=[event]))
        else:
            await self._catch_up_or_leave(open_thread)

    async def thread_gone(self, message: dict[str, Any]) -> None:
        """A conversation was deleted."""
        open_thread = self.opened.get(message["thread"])
        if open_thread is not None:
            await self._catch_up_or_leave(open_thread)

    async def list_changed(self, _message: dict[str, Any]) -> None:
        """Something in the list of conversations changed: read it once, in a moment."""
        if not self._list_due:
            self._list_due = True
            self._start_timer(self._remind("list.due", LIST_DELAY_SECONDS))

    async def list_due(self, _message: dict[str, Any]) -> None:
        """Send the list, and find out whether an open conversation was deleted."""
        self._list_due = False
        try:
            page = await self._in_session(conversations)
            there = await self._in_session(existing, list(self.opened))
        except SignedOut:
            await self._say_signed_out()
            return
        await self._send_frame({"type": "threads", **page})
        for open_thread in list(self.opened.values()):
            if open_thread.thread_id not in there:
                await self._catch_up_or_leave(open_thread)

    async def login_ended(self, _message: dict[str, Any]) -> None:
        """The user signs out somewhere. Django says so just before the session goes."""
        self._start_timer(self._remind("session.check", SIGN_OUT_DELAY_SECONDS))

    async def session_check(self, _message: dict[str, Any]) -> None:
        """Whether the login still holds."""
        try:
            await in_database(signed_in_user, self.session_key, self.user_id)
        except SignedOut:
            await self._say_signed_out()

    async def resync(self, _message: dict[str, Any]) -> None:
        """Bells may have been missed: read on from what was sent."""
        for open_thread in list(self.opened.values()):
            await self._catch_up_or_leave(open_thread)
        if not self.signed_out:
            await self.list_due({})

    async def _catch_up_or_leave(self, open_thread: OpenThread) -> None:
        try:
            await self._catch_up(open_thread)
        except SignedOut:
            await self._say_signed_out()
        except NoSuchThread:
            with translation.override(self.language):
                await self._say_gone({"type": "open", "channel": open_thread.channel})

    # Timers

    def _start_timer(self, waiting: Any) -> None:
        timer = asyncio.create_task(waiting)
        self._timers.add(timer)
        timer.add_done_callback(self._timers.discard)

    async def _remind(self, kind: str, seconds: float) -> None:
        # Through the layer, so that it is handled in turn with everything else.
        await asyncio.sleep(seconds)
        await self.channel_layer.send(self.channel_name, {"type": kind})

    async def _watch_session(self) -> None:
        while True:
            await self._remind("session.check", SESSION_CHECK_SECONDS)

    # Answers

    async def _in_session(self, action: Any, *args: Any) -> Any:
        return await in_database(as_signed_in, self.session_key, self.user_id, action, *args)

    async def _refuse(self, frame: Frame, code: str, reason: str) -> None:
        answer: dict[str, Any] = {"type": "error", "code": code, "reason": reason}
        if frame.get("channel"):
            answer["channel"] = frame["channel"]
        if frame.get("type") == "send":
            answer |= {"type": "chat_rejected", "key": frame["key"]}
        elif frame.get("type"):
            answer["about"] = frame["type"]
        await self._send_frame(answer)

    async def _say_gone(self, frame: Frame) -> None:
        """A conversation that the page had open is gone; one that it never had is unknown, whoever owns
        it."""
        reason = _("There is no such conversation. It may have been deleted.")
        opened = self._find(frame["channel"])
        if frame["type"] == "send" or opened is None:
            await self._refuse(frame, NO_SUCH_THREAD, reason)
        if opened is not None:
            await self._close_channel(opened.channel)
            await self._send_frame({"type": "gone", "channel": opened.channel, "reason": reason})

    async def _say_signed_out(self) -> None:
        """Once, and from then on nothing of the user's is sent; the socket stays, and answers."""
        if self.signed_out:
            return
        self.signed_out = True
        for open_thread in list(self.opened.values()):
            await self._close_channel(open_thread.channel)
        if self.user_id is not None:
            await self.channel_layer.group_discard(user_group(self.user_id), self.channel_name)
        with translation.override(self.language):
            reason = _("You are signed out. Sign in again to go on.")
        await self._send_frame({"type": "signed_out", "reason": reason})

    async def _send_frame(self, frame: dict[str, Any]) -> None:
        await self._send_message({"type": "websocket.send", "text": json.dumps(frame, ensure_ascii=False)})

    async def _send_message(self, message: dict[str, Any]) -> None:
        try:
            await asyncio.wait_for(self.base_send(message), SEND_TIMEOUT_SECONDS)
        except TimeoutError:
            with suppress(Exception):
                await asyncio.wait_for(
                    self.base_send({"type": "websocket.close", "code": TRY_AGAIN_LATER}), SEND_TIMEOUT_SECONDS
                )
            raise StopConsumer from None
        except OSError:
            raise StopConsumer from None  # the page is gone in the middle of it; nobody is left to be told
