"""Going back: rewind and undo, edit and resend, retry, fork. The page, the API and tools all come through here."""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agent import speaking
from agent.copied_calls import copy_tool_calls
from agent.events import emit
from agent.models import InboxItem
from agent.projection import item_view
from agent.prompts import framework_block
from agent.refusals import Refused
from agent.sending import send
from threads import copying
from threads.access import NoSuchMessage, access_message
from threads.lifecycle import LifecycleRefused
from threads.models import Message, Thread
from threads.transcript import append, live_generation, lock_thread, text_block


def rewind(user: User, channel: str, message_id: Any) -> Thread:
    """Make a message the last of its conversation's context. Later rows stay readable as rewound. Raises Refused."""
    thread, message = _message(user, channel, message_id)
    _change(thread, lambda: copying.rewind(thread, message, acting_user=user))
    return thread


def undo_rewind(user: User, channel: str) -> Thread:
    """Bring back what the newest rewind left behind. Raises Refused."""
    thread = speaking.open_thread(user, channel)
    _change(thread, lambda: copying.undo_rewind(thread, acting_user=user))
    return thread


def edit(user: User, channel: str, message_id: Any, text: Any, *, client_key: str) -> InboxItem:
    """Say something else in place of one of the user's own messages: rewind to before it and send the new words.
    Nothing changes when the new words are refused. Raises Refused."""
    text = speaking.checked_text(text)
    thread, message = _message(user, channel, message_id)
    if message.role != Message.Role.USER:
        raise Refused("not-yours", _("Only your own messages can be edited."))
    with transaction.atomic():
        repeated = InboxItem.objects.filter(thread=thread, client_key=client_key).first()
        if repeated is None:
            _change(thread, lambda: copying.rewind(thread, message, acting_user=user, keep=False))
        # What the message quoted goes with the new words: it is this conversation's already.
        return send(user, channel, text, client_key=client_key, quote=message.meta.get("quote"))


def retry(user: User, channel: str, *, client_key: str) -> InboxItem:
    """Ask the user's last words once more: what was answered is rewound. Raises Refused."""
    thread = speaking.open_thread(user, channel)
    repeated = InboxItem.objects.filter(thread=thread, client_key=client_key).first()
    if repeated is not None:
        return repeated
    said = Message.objects.filter(thread=thread, owner_id=user.pk, role=Message.Role.USER, model_visible=True)
    last = said.exclude(left_because=Message.LeftBecause.SUPERSEDED).order_by("-pk").first()
    if last is None:
        raise Refused("nothing-said", _("There is nothing to ask again yet."))
    return edit(user, channel, last.pk, last.text, client_key=client_key)


def fork(user: User, channel: str, message_id: Any) -> Thread:
    """A new conversation that begins with what the context held up to a message. Raises Refused."""
    thread, message = _message(user, channel, message_id)
    with transaction.atomic():
        try:
            branch = copying.fork(user, thread, message, acting_user=user)
        except LifecycleRefused as refusal:
            raise Refused("not-now", str(refusal)) from None
        locked = lock_thread(branch.pk)
        copy_tool_calls(locked)
        name_branch(locked, thread)
    return branch


def name_branch(branch: Thread, source: Thread) -> None:
    """Tell the model which conversation a locked branch is. The copied opening is the source's, byte for byte; the
    branch's own name comes after it."""
    note = f"This conversation is a branch of {source.channel}.\nchannel: {branch.channel}"
    append(
        branch,
        live_generation(branch),
        Message.Role.EVENT,
        text=note,
        blocks=[text_block(framework_block(note))],
        meta={"source": "framework"},
    )


def withdraw(user: User, channel: str, item_id: Any) -> InboxItem:
    """Take back words that still wait; their text comes back with the item. Raises Refused."""
    thread = speaking.open_thread(user, channel)
    with transaction.atomic():
        thread = speaking.locked(thread)
        waiting = InboxItem.objects.filter(thread=thread, state=InboxItem.State.WAITING, source="user")
        item = waiting.filter(pk=item_id if isinstance(item_id, int) else 0).first()
        if item is None:
            raise Refused("not-waiting", _("These words are not waiting any more."))
        item.state = InboxItem.State.WITHDRAWN
        item.save(update_fields=["state"])
        emit(thread.pk, thread.owner_id, "unqueued", {"item": item.pk, "withdrawn": item_view(item)})
    return item


def _message(user: User, channel: str, message_id: Any) -> tuple[Thread, Message]:
    """A message found by channel and id together: a real id with a wrong channel is refused."""
    thread = speaking.open_thread(user, channel)
    try:
        message = access_message(user, message_id)
    except NoSuchMessage:
        message = None
    if message is None or message.thread_id != thread.pk:
        raise Refused("no-such-message", _("There is no such message in this conversation."))
    return thread, message


def _change(thread: Thread, change: Callable[[], Any]) -> None:
    """Change what stands, and tell clients to look anew: a rewind touches any number of rows at once."""
    with transaction.atomic():
        try:
            change()
        except LifecycleRefused as refusal:
            raise Refused("not-now", str(refusal)) from None
        locked = lock_thread(thread.pk)
        emit(locked.pk, locked.owner_id, "anew", {})
