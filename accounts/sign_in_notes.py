"""The notes of sign-ins, kept by the name that was typed: whose they are, and that they go along with a new name."""

from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.db.models import QuerySet
from django.db.models.signals import pre_save

from accounts.models import User

TABLES = (AccessAttempt, AccessFailureLog, AccessLog)


def notes_of(table: Any, user: User) -> QuerySet[Any]:
    """The rows of one of TABLES that name a person, by user name or e-mail address, which some type in its place."""
    return _notes_with(table, user, user.username) | _notes_with(table, user, user.email)


def _notes_with(table: Any, user: User, name: str) -> QuerySet[Any]:
    """Rows with a name of the user's, in small letters or large. Not those with exactly the name of another account:
    names that differ in their letters' case alone may be two people. Nor those with an address that others share."""
    rows: QuerySet[Any] = table.objects.filter(username__iexact=name)
    others = User.objects.exclude(pk=user.pk)
    if not name or (name != user.username and others.filter(email__iexact=name).exists()):
        return rows.none()
    return rows.exclude(username__in=list(others.filter(username__iexact=name).values_list("username", flat=True)))


def follow_new_names() -> None:
    """From now on notes follow an account to its new name, so that exporting and erasing find them. Those with an
    address that it has no more go."""
    pre_save.connect(_rename, sender=User, dispatch_uid="notes of sign-ins follow a new name")


def _rename(instance: User, update_fields: Any, **_rest: Any) -> None:
    if instance.pk is None or (update_fields is not None and not {"username", "email"} & set(update_fields)):
        return
    old = User.objects.filter(pk=instance.pk).first()
    if old is None:
        return
    if old.email.lower() not in (instance.email.lower(), old.username.lower()):
        for table in TABLES:
            _notes_with(table, old, old.email).delete()
    if old.username == instance.username:
        return
    for attempt in _notes_with(AccessAttempt, old, old.username):
        # One row a name, address and browser: where the new name has one already, that one counts.
        same = AccessAttempt.objects.filter(
            username=instance.username, ip_address=attempt.ip_address, user_agent=attempt.user_agent
        )
        if same.exclude(pk=attempt.pk).exists():
            attempt.delete()
        else:
            AccessAttempt.objects.filter(pk=attempt.pk).update(username=instance.username)
    for table in (AccessFailureLog, AccessLog):
        _notes_with(table, old, old.username).update(username=instance.username)
