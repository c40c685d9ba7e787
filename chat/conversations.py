"""A user's list of conversations, and what page and API alike do to it. Every change rings the owner's other
tabs."""

from typing import Any

from django.db import transaction
from django.db.models import F, Q

from accounts.models import User
from agent import conversations as whole
from agent import revising, speaking
from agent.bell import ring
from agent.events import emit
from agent.frames import turn_view
from agent.projection import thread_view
from chat.words import page_words
from threads import lifecycle
from threads.access import NoSuchThread, access_thread, visible_to
from threads.models import Thread
from threads.transcript import lock_thread

PAGE_THREADS = 60
SEARCH_MAX_CHARS = 200
DELETED = "deleted"  # beside the statuses of a thread: what is in sight no more


def conversations(
    user: User,
    *,
    search: str = "",
    before: str | None = None,
    status: str = Thread.Status.ACTIVE,
    limit: int = PAGE_THREADS,
) -> dict[str, Any]:
    """{"threads": [ThreadView], the main one and then `limit` others, newest first, "has_more": bool}.

    `search` is looked for in titles, without regard to case; `before` is the channel of the last row of the
    page before. An unknown `before` raises NoSuchThread. The main conversation stands on the first page however old
    it is: it is where a person is sure to find the agent. `status` DELETED lists what can still be brought back, each
    with the moment from which on it is "erased"; a task that went with its conversation comes back with it.
    """
    if status == DELETED:
        known = whole.deleted_threads(user)
        rows = known.exclude(parent__deleted=F("deleted"))
    else:
        known = visible_to(user)
        rows = known.filter(status=status)
    if search.strip():
        rows = rows.filter(_called(search.strip()[:SEARCH_MAX_CHARS].replace("\x00", "")))
    main = list(rows.filter(kind=Thread.Kind.MAIN)) if before is None else []
    rows = rows.exclude(kind=Thread.Kind.MAIN)
    last = known.filter(channel=before).first() if before is not None else None
    if before is not None and last is None:
        raise NoSuchThread
    if last is not None and last.kind != Thread.Kind.MAIN:
        rows = rows.filter(Q(updated__lt=last.updated) | Q(updated=last.updated, id__lt=last.pk))
    found = list(rows.order_by("-updated", "-id")[: limit + 1])
    return {"threads": [_row_view(thread) for thread in [*main, *found[:limit]]], "has_more": len(found) > limit}


def _row_view(thread: Thread) -> dict[str, Any]:
    erased = {} if thread.deleted is None else {"erased": (thread.deleted + whole.DELETED_KEPT).isoformat()}
    return {**thread_view(thread), **erased}


def _called(words: str) -> Q:
    """Conversations that have these words in the name they are shown by: those without a title have one too."""
    shown = page_words()
    found = Q(title__icontains=words)
    if words.casefold() in str(shown["main"]).casefold():
        found |= Q(kind=Thread.Kind.MAIN)
    if words.casefold() in str(shown["untitled"]).casefold():
        found |= Q(title="") & ~Q(kind=Thread.Kind.MAIN)
    return found


def existing(user: User, thread_ids: list[int]) -> set[int]:
    """Which of these are still conversations of the user's."""
    return set(visible_to(user).filter(pk__in=thread_ids).values_list("pk", flat=True)) if thread_ids else set()


@transaction.atomic
def create_conversation(
    user: User, *, title: str = "", scope: str = Thread.Scope.OPEN, category: str = "", model: str = ""
) -> Thread:
    """A new, empty conversation of the user's, at this level, answered by this model (blank: the server's choice).
    Raises LifecycleRefused, and Refused for a model that is not offered."""
    thread = lifecycle.create_thread(user, title=title, scope=scope, category=category)
    if model:
        thread = whole.choose_model(user, thread.channel, model)
    ring("list", {"owner": user.pk})
    return thread


@transaction.atomic
def narrow_conversation(user: User, channel: str, *, scope: str | None, category: str | None) -> Thread:
    """Make the user's conversation stricter, its tasks and branches with it. Raises NoSuchThread and
    LifecycleRefused."""
    thread = access_thread(user, channel)
    lifecycle.narrow(thread, acting_user=user, scope=scope, category=category)
    for thread_id in sorted([thread.pk, *lifecycle.descendants(thread)]):
        _changed(user, thread_id)
    return Thread.objects.get(pk=thread.pk)


@transaction.atomic
def fork_conversation(user: User, channel: str, message_id: int) -> Thread:
    """A new conversation that begins with another one's, up to a message. Raises Refused."""
    thread = revising.fork(user, channel, message_id)
    ring("list", {"owner": user.pk})
    return thread


@transaction.atomic
def rename_conversation(user: User, channel: str, title: str) -> Thread:
    """Give the user's conversation another title. Raises NoSuchThread and LifecycleRefused."""
    thread = access_thread(user, channel)
    lifecycle.rename(thread, title, acting_user=user)
    return _changed(user, thread.pk)


@transaction.atomic
def archive_conversation(user: User, channel: str) -> Thread:
    """Put the user's conversation away; it stays readable. Raises NoSuchThread and LifecycleRefused."""
    thread = access_thread(user, channel)
    lifecycle.archive(thread, acting_user=user)
    return _changed(user, thread.pk)


@transaction.atomic
def unarchive_conversation(user: User, channel: str) -> Thread:
    """Take the user's conversation back; what waited in it goes on. Raises NoSuchThread and LifecycleRefused."""
    thread = access_thread(user, channel)
    lifecycle.unarchive(thread, acting_user=user)
    speaking.wake(thread)
    return _changed(user, thread.pk)


def _changed(user: User, thread_id: int) -> Thread:
    """Tell whoever has it open, and the lists; the row lock keeps the event's number without a gap."""
    thread = lock_thread(thread_id)
    emit(thread.pk, thread.owner_id, "state", {"thread": thread_view(thread), "turn": turn_view(thread)})
    ring("list", {"owner": user.pk})
    return thread
