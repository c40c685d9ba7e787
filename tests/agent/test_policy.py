"""Which tools may run on a turn, and what a conversation is told of those that may not."""

import json

import pytest
from django.db import transaction

from agent import dispatch, policy
from agent.models import ToolCall
from agent.registry import all_tools
from llm.emulator.client import text, tool_use
from maxclaw.database_threads import in_database
from tests.agent.renewing import play
from threads.lifecycle import create_thread
from threads.models import Thread


def nested(owner, depth):
    """A conversation, or a task of a task of one."""
    thread = create_thread(owner)
    for _level in range(depth):
        thread = create_thread(owner, kind=Thread.Kind.TASK, parent=thread)
    return thread


@pytest.mark.django_db
def test_a_note_names_what_a_conversation_may_not_use_and_never_the_tool_of_shadow_turns(alice):
    notes = [policy.of_turn(nested(alice, depth)).note() for depth in range(4)]
    assert notes[:3] == [None] * 3
    assert "dispatch_task" in notes[3] and policy.SHADOW_TOOL not in notes[3]
    # Whatever else may come to be unavailable, that one is refused and not named.
    every = policy.Policy(unavailable=frozenset(tool.name for tool in all_tools()))
    assert all(every.refusal(tool, tool.name) for tool in all_tools())
    named = every.note()
    assert [tool.name for tool in all_tools() if tool.name not in named] == [policy.SHADOW_TOOL]


@pytest.mark.django_db(transaction=True)
def test_what_may_not_run_is_in_the_list_of_tools_named_in_the_opening_and_refused(emulator, alice):
    emulator.answer(
        tool_use(policy.SHADOW_TOOL, {"facts": []}),
        tool_use("dispatch_task", {"title": "More", "instructions": "Do it."}),
    )
    emulator.answer(text("Done by myself."))
    parent = nested(alice, 2)

    async def scenario(world):
        task = await in_database(start, alice, parent)
        await world.rest(task)
        return task

    task = play(emulator, scenario)
    request = emulator.requests(path="/v1/messages")[0]  # its result begins a turn of its parent
    body = json.loads(request["body"])
    assert {policy.SHADOW_TOOL, "dispatch_task"} <= {tool["name"] for tool in body["tools"]}
    opening = body["messages"][0]["content"][0]["text"]
    assert policy.of_turn(task).note() in opening
    assert policy.SHADOW_TOOL not in json.dumps(body["messages"]) + json.dumps(body["system"])
    calls = ToolCall.objects.filter(thread=task)
    assert sorted((call.tool, call.status) for call in calls) == [
        ("dispatch_task", "refused"),
        (policy.SHADOW_TOOL, "refused"),
    ]
    assert not Thread.objects.filter(parent=task).exists()


@transaction.atomic
def start(owner, parent):
    return dispatch.start_task(owner, parent, "Sums", "Add 2 and 3.", client_key="1")
