"""What the records export of a person, and how they go: the thread's row last, everything that names it before."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import erasing
from accounts.models import User
from threads.lifecycle import LifecycleRefused
from threads.models import Generation, Message, PrivateReading, Thread


def export(user: User) -> Iterator[dict[str, Any]]:
    """Threads, generations and messages of a person, oldest first, as one dict each."""
    for thread in erasing.in_batches(Thread.objects.filter(owner=user).select_related("parent")):
        yield {
            "record": "thread",
            "channel": thread.channel,
            "title": thread.title,
            "kind": thread.kind,
            "status": thread.status,
            "scope": thread.scope,
            "category": thread.category,
            "island": thread.island_id and f"t:{thread.island_id}",
            "id": f"t:{thread.pk}",
            "parent": thread.parent and thread.parent.channel,
            "copied_from": thread.copied_from_id,
            "model": thread.model,
            "created": thread.created.isoformat(),
            "updated": thread.updated.isoformat(),
        }
    for generation in erasing.in_batches(Generation.objects.filter(owner=user).select_related("thread")):
        yield {
            "record": "generation",
            "channel": generation.thread.channel,
            "id": generation.pk,
            "ordinal": generation.ordinal,
            "opening": generation.opening,
            "summary": generation.summary,
            "summary_before": generation.summary_before,
            "standing": generation.standing,
            "started": generation.started.isoformat(),
            "ended": generation.ended and generation.ended.isoformat(),
            "end_reason": generation.end_reason,
        }
    messages = Message.objects.filter(owner=user).select_related("thread").defer("search_text")
    for message in erasing.in_batches(messages):
        yield {
            "record": "message",
            "channel": message.thread.channel,
            "id": message.pk,
            "generation": message.generation_id,
            "role": message.role,
            "text": message.text,
            "wire": message.wire,
            "model": message.model,
            "tool_call_id": message.tool_call_id,
            "is_error": message.is_error,
            "model_visible": message.model_visible,
            "left_because": message.left_because,
            "copied_from": message.copied_from_id,
            "meta": message.meta,
            "created": message.created.isoformat(),
        }
    readings = PrivateReading.objects.filter(owner=user).select_related("thread", "reader")
    for reading in erasing.in_batches(readings):
        yield {
            "record": "private_reading",
            "channel": reading.thread and reading.thread.channel,
            "reader": reading.reader and reading.reader.username,
            "what": reading.what,
            "first": reading.first_id,
            "last": reading.last_id,
            "read_at": reading.read_at.isoformat(),
        }


def holdings(user: User) -> Iterator[str]:
    threads = Thread.objects.filter(owner=user).count()
    messages = Message.objects.filter(owner=user).count()
    if threads:
        yield ngettext("%(count)d conversation", "%(count)d conversations", threads) % {"count": threads}
    if messages:
        yield ngettext("%(count)d message", "%(count)d messages", messages) % {"count": messages}


def also_erased(thread: Thread) -> Iterator[Thread]:
    """A thread's tasks go with it, at any depth; its branches are conversations of their own and stay."""
    waiting = [thread.pk]
    while waiting:
        tasks = list(Thread.objects.filter(parent_id__in=waiting, kind=Thread.Kind.TASK))
        yield from tasks
        waiting = [task.pk for task in tasks]


def threads_of(user: User) -> Iterator[Thread]:
    yield from Thread.objects.filter(owner=user)


def erase_thread(thread: Thread) -> None:
    """Delete the thread with its generations and messages. Copies elsewhere stay and forget where they came from.
    Raises LifecycleRefused for the main thread, which goes with its account alone."""
    if thread.kind == Thread.Kind.MAIN:
        raise LifecycleRefused(_("The main conversation stays as long as its account does."))
    _hand_over_island(thread)
    _empty_readings(PrivateReading.objects.filter(thread=thread))
    erasing.empty_admin_log(Thread, [thread.pk])
    Thread.objects.filter(pk=thread.pk).delete()


def erase_user(user: User) -> None:
    """Delete every thread of a person's."""
    threads = Thread.objects.filter(owner=user)
    readings = PrivateReading.objects.filter(owner=user)
    _empty_readings(readings)
    readings.update(owner=None)
    erasing.empty_admin_log(Thread, list(threads.values_list("pk", flat=True)))
    threads.delete()


def move_island(old_id: int, new_id: int) -> None:
    Thread.objects.filter(island_id=old_id).update(island_id=new_id)


def _empty_readings(readings: QuerySet[PrivateReading]) -> None:
    """That somebody read stays; what they read is gone."""
    readings.update(thread=None, first_id=None, last_id=None)


def _hand_over_island(thread: Thread) -> None:
    """When an island's root goes, its oldest remaining thread becomes the root: the others stay together, and apart
    from everything else."""
    going = [thread.pk, *(task.pk for task in also_erased(thread))]
    staying = Thread.objects.filter(island_id=thread.pk).exclude(pk__in=going).order_by("pk").first()
    if staying is not None:
        erasing.move_island(thread.pk, staying.pk)
