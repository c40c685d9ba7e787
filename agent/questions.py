"""Question cards: a tool call whose result is the user's to give. While one is open the turn waits, without a lease."""

import functools
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from agent import speaking
from agent.bell import ring
from agent.events import Event, emit_all
from agent.frames import turn_view
from agent.models import InboxItem, TaskFrame, ToolCall
from agent.projection import thread_view, tool_view
from agent.refusals import Refused
from agent.tool_results import share_of_card, store_result
from maxclaw import clock
from threads.models import Generation, Message, Thread
from threads.transcript import live_generation

QUESTION_TOOL = "ask_user_question"


def answer_question(user: User, channel: str, call_id: int, text: Any) -> ToolCall:
    """The user's answer to one open card (`call_id` is the ToolCall's id) becomes its result, and the turn goes on.

    Raises Refused when the thread or the card is not the user's, the card is not open, or the answer is no words.
    """
    text = speaking.checked_text(text)
    thread = speaking.open_thread(user, channel)
    with transaction.atomic():
        thread = speaking.locked(thread)
        call = open_questions(thread).filter(pk=call_id if isinstance(call_id, int) else 0).first()
        if call is None:
            raise Refused("not-open", _("This question is not open any more."))
        _store_answer(thread, call, text)
        speaking.after_speaking(thread)
    return call


def take_words_as_answer(thread: Thread, item: InboxItem) -> bool:
    """Words typed while a card is open answer the oldest open card. The thread is locked. False: no card is open.
    Raises Refused as an answer does."""
    call = open_questions(thread).first()
    if call is None:
        return False
    result = _store_answer(thread, call, item.text)
    item.state = InboxItem.State.TAKEN
    item.message = result
    item.save(force_insert=True)
    speaking.after_speaking(thread)
    return True


def open_questions(thread: Thread) -> QuerySet[ToolCall]:
    """The thread's open cards, oldest first."""
    return ToolCall.objects.filter(thread=thread, owner_id=thread.owner_id, status=ToolCall.Status.WAITING).order_by(
        "id"
    )


def _store_answer(thread: Thread, call: ToolCall, text: str) -> Message:
    # A person's words go out whole or not at all, where a tool's are shortened to what the round has left.
    speaking.check_size(text, thread, functools.partial(share_of_card, call))
    generation: Generation = live_generation(thread)
    result = store_result(thread, generation, call, text, status=ToolCall.Status.DONE)
    events: list[Event] = [("tool", {"message": call.message_id, "call": tool_view(call, result)})]
    # While the rest of the round still runs, its turn holds the thread and looks for open cards itself.
    if thread.state == Thread.State.WAITING and not open_questions(thread).exists():
        # Whoever takes the answer takes the turn: the frame is ready, and the first to hear the ring resumes it.
        TaskFrame.objects.filter(thread=thread, state=TaskFrame.State.WAITING).update(state=TaskFrame.State.SUSPENDED)
        thread.state = Thread.State.IDLE
        ring("wake", {"thread": thread.pk})
    thread.updated = clock.now()
    thread.save(update_fields=["state", "updated"])
    events.append(("state", {"thread": thread_view(thread), "turn": turn_view(thread)}))
    emit_all(thread.pk, thread.owner_id, events)
    return result
