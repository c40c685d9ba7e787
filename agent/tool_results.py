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
SHORTEST_WINDOW_CHARS = 200


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


def result_wire(call_id: str, text: str, is_error: bool) -> str:
    """The exact JSON of a tool result's content blocks."""
    # The API refuses blank text blocks, so blank output is said in words.
    content = [{"type": "text", "text": text if text.strip() else "(blank output)"}]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error:
        block["is_error"] = True
    return canonical([block])


def shortened(text: str, allowance_tokens: int, model: Model | None, message_id: int) -> str:
    """Head and tail of `text` within the allowance, cut between grapheme clusters, naming the message that has all."""

    def gap(left_out: int) -> str:
        whole = f"the whole result is message m:{message_id}"
        return f"\n[... {left_out:,} of {len(text):,} characters left out; {whole} ...]\n"

    max_chars = len(text)
    for _attempt in range(8):
        tokens = estimate_tokens(head_and_tail(text, max_chars, gap), model)
        if tokens <= allowance_tokens:
            break
        # Scripts mix unevenly, so aim a little low and look again.
        max_chars = max(int(max_chars * allowance_tokens / tokens * 0.95), SHORTEST_WINDOW_CHARS)
    return head_and_tail(text, max_chars, gap)


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
