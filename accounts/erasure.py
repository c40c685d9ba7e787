"""The account itself: what it exports, and what of it goes last."""

from collections.abc import Iterator
from typing import Any

from axes.models import AccessLog
from django.contrib.sessions.models import Session

from accounts import erasing
from accounts.models import User
from accounts.sign_in_notes import TABLES, notes_of


def export(user: User) -> Iterator[dict[str, Any]]:
    """The account, without what proves who someone is: password, sessions, tokens."""
    yield {
        "record": "account",
        "username": user.username,
        "first_name": user.first_name,
        "last_name": user.last_name,
        "email": user.email,
        "time_zone": user.time_zone,
        "language": user.language,
        "joined": user.date_joined.isoformat(),
        "last_login": user.last_login and user.last_login.isoformat(),
    }
    # By name, as the notes of sign-ins are kept. What was typed in vain is no record of the person's: anybody may have.
    for sign_in in notes_of(AccessLog, user).order_by("pk").iterator():
        yield {
            "record": "sign_in",
            "at": sign_in.attempt_time.isoformat(),
            "address": sign_in.ip_address,
            "browser": sign_in.user_agent,
            "signed_out": sign_in.logout_time and sign_in.logout_time.isoformat(),
        }


def erase_user(user: User) -> None:
    """Delete the account, its sessions and the notes of its logins."""
    for table in TABLES:
        notes_of(table, user).delete()
    for session in Session.objects.iterator():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            session.delete()
    erasing.empty_admin_log(User, [user.pk])
    user.delete()
