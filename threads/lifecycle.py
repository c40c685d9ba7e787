"""How a conversation begins, is named, put away, ended, and made stricter."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _

from accounts import erasing
from accounts.models import User
from llm import catalog
from maxclaw import clock
from maxclaw.text import head, visible
from threads.access import NoSuchThread
from threads.models import Generation, Message, Thread
from threads.signals import SettledReason, thread_settled
from threads.transcript import ThreadGone, lock_thread, mark_locked

TITLE_MAX_CHARS = 200
TITLE_FROM_TEXT_MAX_CHARS = 60


class LifecycleRefused(Exception):
    """What was asked for cannot be. The text is a sentence for the person who asked."""


def create_thread(
    owner: User,
    *,
    title: str = "",
    kind: str = Thread.Kind.WEB,
    parent: Thread | None = None,
    scope: str = Thread.Scope.OPEN,
    category: str = "",
    copied_from: Message | None = None,
    model: str = "",
    created: datetime | None = None,
    updated: datetime | None = None,
) -> Thread:
    """Make a thread with its first generation; `created` and `updated` are of one that was held elsewhere.

    A task (`parent`) and a branch (`copied_from`) have at least the level of the thread that they come from:
    they live on its island and carry its category, and may only be stricter. An isolated thread without such
    an origin is the root of an island of its own. Inside a transaction the new thread counts as locked.
    Raises LifecycleRefused.
    """
    if kind not in (Thread.Kind.WEB, Thread.Kind.TASK):
        raise LifecycleRefused(_("Every account has one main conversation, made with it."))
    source = None if copied_from is None else copied_from.thread
    origins = [thread for thread in (parent, source) if thread is not None]
    if any(origin.owner_id != owner.pk for origin in origins):
        raise NoSuchThread
    island_id: int | None = None
    for origin in origins:
        scope, island_id = _stricter_scope(origin, scope, island_id)
        category = _stricter_category(origin.category, category)
    check_category(category)
    with transaction.atomic(savepoint=False):  # nothing is refused from here on
        thread = Thread(
            owner=owner,
            title=clean_title(title),
            kind=kind,
            parent=parent,
            scope=scope,
            category=category,
            copied_from=copied_from,
            island_id=island_id,
            model=model,
            created=created or clock.now(),
            updated=updated or created or clock.now(),
        )
        if scope == Thread.Scope.ISOLATED and island_id is None:
            # An island's root names itself, so it needs its id before it is inserted.
            thread.pk = thread.island_id = _next_thread_id()
        thread.save(force_insert=True)
        thread.begun_with = Generation.objects.create(thread=thread, owner=owner, ordinal=1, started=thread.created)
        mark_locked(thread)
    return thread


def rename(thread: Thread, title: str, *, acting_user: User) -> Thread:
    """Give the thread a title. Raises LifecycleRefused for a blank one."""
    check_owner(thread, acting_user)
    title = clean_title(title)
    if not any(sign.isprintable() and not sign.isspace() for sign in title):
        raise LifecycleRefused(_("A title needs at least one visible character."))
    thread.title = title
    thread.save(update_fields=["title"])
    return thread


def archive(thread: Thread, *, acting_user: User) -> Thread:
    """Put a conversation away. It stays readable, and comes back with `unarchive`."""
    check_owner(thread, acting_user)
    if thread.kind == Thread.Kind.MAIN:
        raise LifecycleRefused(_("The main conversation cannot be archived."))
    if _change_status(thread, Thread.Status.ACTIVE, Thread.Status.ARCHIVED):
        settle(thread, SettledReason.THREAD_ARCHIVED)
    return thread


def unarchive(thread: Thread, *, acting_user: User) -> Thread:
    """Bring an archived conversation back."""
    check_owner(thread, acting_user)
    _change_status(thread, Thread.Status.ARCHIVED, Thread.Status.ACTIVE)
    return thread


def end(thread: Thread, *, reason: SettledReason = SettledReason.THREAD_ENDED) -> Thread:
    """End a thread for good: nothing can be appended any more. A task ends so when its result is
    delivered."""
    if thread.kind == Thread.Kind.MAIN:
        raise LifecycleRefused(_("The main conversation cannot be ended."))
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        thread.status = Thread.Status.ENDED
        if locked.status != Thread.Status.ENDED:
            Thread.objects.filter(pk=thread.pk).update(status=Thread.Status.ENDED)
            Generation.objects.filter(thread=thread, ended__isnull=True).update(
                ended=clock.now(), end_reason=Generation.EndReason.CLOSED
            )
            settle(thread, reason)
    return thread


def erase(thread: Thread, *, acting_user: User) -> None:
    """Erase a conversation of the acting user's for good, its tasks too. Raises LifecycleRefused for the main one."""
    check_owner(thread, acting_user)
    erasing.erase_thread(thread)


def narrow(thread: Thread, *, acting_user: User, scope: str | None = None, category: str | None = None) -> Thread:
    """Make a thread stricter: isolated, or of a category, or both, in one transaction.

    Its tasks and branches come along, at any depth: open ones onto its island, those without a category into
    it; one that is stricter by itself stays as it is. Every app that keeps something beside the thread
    adjusts it (`narrow_thread` in its erasure.py). What was sent elsewhere before stays where it is. Raises
    LifecycleRefused.
    """
    check_owner(thread, acting_user)
    if thread.kind == Thread.Kind.MAIN:
        raise LifecycleRefused(_("The main conversation is open: notices of every conversation reach you there."))
    check_category(category or "")
    with transaction.atomic():
        family = _locked_family(thread)
        root = next(member for member in family if member.pk == thread.pk)
        if scope == Thread.Scope.OPEN and root.scope == Thread.Scope.ISOLATED:
            raise LifecycleRefused(_("An isolated conversation cannot be opened again."))
        if category is not None and root.category not in ("", category):
            raise LifecycleRefused(
                _("This conversation already belongs to the category “%(category)s”.") % {"category": root.category}
            )
        isolate = scope == Thread.Scope.ISOLATED and root.scope == Thread.Scope.OPEN
        for member in family:
            changed = False
            if isolate and member.scope == Thread.Scope.OPEN:
                member.scope, member.island_id, changed = Thread.Scope.ISOLATED, root.pk, True
            if category and not member.category:
                member.category, changed = category, True
            if changed:
                member.save(update_fields=["scope", "island", "category"])
                erasing.narrow_thread(member)
    thread.scope, thread.island_id, thread.category = root.scope, root.island_id, root.category
    return thread


def _locked_family(thread: Thread) -> list[Thread]:
    """The thread with its tasks and branches, each under its row lock, taken in the order of their ids, as everything
    takes them that locks several. Whoever starts another holds the lock of the one it comes from, so when none was
    added while they were taken none is. When one was, they are let go and taken anew: it may come before others."""
    while True:
        wanted = {thread.pk, *descendants(thread)}
        with transaction.atomic():
            family = [member for thread_id in sorted(wanted) if (member := _locked_or_gone(thread_id))]
            there = {member.pk for member in family}
            if thread.pk not in there:
                raise NoSuchThread
            if {thread.pk, *descendants(thread)} == there:
                return family
            transaction.set_rollback(True)


def _locked_or_gone(thread_id: int) -> Thread | None:
    try:
        return lock_thread(thread_id)
    except ThreadGone:
        return None


def descendants(thread: Thread) -> list[int]:
    """Ids of the thread's tasks and branches, theirs included, at any depth."""
    found: list[int] = []
    waiting = [thread.pk]
    while waiting:
        below = Thread.objects.filter(parent_id__in=waiting).union(
            Thread.objects.filter(copied_from__thread_id__in=waiting)
        )
        known = {thread.pk, *found}
        waiting = [pk for pk in sorted({row.pk for row in below}) if pk not in known]
        found += waiting
    return found


def check_owner(thread: Thread, acting_user: User) -> None:
    """Raise NoSuchThread unless the thread is the acting user's own."""
    if thread.owner_id != acting_user.pk:
        raise NoSuchThread


def check_category(category: str) -> None:
    """Raise LifecycleRefused for a category that no catalog lists."""
    if category and category not in catalog.categories():
        raise LifecycleRefused(
            _("There is no category “%(category)s”. Categories are listed in the model catalog.")
            % {"category": head(visible(category), 40)}
        )


def clean_title(title: str) -> str:
    """A title in one line, at most TITLE_MAX_CHARS characters."""
    return head(" ".join(visible(title).split()), TITLE_MAX_CHARS)


def title_from(text: str) -> str:
    """A title from the first words of a text, blank for a blank one."""
    # Only the beginning matters: a message may have a million characters.
    words = " ".join(visible(text[: TITLE_FROM_TEXT_MAX_CHARS * 20]).split())
    if len(words) <= TITLE_FROM_TEXT_MAX_CHARS:
        return words
    short = head(words, TITLE_FROM_TEXT_MAX_CHARS - 1)
    last_space = short.rfind(" ")
    if last_space > TITLE_FROM_TEXT_MAX_CHARS // 2:
        short = short[:last_space]
    return f"{short}…"


def settle(thread: Thread, reason: SettledReason) -> None:
    """Tell the apps above, after commit, that the thread came to rest. A failing listener stops no other."""
    transaction.on_commit(partial(thread_settled.send_robust, sender=Thread, thread=thread.pk, reason=reason))


def _change_status(thread: Thread, before: str, after: str) -> bool:
    changed = Thread.objects.filter(pk=thread.pk, status=before).update(status=after)
    if not changed and Thread.objects.filter(pk=thread.pk, status=Thread.Status.ENDED).exists():
        raise LifecycleRefused(_("This conversation has ended."))
    thread.status = after
    return bool(changed)


def _stricter_scope(origin: Thread, scope: str, island_id: int | None) -> tuple[str, int | None]:
    if origin.scope == Thread.Scope.OPEN:
        return scope, island_id
    if island_id not in (None, origin.island_id):
        raise LifecycleRefused(_("A conversation cannot stand on two islands."))
    return Thread.Scope.ISOLATED, origin.island_id


def _stricter_category(inherited: str, wanted: str) -> str:
    if inherited and wanted not in ("", inherited):
        raise LifecycleRefused(_("What belongs to the category “%(category)s” stays in it.") % {"category": inherited})
    return inherited or wanted


def _next_thread_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('threads_thread', 'id'))")
        row: tuple[Any, ...] = cursor.fetchone()
    return int(row[0])
