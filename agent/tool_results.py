"""Results of tool calls: stored whole for the reader, bounded for the model."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from agent.models import ToolCall
from llm.catalog import Model
from llm.estimates import estimate_tokens
from llm.wire import canonical
from maxclaw import clock
from maxclaw.text import head_and_tail, visible
from threads import looking_back
from threads.models import Generation, Message, Thread
from threads.transcript import append

ROUND_BUDGET_SHARE = 0.4  # the results of one round together


def store_result(
    thread: Thread,
    generation: Generation,
    call: ToolCall,
    text: str,
    *,
    status: ToolCall.Status,
    is_error: bool = False,
    allowance_tokens: int | None = None,
    model: Model | None = None,
    duration_ms: int | None = None,
    meta: dict[str, Any] | None = None,
) -> Message:
    """Append the one row that answers `call` and close the call. The thread is locked.

    With an allowance, a text whose estimate exceeds it enters the context as head and tail with the message's id;
    `Message.text` keeps all of it. `meta` is what the row says about itself.
    """
    text = visible(text) or "(no output)"
    shown, row_id = text, None
    if allowance_tokens is not None and estimate_tokens(text, model) > allowance_tokens:
        row_id = _next_message_id()
        shown = shortened(text, allowance_tokens, model, row_id)
    result = append(
        thread,
        generation,
        Message.Role.TOOL,
        text=text,
        wire=result_wire(call.call_id, shown, is_error),
        tool_call_id=call.call_id,
        is_error=is_error,
        meta={**(meta or {}), **({looking_back.MARK: True} if call.tool in looking_back.LOOKING_BACK else {})},
        id=row_id,
    )
    call.result = result
    call.status = status
    call.duration_ms = duration_ms
    call.save(update_fields=["result", "status", "duration_ms"])
    return result


def round_tokens(model: Model) -> int:
    """How many tokens the results of one round may have together, by estimate."""
    return int(model.context_budget * ROUND_BUDGET_SHARE)


def share_of_card(call: ToolCall, model: Model) -> int:
    """How many tokens the answer to an open card may have: what the other results of its round leave, in even parts for
    the cards that wait; while some of them are still to come, an even part of the whole, which the round keeps free."""
    calls = list(ToolCall.objects.filter(message_id=call.message_id).select_related("result"))
    even = round_tokens(model) // len(calls)
    if any(other.status in (ToolCall.Status.PENDING, ToolCall.Status.RUNNING) for other in calls):
        return even
    waiting = sum(other.status == ToolCall.Status.WAITING for other in calls)
    taken = sum(estimate_tokens(other.result.wire or "", model) for other in calls if other.result is not None)
    return max((round_tokens(model) - taken) // max(waiting, 1), even)


def result_wire(call_id: str, text: str, is_error: bool) -> str:
    """The exact JSON of a tool result's content blocks."""
    # The API refuses blank text blocks, so blank output is said in words.
    content = [{"type": "text", "text": text if text.strip() else "(blank output)"}]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error:
        block["is_error"] = True
    return canonical([block])


def shortened(text: str, allowance_tokens: int, model: Model | None, message_id: int) -> str:
    """Head and tail of `text` within the allowance, cut between grapheme clusters, naming the message that has all. An
    allowance that is too small even to say so leaves that message's id."""

    def gap(left_out: int) -> str:
        whole = f"the whole result is message m:{message_id}"
        return f"\n[... {left_out:,} of {len(text):,} characters left out; {whole} ...]\n"

    max_chars = len(text)
    for _attempt in range(8):
        shown = head_and_tail(text, max_chars, gap)
        tokens = estimate_tokens(shown, model)
        if tokens <= allowance_tokens:
            return shown
        # Scripts mix unevenly, so aim a little low and look again.
        max_chars = int(max_chars * allowance_tokens / tokens * 0.95)
        if max_chars <= len(gap(len(text))):
            break
    return f"[m:{message_id}]"


def open_calls(thread: Thread) -> list[ToolCall]:
    """Calls of the thread that have no result yet, in order."""
    statuses = [ToolCall.Status.PENDING, ToolCall.Status.RUNNING, ToolCall.Status.WAITING]
    return list(ToolCall.objects.filter(thread=thread, status__in=statuses).order_by("id"))


def mark_running(calls: Sequence[ToolCall]) -> None:
    """Counted before the work: a call that a crash cut short is known to have started."""
    started = clock.now()
    for call in calls:
        call.status = ToolCall.Status.RUNNING
        call.started = started
    ToolCall.objects.filter(pk__in=[call.pk for call in calls]).update(status=ToolCall.Status.RUNNING, started=started)


def _next_message_id() -> int:
    # A shortened text names its own row, so the id is taken first; the row lock keeps ids in order all the same.
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('threads_message', 'id'))")
        return cursor.fetchone()[0]
