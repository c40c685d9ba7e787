"""What holds for all words of the user's, whether a message or a card's answer: who says them where, how many."""

import functools
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agent.bell import ring
from agent.refusals import Refused
from llm import router
from llm.catalog import Model
from llm.estimates import MOST_TOKENS_PER_CHAR, estimate_tokens
from maxclaw.text import is_blank, visible
from threads.access import NoSuchThread, access_thread, lock_own_thread
from threads.models import Thread
from threads.signals import user_spoke
from threads.transcript import ThreadGone, lock_thread

MESSAGE_BUDGET_SHARE = 0.4  # one message never takes more than this share of the context budget


def checked_text(text: Any) -> str:
    """The words as they will be stored. Raises Refused when they are no words or too many."""
    words = visible(text) if isinstance(text, str) else ""
    if is_blank(words):
        raise Refused("empty", _("Write something first: an empty message is not sent."))
    limit = settings.MESSAGE_MAX_CHARS
    if len(text) > limit:
        raise Refused(
            "too-long",
            _("This message has %(length)s characters; at most %(limit)s are accepted. Shorten or split it.")
            % {"length": f"{len(text):,}", "limit": f"{limit:,}"},
        )
    return words


def message_share(model: Model) -> int:
    """How many tokens the words of one message may have."""
    return int(model.context_budget * MESSAGE_BUDGET_SHARE)


def check_size(text: str, thread: Thread, share: Callable[[Model], int] = message_share) -> None:
    """Refuse words that alone would take more tokens of the model's context budget, by estimate, than `share` says."""
    try:
        model = router.candidates("main", thread.category, thread.model)[0]
    except router.NoModelForCategory as error:
        raise Refused("no-model", str(error)) from None
    limit = share(model)
    if len(text) * MOST_TOKENS_PER_CHAR <= limit:
        return
    tokens = estimate_tokens(text, model)
    if tokens > limit:
        raise Refused(
            "too-long",
            _(
                "This message is about %(tokens)s tokens long; the model's context takes at most %(limit)s at once. "
                "Shorten or split it."
            )
            % {"tokens": f"{tokens:,}", "limit": f"{limit:,}"},
        )


def open_thread(user: User, channel: str) -> Thread:
    """The user's thread, if it takes words. An unknown one and another user's are refused in the same words."""
    return _open(access_thread, user, channel)


def locked_open_thread(user: User, channel: str) -> Thread:
    """The same under its row lock, inside a transaction."""
    return _open(lock_own_thread, user, channel)


def _open(find: Callable[[User, str], Thread], user: User, channel: str) -> Thread:
    try:
        return taking_words(find(user, channel))
    except NoSuchThread:
        raise no_such_thread() from None


def taking_words(thread: Thread) -> Thread:
    """The thread. Raises Refused when it is put away and takes no words."""
    if thread.status != Thread.Status.ACTIVE:
        raise Refused("not-active", _("This conversation is archived. Restore it to go on."))
    return thread


def no_such_thread() -> Refused:
    return Refused("no-such-thread", _("There is no such conversation. It may have been deleted."))


def locked(thread: Thread) -> Thread:
    """The thread under its row lock. Raises Refused when it was deleted meanwhile."""
    try:
        return lock_thread(thread.pk)
    except ThreadGone:
        raise no_such_thread() from None


def wake(thread: Thread) -> None:
    """Ring for the processes that run turns."""
    ring("wake", {"thread": thread.pk})


def after_speaking(thread: Thread) -> None:
    """Tell the apps above, after commit, that the user spoke."""
    transaction.on_commit(functools.partial(user_spoke.send_robust, sender=Thread, thread=thread.pk))
