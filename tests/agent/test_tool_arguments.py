"""Whatever a model writes as a tool's arguments, it reads what to change, never of a failure of the server."""

from inspect import iscoroutinefunction

import pytest
from django.db import transaction

from agent import registry
from agent.models import TaskFrame, ToolCall
from agent.registry import ToolContext, ToolError, WaitForUser
from agent.tool_arguments import PROBLEM_MAX_CHARS
from memory import steward_tools
from memory.refusals import FactRefused
from tests.test_strangers import FREE_ARGUMENTS
from tests.threads.records import exchange, thread_of
from threads.history import SEARCH_RESULT_MAX_CHARS

pytestmark = pytest.mark.django_db

TOOLS = {tool.name: tool for tool in [*registry.all_tools(), *steward_tools.tools().values()]}
NUMBERS = (2.0, 1.5, -1, 0, 1, 2**63, 10**400, 1e300, -1e300)
ODD = (*NUMBERS, None, True, False, "", "3", "m:3", "x" * 20_000, "长" * 3, "f:1", [], [1.0], {}, {"a": [None]}, [[]])
EVIDENCE = [{"kind": "user-authored", "message_id": 1}]


@pytest.mark.parametrize("value", [2.0, 1.0, 1e300, True, "3", None, [1], {"a": 1}])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("message_context_read", "message_id"),
        ("message_context_read", "offset"),
        ("message_history_read", "before"),
        ("message_history_read", "generation_id"),
    ],
)
def test_what_is_no_integer_is_told_where_it_stands(name, place, value):
    needed = {"message_context_read": {"message_id": 1}, "message_history_read": {"channel": "x"}}[name]
    objection = TOOLS[name].objection({**needed, place: value})
    assert objection == f"Invalid arguments for {name} at {place}: {value!r} is not of type 'integer'"


def test_what_is_missing_is_named_and_nothing_is_quoted_at_length():
    assert TOOLS["message_history_read"].objection({}) == (
        "Invalid arguments for message_history_read: give channel or generation_id"
    )
    objection = TOOLS["message_context_read"].objection({"message_id": "x" * 100_000})
    assert len(objection) <= len("Invalid arguments for message_context_read") + PROBLEM_MAX_CHARS
    assert objection.endswith("is not of type 'integer'")


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_arguments_of_any_tool_are_a_failure_of_the_server(calling, name):
    tool = TOOLS[name]
    context, known = calling
    properties = tool.parameters["properties"]
    required = {place: known[place] for place in tool.parameters.get("required", [])}
    whole = {place: known[place] for place in properties if place in known}
    for place in [*properties, "unknown"]:
        for odd in ODD:
            for others in (required, whole):
                if tool.objection(arguments := {**others, place: odd}) is None and not iscoroutinefunction(tool.run):
                    said = what_is_said(tool, context, arguments)
                    assert said.strip() and len(said) <= SEARCH_RESULT_MAX_CHARS, arguments


def what_is_said(tool, context, arguments):
    with transaction.atomic():
        try:
            with transaction.atomic():
                return tool.run(context, arguments).text
        except (ToolError, FactRefused) as refusal:
            return str(refusal)
        except WaitForUser:
            return "a question"
        finally:
            transaction.set_rollback(True)


@pytest.fixture
def calling(alice):
    """A context of a conversation's, and arguments that name what is in it."""
    thread = thread_of(alice)
    question, answer = exchange(thread, "Use metres from now on", "I do.")
    frame = TaskFrame.objects.create(thread=thread, owner=alice)
    call = ToolCall.objects.create(message=answer, thread=thread, owner=alice, frame=frame, call_id="c", tool="t")
    named = {"channel": thread.channel, "message_id": question.pk, "before": answer.pk, "fact_id": 1, "reason": "so"}
    named |= {"generation_id": answer.generation_id, "evidence": EVIDENCE, "replaces": "f:1"}
    return ToolContext(thread.pk, alice.pk, frame.pk, call.pk), FREE_ARGUMENTS | named
