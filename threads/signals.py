"""What the records tell the apps above, after commit. Receivers connect from above."""

import enum
from typing import Any

from django.db.models.signals import post_save
from django.dispatch import Signal, receiver

from accounts.models import User
from threads.models import Generation, Thread


class SettledReason(enum.StrEnum):
    """Why a thread came to rest."""

    IDLE_OR_ENDED = "idle-or-ended"
    TURN_BOUNDARY = "turn-boundary"
    TURN_FAILED = "turn-failed"
    WAITING_USER = "waiting-max"
    TASK_ENDED = "task-ended"
    GENERATION_ENDED = "generation-ended"
    THREAD_ARCHIVED = "thread-archived"
    THREAD_ENDED = "thread-ended"


# Sent after commit with `thread` (its id) and `reason` (a SettledReason).
thread_settled = Signal()
# Sent after commit with `thread` (its id): words, a card's answer, an edit or a retry, by any way in.
user_spoke = Signal()


@receiver(post_save, sender=User, dispatch_uid="make_main_thread")
def make_main_thread(instance: User, created: bool, raw: bool = False, **_kwargs: Any) -> None:
    """Every account has one main thread, made with it: notices and results without a home go there."""
    if created and not raw:
        thread = Thread.objects.create(owner=instance, kind=Thread.Kind.MAIN)
        Generation.objects.create(thread=thread, owner=instance, ordinal=1)
