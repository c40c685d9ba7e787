"""Sending with the answer as server-sent events: `Accept: text/event-stream` on a send.

The events are those of the page's socket, read the same way: rings say that there may be something new, the table says
what. The stream ends with the turn that takes the words, or where it waits for the person.

| event | data |
|---|---|
| accepted | the item, as the send without a stream answers it |
| the kinds of `agent/events.py` | the event's body; `id` is its number |
| snapshot | the whole conversation, where single events would not say it |
| end | {"reason": "done", "waiting", "withdrawn", "closed", "signed-out" or "gone"} |
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.http import StreamingHttpResponse
from rest_framework.authtoken.models import Token
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from accounts.models import User
from agent.frames import open_frames
from agent.models import InboxItem, TaskFrame
from agent.projection import item_view
from chat import replay
from chat.layer import NotifyChannelLayer, thread_group
from chat.presentation import present_event
from chat.sessions import SignedOut, signed_in_user
from chat.snapshot import last_event, one_moment
from maxclaw.database_threads import in_database
from threads.access import NoSuchThread, access_thread
from threads.models import Thread

MEDIA_TYPE = "text/event-stream"
# A comment now and then, so that nothing on the way takes a silent answer for a dead one.
SIGN_OF_LIFE_SECONDS = 15.0
SIGN_OF_LIFE = ": still here\n\n"
# What may end the stream: the table is asked, whatever the ring told.
ASKS_THE_TABLE = {"state", "queued", "unqueued", "tool"} | replay.TOLD_BY_SNAPSHOT


class EventStream(BaseRenderer):
    """How a refusal looks to who asked for a stream: one event, with the refusal's status."""

    media_type = MEDIA_TYPE
    format = "event-stream"
    charset = None

    def render(self, data: Any, accepted_media_type: Any = None, renderer_context: Any = None) -> bytes:
        return _event("error", data).encode()


@dataclass(frozen=True)
class Part:
    """What is to be told now; `end` is the reason when that was all."""

    next: replay.Next
    end: str


def wants_stream(request: Request) -> bool:
    """Whether the client asked for server-sent events."""
    return MEDIA_TYPE in request.headers.get("Accept", "")


def before_sending(user: User, channel: str) -> int:
    """The number of the conversation's last event, from which a stream tells. Raises NoSuchThread."""
    return last_event(access_thread(user, channel))


def answer(request: Request, user: User, channel: str, item: InboxItem, after: int) -> StreamingHttpResponse:
    """The stream for words that were just sent."""
    stream = _stream(_still_signed_in(request, user), channel, item, after)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(stream, content_type=f"{MEDIA_TYPE}; charset=utf-8", headers=headers)


async def _stream(user: Callable[[], User], channel: str, item: InboxItem, after: int) -> AsyncIterator[str]:
    layer = get_channel_layer()
    assert isinstance(layer, NotifyChannelLayer)
    ear = await layer.new_channel()
    try:
        # Joined before the table is read, so that nothing falls between.
        await layer.group_add(thread_group(item.thread_id), ear)
        yield _event("accepted", await in_database(item_view, item))
        last, told = after, ""
        while True:
            if told:
                yield told
            else:
                try:
                    part = await in_database(_read, user, channel, item.pk, last)
                except (SignedOut, NoSuchThread) as over:
                    yield _event("end", {"reason": "signed-out" if isinstance(over, SignedOut) else "gone"})
                    return
                for text in _told(part.next):
                    yield text
                moved, last = part.next.last != last, part.next.last
                if moved:
                    continue
                if part.end:
                    yield _event("end", {"reason": part.end})
                    return
            try:
                ring = await asyncio.wait_for(layer.receive(ear), SIGN_OF_LIFE_SECONDS)
            except TimeoutError:
                yield SIGN_OF_LIFE
                ring = {}
            told = await _told_by_ring(ring, last)
            last += bool(told)
    finally:
        layer.forget(ear)


async def _told_by_ring(ring: dict[str, Any], last: int) -> str:
    """The next event, where the ring brought it whole; blank: ask the table."""
    if ring.get("number") != last + 1 or ring.get("body") is None or ring["kind"] in ASKS_THE_TABLE:
        return ""
    event = {name: ring[name] for name in ("number", "kind", "body")}
    return _numbered(await sync_to_async(present_event, thread_sensitive=False)(event))


def _read(user: Callable[[], User], channel: str, item_id: int, after: int) -> Part:
    """What came after event `after`, and whether that was all, at one moment. Raises SignedOut, NoSuchThread."""
    with one_moment():
        thread = access_thread(user(), channel)
        return Part(replay.read_next(thread, after), _ended(thread, item_id))


def _ended(thread: Thread, item_id: int) -> str:
    state = InboxItem.objects.filter(pk=item_id).values_list("state", flat=True).first()
    if state == InboxItem.State.WITHDRAWN:
        return "withdrawn"
    if thread.status != Thread.Status.ACTIVE:
        return "closed"
    frame = open_frames(thread).first()
    if thread.state == Thread.State.WAITING or (frame is not None and frame.state == TaskFrame.State.WAITING):
        return "waiting"
    return "done" if state != InboxItem.State.WAITING and frame is None else ""


def _still_signed_in(request: Request, user: User) -> Callable[[], User]:
    """Asks again who is behind the request: a session ends and a token is taken away while an answer grows. The
    function raises SignedOut."""
    token, session_key = request.auth, request.session.session_key

    def by_token() -> User:
        found = Token.objects.select_related("user").filter(pk=token.pk, user_id=user.pk, user__is_active=True).first()
        if found is None:
            raise SignedOut
        owner: User = found.user
        return owner

    return by_token if isinstance(token, Token) else lambda: signed_in_user(session_key, user.pk)


def _told(found: replay.Next) -> list[str]:
    if found.snapshot is not None:
        return [_event("snapshot", found.snapshot, number=found.last)]
    return [_numbered(event) for event in found.events or []]


def _numbered(event: dict[str, Any]) -> str:
    return _event(event["kind"], event["body"], number=event["number"])


def _event(kind: str, data: Any, number: int | None = None) -> str:
    identifier = "" if number is None else f"id: {number}\n"
    return f"{identifier}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False, default=str)}\n\n"
