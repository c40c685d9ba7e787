"""A fork shows the cards of the tool calls that it copies."""

import pytest

from agent.copied_calls import copy_tool_calls
from agent.models import ToolCall
from agent.projection import message_views
from agent.revising import fork
from threads.lifecycle import create_thread
from threads.models import Message
from threads.transcript import append, live_generation, lock_thread, text_block

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(alice):
    """A conversation with one round of two calls, of which the second failed."""
    thread = create_thread(alice)
    generation = live_generation(thread)
    append(thread, generation, "user", text="Look", blocks=[text_block("Look")])
    blocks = [{"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {"at": n}} for n in range(2)]
    asked = append(thread, generation, "assistant", blocks=blocks)
    for number in range(2):
        result = append(
            thread,
            generation,
            "tool",
            text=f"seen {number}",
            blocks=[{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"seen {number}"}],
            tool_call_id=f"toolu_{number}",
        )
        ToolCall.objects.create(
            message=asked,
            thread=thread,
            owner=alice,
            call_id=f"toolu_{number}",
            position=number,
            tool="look",
            arguments={"at": number},
            status="failed" if number else "done",
            result=result,
            duration_ms=7,
        )
    append(thread, generation, "assistant", text="Seen.", blocks=[text_block("Seen.")])
    return thread


def cards(thread):
    return [
        {name: card[name] for name in ("tool", "arguments", "status", "duration_ms")} | {"text": card["result"]["text"]}
        for view in message_views(thread)
        for card in view["tool_calls"]
    ]


def test_a_fork_shows_the_same_cards(thread, alice):
    branch = fork(alice, thread.channel, Message.objects.get(thread=thread, text="Seen.").pk)
    assert len(cards(thread)) == 2
    assert cards(branch) == cards(thread)
    of_branch = ToolCall.objects.filter(thread=branch).select_related("result", "message")
    assert all(call.result.thread_id == call.message.thread_id == branch.pk for call in of_branch)


def test_a_fork_of_a_fork_does_too_and_nothing_is_copied_twice(thread, alice):
    branch = fork(alice, thread.channel, Message.objects.get(thread=thread, text="Seen.").pk)
    second = fork(alice, branch.channel, Message.objects.get(thread=branch, text="Seen.").pk)
    assert cards(second) == cards(thread)
    assert copy_tool_calls(lock_thread(second.pk)) == 0
    assert ToolCall.objects.count() == 6
