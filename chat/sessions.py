"""Who is behind a socket, asked again before every action: a session ends and an account is closed while it
is open."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest
from django.utils import translation

from accounts.models import User

P = ParamSpec("P")
R = TypeVar("R")


class SignedOut(Exception):
    """The session has ended, its account is closed, or it is someone else's by now."""


def signed_in_user(session_key: str | None, user_id: int | None) -> User:
    """The active user `user_id` of a live session; raises SignedOut. Password changes end a session too."""
    if not session_key or user_id is None:
        raise SignedOut
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user: Any = get_user(request)
    if not isinstance(user, User) or user.pk != user_id or not user.is_active:
        raise SignedOut
    return user


def as_signed_in(
    session_key: str | None,
    user_id: int | None,
    action: Callable[Concatenate[User, P], R],
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    """Run `action(user, ...)` in the user's language as one unit with the check of the session; raises
    SignedOut."""
    user = signed_in_user(session_key, user_id)
    with translation.override(user.language):
        return action(user, *args, **kwargs)
