"""The notes of sign-ins, kept by the name that was typed: whose they are, and that they go along with a new name."""

from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.db.models import QuerySet
from django.db.models.signals import pre_save

from accounts.models import User

TABLES = (AccessAttempt, AccessFailureLog, AccessLog)


def notes_of(table: Any, username: str) -> QuerySet[Any]:
    """The rows of one of TABLES that name `username`, in small letters or large. Not those with exactly the name of
    another account: names that differ in their letters' case alone may be two people."""
    others = User.objects.filter(username__iexact=username).exclude(username=username)
    rows: QuerySet[Any] = table.objects.filter(username__iexact=username)
    return rows.exclude(username__in=list(others.values_list("username", flat=True)))


def follow_new_names() -> None:
    """From now on notes follow an account to its new name, so that exporting and erasing find them."""
    pre_save.connect(_rename, sender=User, dispatch_uid="notes of sign-ins follow a new name")


def _rename(instance: User, update_fields: Any, **_rest: Any) -> None:
    if instance.pk is None or (update_fields is not None and "username" not in update_fields):
        return
    old = User.objects.filter(pk=instance.pk).values_list("username", flat=True).first()
    if old is None or old == instance.username:
        return
    for attempt in notes_of(AccessAttempt, old):
        # One row a name, address and browser: where the new name has one already, that one counts.
        same = AccessAttempt.objects.filter(
            username=instance.username, ip_address=attempt.ip_address, user_agent=attempt.user_agent
        )
        if same.exclude(pk=attempt.pk).exists():
            attempt.delete()
        else:
            AccessAttempt.objects.filter(pk=attempt.pk).update(username=instance.username)
    for table in (AccessFailureLog, AccessLog):
        notes_of(table, old).update(username=instance.username)
