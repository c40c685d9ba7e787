"""The only doors to conversations. The unknown and what belongs to someone else answer identically."""

import re
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from accounts.models import User
from threads.models import CHANNEL_ALPHABET, Message, Thread
from threads.transcript import locked_rows, mark_locked

MESSAGE_ID_MAX = 2**63 - 1
_CHANNEL = re.compile(f"[{CHANNEL_ALPHABET}]{{1,20}}")
_MESSAGE_ID = re.compile("[0-9]{1,19}", re.ASCII)


class NoSuchThread(Exception):
    """No conversation of this user's has that channel."""


class NoSuchMessage(Exception):
    """No message of this user's has that id."""


def visible_to(user: User | AnonymousUser) -> QuerySet[Thread]:
    """A person's own conversations, of every kind and status, deleted ones excepted. Nobody else's, whatever their
    role."""
    if not user.is_authenticated:
        return Thread.objects.none()
    return Thread.objects.filter(owner_id=user.pk, deleted__isnull=True)


def access_thread(user: User | AnonymousUser, channel: Any) -> Thread:
    """The user's conversation with this channel. Raises NoSuchThread, for anything that is no channel too."""
    if isinstance(channel, str) and _CHANNEL.fullmatch(channel):
        thread = visible_to(user).filter(channel=channel).first()
        if thread is not None:
            return thread
    raise NoSuchThread


def lock_own_thread(user: User | AnonymousUser, channel: Any) -> Thread:
    """The same under its row lock, in one statement. Raises NoSuchThread, and TransactionManagementError outside a
    transaction."""
    locked = lock_own_threads(user, [channel])
    if not locked:
        raise NoSuchThread
    return locked[channel]


def lock_own_threads(user: User | AnonymousUser, channels: Iterable[Any]) -> dict[str, Thread]:
    """Those of the user's conversations that have these channels, by channel, under their row locks: one statement,
    which takes the locks in the order of ids, as everything does that locks several. Raises TransactionManagementError
    outside a transaction."""
    asked = {channel for channel in channels if isinstance(channel, str) and _CHANNEL.fullmatch(channel)}
    if not asked or not user.is_authenticated:
        return {}
    own = locked_rows().filter(owner_id=user.pk, deleted__isnull=True, channel__in=asked)
    locked = {thread.channel: thread for thread in own.order_by("pk")}
    for thread in locked.values():
        mark_locked(thread)
    return locked


def access_message(user: User | AnonymousUser, message_id: Any) -> Message:
    """The user's message with this id (a number or its digits), its thread fetched with it. Raises
    NoSuchMessage."""
    number = parse_message_id(message_id)
    if number is not None and user.is_authenticated:
        message = (
            Message.objects.select_related("thread")
            .filter(owner_id=user.pk, pk=number, thread__deleted__isnull=True)
            .first()
        )
        if message is not None:
            return message
    raise NoSuchMessage


def parse_message_id(value: Any) -> int | None:
    """A message id as a client or a model writes it, or None for what cannot be one."""
    if isinstance(value, str) and _MESSAGE_ID.fullmatch(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MESSAGE_ID_MAX:
        return value
    return None
