"""Tool calls of copied messages: a copy shows the same cards as what it copies."""

from collections import defaultdict

from agent.models import ToolCall
from threads.models import Message, Thread


def copy_tool_calls(thread: Thread) -> int:
    """Give every copied message of a thread that has no tool calls those of its original, with the copy of the result
    where the thread has one. Returns how many were made."""
    copies = Message.objects.filter(thread=thread, owner_id=thread.owner_id, copied_from__isnull=False)
    asking = copies.filter(role=Message.Role.ASSISTANT, wire__contains='"tool_use"', tool_calls__isnull=True)
    copy_of: dict[int, list[Message]] = defaultdict(list)
    for row in asking.only("pk", "copied_from_id"):
        copy_of[row.copied_from_id or 0].append(row)
    if not copy_of:
        return 0
    calls = ToolCall.objects.filter(message_id__in=list(copy_of), owner_id=thread.owner_id).order_by("id")
    results: dict[int, list[int]] = defaultdict(list)
    answers = copies.filter(role=Message.Role.TOOL, answers_call__isnull=True).order_by("id")
    for source, pk in answers.values_list("copied_from_id", "pk"):
        results[source or 0].append(pk)
    made = []
    for call in calls:
        for row in copy_of[call.message_id]:
            # Of several copies of one exchange, the result that follows is this one's.
            result = next((pk for pk in results[call.result_id or 0] if pk > row.pk), None)
            if result is not None:
                results[call.result_id or 0].remove(result)
            made.append(
                ToolCall(
                    message=row,
                    thread_id=thread.pk,
                    owner_id=thread.owner_id,
                    call_id=call.call_id,
                    position=call.position,
                    tool=call.tool,
                    arguments=call.arguments,
                    status=call.status,
                    result_id=result,
                    started=call.started,
                    duration_ms=call.duration_ms,
                )
            )
    return len(ToolCall.objects.bulk_create(made, batch_size=1000))
