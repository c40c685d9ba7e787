"""The one way in for words that quote: page, API and whatever else sends. A preview grants nothing; here everything is
looked at again, under the locks that changing or deleting either conversation takes, and stored in the same
transaction."""

from typing import Any

from django.db import transaction

from accounts.models import User
from agent import sending, speaking
from agent.models import InboxItem
from agent.refusals import Refused
from maxclaw import clock
from quotes.pointers import Pointer, no_such_source, parse
from quotes.resolving import quotable, quotable_thread, resolve
from threads.access import lock_own_threads
from threads.lifecycle import check_category
from threads.models import Thread


def send(
    user: User,
    channel: str,
    text: Any,
    *,
    client_key: str,
    quote: Any = None,
    confirmed: Any = None,
    confirm_text: Any = None,
) -> InboxItem:
    """Send words, with what they quote when there is a `quote` (a pointer as `pointers.parse` reads it).

    A downgrade needs `confirmed` to be True itself, and `confirm_text` to be the sentence that it asks for now: who
    confirmed another one saw other boundaries. Raises Refused with the sentence: nothing is stored then, and no message
    goes out without its quote. A repeated send (`client_key`) is the same send, whatever became of the
    source meanwhile.
    """
    if quote is None:
        return sending.send(user, channel, text, client_key=client_key)
    pointer = parse(quote)
    text = speaking.checked_text(text)
    sending.check_key(client_key)
    with transaction.atomic():
        # Both under their row locks at once: what changed before these were had is seen.
        locked = lock_own_threads(user, {channel, pointer.channel})
        if channel not in locked:
            raise speaking.no_such_thread()
        target = speaking.taking_words(locked[channel])
        try:
            frozen = _accept(locked, target, pointer, confirm_text if confirmed is True else None)
            return sending.store(target, text, client_key, frozen)
        except Refused:
            repeated = sending.said_before(target, client_key, text, pointer.as_json())
            if repeated is None:
                raise
            return repeated


def preview(
    user: User, channel: str, quote: Any, *, scope: str = Thread.Scope.OPEN, category: str = ""
) -> dict[str, Any]:
    """What sending this quote to the conversation `channel` would ask for now: {"quote": card, "needs_confirm",
    "confirm_text"}. A blank channel is a conversation that would begin with it, at the level given. Raises Refused, and
    LifecycleRefused for a level that no conversation can have."""
    pointer = parse(quote)
    if channel:
        target = speaking.open_thread(user, channel)
    else:
        check_category(category)
        target = Thread(owner=user, scope=scope, category=category)
    return resolve(pointer, quotable_thread(user, pointer.channel), target).preview()


def _accept(locked: dict[str, Thread], target: Thread, pointer: Pointer, confirmed_sentence: Any) -> dict[str, Any]:
    if pointer.channel not in locked:
        raise no_such_source()
    resolved = resolve(pointer, quotable(locked[pointer.channel]), target)
    if resolved.needs_confirm and confirmed_sentence != resolved.confirm_text:
        raise Refused("confirm-needed", resolved.confirm_text)
    return resolved.frozen(clock.now() if resolved.needs_confirm else None)
