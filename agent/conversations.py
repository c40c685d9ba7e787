"""What a person does to a whole conversation: pick its model, delete it, take that back."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts import erasing
from accounts.models import User
from agent import ending, meter, speaking
from agent.events import emit
from agent.frames import open_frames, turn_view
from agent.models import TaskFrame
from agent.projection import thread_view
from agent.refusals import Refused
from maxclaw import clock
from threads.access import NoSuchThread, access_thread
from threads.models import Thread
from threads.transcript import lock_thread

DELETED_KEPT = timedelta(minutes=10)


def choose_model(user: User, channel: str, name: Any) -> Thread:
    """Let the user's pick answer from the next request on; blank: the server's choice. Raises Refused."""
    thread = speaking.open_thread(user, channel)
    with transaction.atomic():
        thread = speaking.locked(thread)
        if name != "" and name not in meter.model_choices(thread.category):
            raise Refused("no-such-model", _("This model is not offered for this conversation."))
        thread.model = name
        thread.save(update_fields=["model"])
        emit(thread.pk, thread.owner_id, "state", {"thread": thread_view(thread), "turn": turn_view(thread)})
    return thread


def delete(user: User, channel: str) -> Thread:
    """Put a conversation out of everybody's sight at once, and its tasks with it. They are erased when DELETED_KEPT has
    passed, and until then `undelete` brings them back. Running turns are stopped. Raises Refused."""
    try:
        thread = access_thread(user, channel)
    except NoSuchThread:
        raise speaking.no_such_thread() from None
    if thread.kind == Thread.Kind.MAIN:
        raise Refused("main", _("The main conversation cannot be deleted."))
    with transaction.atomic():
        thread = speaking.locked(thread)
        now = clock.now()
        # Under its lock it starts no further task; an older thread's lock is taken before a younger one's.
        for pk in sorted(erasing.going_with(thread)):
            member = thread if pk == thread.pk else lock_thread(pk)
            if member.deleted is None:
                _put_away(member, now)
    return thread


def _put_away(thread: Thread, now: datetime) -> None:
    for frame in open_frames(thread):
        ending.interrupt_and_settle(thread, TaskFrame.EndReason.STOPPED, frame=frame)
    thread.deleted = now
    thread.save(update_fields=["deleted"])
    emit(thread.pk, thread.owner_id, "gone", {})


def deleted_threads(user: User) -> QuerySet[Thread]:
    """What a person deleted and may still bring back: out of sight everywhere else, and not erased yet."""
    return Thread.objects.filter(owner_id=user.pk, deleted__isnull=False)


def undelete(user: User, channel: Any) -> Thread:
    """Bring a deleted conversation back, with what went in the same moment. Raises Refused when there is none, or it is
    erased already."""
    thread = deleted_threads(user).filter(channel=channel if isinstance(channel, str) else "").first()
    if thread is None:
        raise speaking.no_such_thread()
    with transaction.atomic():
        thread = speaking.locked(thread)
        went = thread.deleted
        for pk in sorted(erasing.going_with(thread)):
            member = thread if pk == thread.pk else lock_thread(pk)
            if went is not None and member.deleted == went:
                member.deleted = None
                member.save(update_fields=["deleted"])
                emit(member.pk, member.owner_id, "anew", {})
                speaking.wake(member)
    return thread


def erase_deleted() -> int:
    """Erase what was deleted DELETED_KEPT ago. Returns how many conversations."""
    due = Thread.objects.filter(deleted__lt=clock.now() - DELETED_KEPT).values_list("pk", flat=True)
    erased = 0
    for thread_id in list(due):
        with transaction.atomic():
            thread = Thread.objects.filter(pk=thread_id, deleted__isnull=False).first()
            if thread is not None and lock_thread(thread_id).deleted is not None:
                erasing.erase_thread(thread)
                erased += 1
    return erased
