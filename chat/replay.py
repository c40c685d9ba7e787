"""What a client that has seen event N gets next: the events after it, or a snapshot when they are not kept
any more."""

from dataclasses import dataclass
from typing import Any

from accounts.models import User
from agent.models import TurnEvent
from agent.projection import message_views
from chat.presentation import present_event, present_messages
from chat.snapshot import PAGE_MESSAGES, earlier, last_event, later, snapshot
from threads.access import NoSuchThread, access_thread
from threads.models import Thread

BATCH_EVENTS = 200
# A client further behind than this is served faster by a snapshot.
REPLAYED_MAX_EVENTS = 2_000
# What these say is said by a snapshot, or by its refusal.
TOLD_BY_SNAPSHOT = {"anew", "gone"}


@dataclass(frozen=True)
class Next:
    """Exactly one of the two is set, or neither when there is nothing new. `last` is the number reached."""

    last: int
    events: list[dict[str, Any]] | None = None
    snapshot: dict[str, Any] | None = None


def open_thread(user: User, channel: str, after: int | None) -> tuple[int, Next]:
    """(thread id, what to send first). Raises NoSuchThread, alike for an unknown thread and another
    user's."""
    thread = access_thread(user, channel)
    return thread.pk, read_next(thread, after)


def continue_thread(user: User, channel: str, after: int) -> Next:
    """What came after event `after`. Raises NoSuchThread when the thread is gone."""
    return read_next(access_thread(user, channel), after)


def earlier_messages(user: User, channel: str, before: int) -> dict[str, Any]:
    """The page of messages before one of them, presented. Raises NoSuchThread."""
    page = earlier(access_thread(user, channel), before)
    return {**page, "messages": present_messages(page["messages"])}


def all_messages(user: User, channel: str, before: int | None) -> dict[str, Any]:
    """A page of messages as they were said, nothing folded: the newest, or those before one. Raises NoSuchThread."""
    views = message_views(access_thread(user, channel), before_id=before, limit=PAGE_MESSAGES + 1)
    return {"messages": present_messages(views[-PAGE_MESSAGES:]), "has_earlier": len(views) > PAGE_MESSAGES}


def later_messages(user: User, channel: str, since: int) -> dict[str, Any]:
    """The page of messages after one of them, presented. Raises NoSuchThread."""
    page = later(access_thread(user, channel), since)
    return {**page, "messages": present_messages(page["messages"])}


def read_next(thread: Thread, after: int | None) -> Next:
    """Events after `after`, without gaps and at most a batch, or a snapshot."""
    if after is None:
        return _fresh(thread)
    last = last_event(thread)
    if last == after:
        return Next(after)
    if last < after or last - after > REPLAYED_MAX_EVENTS:
        return _fresh(thread)
    rows = TurnEvent.objects.filter(thread=thread, owner_id=thread.owner_id, number__gt=after)
    events = [
        {"number": number, "kind": kind, "body": body}
        for number, kind, body in rows.order_by("number").values_list("number", "kind", "body")[:BATCH_EVENTS]
    ]
    if not events or events[0]["number"] != after + 1 or events[-1]["number"] != after + len(events):
        return _fresh(thread)
    if any(event["kind"] in TOLD_BY_SNAPSHOT for event in events):
        return _fresh(thread)
    return Next(events[-1]["number"], events=[present_event(event) for event in events])


def _fresh(thread: Thread) -> Next:
    try:
        state = snapshot(thread)
    except Thread.DoesNotExist:
        raise NoSuchThread from None
    return Next(state["event"], snapshot={**state, "messages": present_messages(state["messages"])})
