"""Ending a turn from outside: the user's stop, a lost holder, a server that goes down.

What was received is kept and marked. Every open tool call gets its one result, a placeholder that says that the tool
may have run, so that the next request is valid.
"""

from django.utils import translation
from django.utils.translation import gettext as _

from agent import frames, leases
from agent.answers import end_answer
from agent.events import Event, emit_all
from agent.models import TaskFrame, ToolCall
from agent.projection import INTERRUPTED, STREAMING, streamed_so_far, thread_view, tool_view
from agent.prompts import INTERRUPTED_TOOL, STOPPED_QUESTION
from agent.safe_point import append_notice
from agent.tool_results import open_calls, store_result
from llm.calls import Prepared
from llm.ledger import close_call, close_open_calls
from llm.models import ModelCall
from llm.wire import canonical
from threads.models import Generation, Message, Thread
from threads.transcript import live_generation, text_block

# What is to be forgotten is forgotten all the same: after these the renewal waits for whoever takes the thread next.
_TAKEN_UP_AGAIN = (TaskFrame.EndReason.INTERRUPTED, TaskFrame.EndReason.STOPPED)


def interrupt(
    thread: Thread,
    reason: TaskFrame.EndReason,
    *,
    notice: str | None = None,
    frame: TaskFrame | None = None,
    keep_wire: bool = True,
    asked: Prepared | None = None,
) -> TaskFrame | None:
    """End the thread's running frame (or `frame`, a waiting or suspended one) and give the lease back. The thread is
    locked; whoever held the lease writes nothing more, because its token is gone. `keep_wire` False: what a failed call
    said stays readable and is never sent. `asked` is the request that was cut short, where its maker closes it: its
    usage so far goes into the ledger. Sentences are in the owner's language, whoever ends the turn."""
    with translation.override(thread.owner.language):
        return _interrupt(thread, reason, notice, frame, keep_wire, asked)


def _interrupt(
    thread: Thread,
    reason: TaskFrame.EndReason,
    notice: str | None,
    frame: TaskFrame | None,
    keep_wire: bool,
    asked: Prepared | None,
) -> TaskFrame | None:
    generation = live_generation(thread)
    events: list[Event] = []
    if frame is None:
        frame = TaskFrame.objects.filter(thread=thread, state=TaskFrame.State.RUNNING).first()
    events += keep_streamed_answers(thread, keep_wire=keep_wire, asked=asked)
    events += _answer_open_calls(thread, generation)
    if frame is not None:
        stopped = reason == TaskFrame.EndReason.STOPPED
        sentence = notice or (_("Stopped.") if stopped else _("The answer was interrupted. Send a message to go on."))
        renewing = frames.is_renewal(frame.source)
        if renewing:
            close_open_calls(thread.pk)
        if frame.source == frames.RENEWAL_TO_FORGET and reason in _TAKEN_UP_AGAIN:
            frame.state, frame.stop_asked = TaskFrame.State.SUSPENDED, False
            frame.save(update_fields=["state", "stop_asked"])
        else:
            frames.end(frame, reason, "" if renewing else sentence)
        # A renewal that did not come to its end changed nothing that a person would miss.
        if not renewing:
            events.append(append_notice(thread, generation, sentence, reason))
    leases.release(thread, Thread.State.IDLE)
    events.append(("state", {"thread": thread_view(thread), "turn": frames.turn_view(thread)}))
    emit_all(thread.pk, thread.owner_id, events)
    return frame


def keep_streamed_answers(thread: Thread, *, keep_wire: bool = True, asked: Prepared | None = None) -> list[Event]:
    """An interrupted answer keeps its non-blank text as its wire; without any, the row is not sent."""
    events: list[Event] = []
    streaming = Message.objects.filter(thread=thread, role=Message.Role.ASSISTANT, meta__state=STREAMING)
    for answer in streaming.select_related("generation").order_by("id"):
        text, thinking = streamed_so_far(answer)
        wire = canonical([text_block(text)]) if keep_wire and text.strip() else None
        call = ModelCall.objects.filter(answer_message_id=answer.pk, outcome="").order_by("-id").first()
        events.append(
            end_answer(
                answer,
                text=text,
                wire=wire,
                state=INTERRUPTED,
                thinking=thinking,
                model=call.model if call else "",
            )
        )
        if call is not None:
            known = asked if asked is not None and asked.call.pk == call.pk else None
            close_call(
                call,
                outcome=ModelCall.Outcome.INTERRUPTED,
                usage=known.usage if known else None,
                first_token_ms=known.first_token_ms if known else None,
                total_ms=known.total_ms if known else None,
            )
    return events


def _answer_open_calls(thread: Thread, generation: Generation) -> list[Event]:
    events: list[Event] = []
    for call in open_calls(thread):
        waiting = call.status == ToolCall.Status.WAITING
        text = STOPPED_QUESTION if waiting else INTERRUPTED_TOOL
        result = store_result(thread, generation, call, text, status=ToolCall.Status.INTERRUPTED, is_error=True)
        events.append(("tool", {"message": call.message_id, "call": tool_view(call, result)}))
    return events
