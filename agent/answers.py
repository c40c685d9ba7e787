"""Storing what a model answered: the row, its tool calls, its place in the ledger, in one transaction."""

from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from agent.events import Event
from agent.models import TaskFrame, ToolCall
from agent.projection import COMPLETE, INTERRUPTED, message_view
from llm.calls import Prepared
from llm.ledger import close_call
from llm.models import ModelCall
from llm.provider import Answer
from threads.models import Generation, Message, Thread
from threads.transcript import finish_answer


@dataclass
class StoredAnswer:
    """What became of an answer. `calls` still need their results; `notice` is why the turn ends at this answer though
    the model was not done."""

    message: Message
    calls: list[ToolCall] = field(default_factory=list)
    bad_calls: dict[str, str] = field(default_factory=dict)
    notice: str = ""
    end_reason: TaskFrame.EndReason = TaskFrame.EndReason.ANSWERED
    events: list[Event] = field(default_factory=list)


def end_answer(
    answer: Message, *, text: str, wire: str | None, state: str, thinking: str = "", model: str = ""
) -> Event:
    """Give an assistant row its text and wire, once. `answer.generation` is loaded."""
    answer.meta = {**answer.meta, "state": state}
    if thinking:
        answer.meta["thinking"] = thinking
    finish_answer(answer, text=text, wire=wire, model=model, meta=answer.meta)
    return ("message", {"message": message_view(answer, answer.generation.ordinal)})


def store_answer(
    thread: Thread,
    generation: Generation,
    frame_id: int,
    message: Message,
    prepared: Prepared,
    answer: Answer,
) -> StoredAnswer:
    """Store blocks as received, the tool calls they hold, and close the model call. The thread is locked.

    An answer that was cut off inside a tool call is a failure like a broken stream: it stays readable and never enters
    a prompt, and the calls before the cut are not run without it.
    """
    message.generation = generation
    notice, reason, outcome = _ending(answer)
    blocks = [] if answer.cut_tool_calls else answer.blocks
    end_answer(
        message,
        text=answer.text,
        wire=answer.content if blocks else None,
        state=COMPLETE if not notice else INTERRUPTED,
        thinking=answer.thinking,
        model=prepared.model.name,
    )
    close_call(
        prepared.call,
        outcome=outcome,
        usage=answer.usage,
        stop_reason=answer.stop_reason,
        first_token_ms=prepared.first_token_ms,
        total_ms=prepared.total_ms,
    )
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    calls = ToolCall.objects.bulk_create(
        ToolCall(
            message=message,
            thread=thread,
            owner_id=thread.owner_id,
            frame_id=frame_id,
            call_id=block["id"],
            position=position,
            tool=block["name"],
            arguments=block["input"],
        )
        for position, block in enumerate(uses)
    )
    event: Event = ("message", {"message": message_view(message, generation.ordinal, calls)})
    return StoredAnswer(
        message=message,
        calls=calls,
        bad_calls=answer.bad_tool_calls,
        notice=notice,
        end_reason=reason,
        events=[event],
    )


def _ending(answer: Answer) -> tuple[str, TaskFrame.EndReason, ModelCall.Outcome]:
    """Why a complete stream is no complete answer, if so: (sentence, end of the turn, outcome of the call)."""
    if answer.stop_reason == "model_context_window_exceeded":
        return (
            context_full_sentence(),
            TaskFrame.EndReason.CONTEXT_FULL,
            ModelCall.Outcome.CONTEXT_FULL,
        )
    if answer.stop_reason == "max_tokens":
        if answer.cut_tool_calls:
            sentence = _(
                "The model's output limit cut the answer off inside a tool call, so nothing of it was run and the "
                "model does not see it again. Ask for smaller steps."
            )
        else:
            sentence = _(
                "The answer was cut off at the model's output limit. Ask it to go on, or for a shorter answer."
            )
        return sentence, TaskFrame.EndReason.MODEL_ERROR, ModelCall.Outcome.CUT
    if answer.stop_reason == "refusal":
        return (
            _("The model declined to go on with this request. Try to put it differently."),
            TaskFrame.EndReason.MODEL_ERROR,
            ModelCall.Outcome.COMPLETE,
        )
    return "", TaskFrame.EndReason.ANSWERED, ModelCall.Outcome.COMPLETE


def context_full_sentence() -> str:
    """What a full context means for the person, and what helps."""
    return _(
        "This conversation no longer fits into the model's context, so this message got no answer. Start a new "
        "conversation, or go back to an earlier point of this one, or choose a model with a larger context."
    )


def opening_too_large_sentence() -> str:
    """The summary and instructions that a context opens with leave no room for anything else."""
    return _(
        "What this conversation's context opens with is larger than the model's budget, so nothing was sent. Choose a "
        "model with a larger context, or start a new conversation."
    )
