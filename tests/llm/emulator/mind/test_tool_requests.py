"""Question cards, tasks, remembering, and tools called by their names."""

import pytest

from tests.llm.emulator.mind.talking import ALL, ASK, DISPATCH, REMEMBER, SEARCH, Talk, tool


@pytest.mark.parametrize(
    ("words", "question", "options"),
    [
        ("Ask me which colour I want: red, green or blue", "Which colour you want?", ["red", "green", "blue"]),
        ("please ask me whether to go on", "Whether to go on?", ["Yes", "No"]),
        ("Ask me to choose between tea and coffee.", "To choose between tea and coffee?", ["tea", "coffee"]),
        ("问我想喝什么：茶、咖啡还是水", "想喝什么？", ["茶", "咖啡", "水"]),
        ("问我要不要继续", "要不要继续？", ["是", "否"]),
    ],
)
def test_it_asks_the_user(words, question, options):
    call = Talk(ASK).call(words)
    assert (call["name"], call["input"]) == ("ask_user_question", {"question": question, "options": options})


def test_a_question_without_options_has_none():
    assert Talk(ASK).call("ask me what my name is")["input"] == {"question": "What your name is?"}


def test_it_says_what_the_user_chose():
    talk = Talk(ASK)
    talk.call("Ask me which colour I want: red or green")
    assert talk.give("green") == ['You answered: "green"']


@pytest.mark.parametrize(
    ("words", "instructions"),
    [
        ("Start a task: count the lamps in the shop", "count the lamps in the shop"),
        ("please dispatch a background task to sort the books", "sort the books"),
        ("派任务：数一数店里的灯", "数一数店里的灯"),
    ],
)
def test_it_dispatches_tasks(words, instructions):
    call = Talk(DISPATCH).call(words)
    assert call == {
        "type": "tool_use",
        "name": "dispatch_task",
        "input": {"title": instructions, "instructions": instructions},
    }


def test_it_says_that_the_task_is_started():
    talk = Talk(DISPATCH)
    talk.call("Start a task: count the lamps")
    assert talk.give("Task started in channel ch-red.") == ["The task is started. Task started in channel ch-red."]


def test_it_works_on_a_task_it_was_given():
    talk = Talk(*ALL)
    note = "<framework>\nTask from conversation ch-red: Sum\n\nWhat is 6 * 7?\n</framework>"
    assert talk.text(note) == "6 * 7 = 42"


def test_it_remembers_when_asked():
    talk = Talk(REMEMBER)
    call = talk.call("Remember that my bicycle is green.")
    assert call["input"] == {"text": "my bicycle is green."}
    assert talk.give("Stored as f:9.") == ["Done. Stored as f:9."]


def test_a_tool_that_is_not_offered_is_named():
    assert "ask_user_question" in Talk(SEARCH).text("ask me which colour I want")


def test_a_tool_can_be_called_by_name():
    weather = tool("weather", city="string")
    assert Talk(weather).call('call weather {"city": "Lyon"}')["input"] == {"city": "Lyon"}
    talk = Talk(weather)
    talk.call('use the tool weather {"city": "Lyon"}')
    assert talk.give("Rain.") == ["The result of weather: Rain."]
    talk.call('call weather {"city": "Lyon"}')
    assert talk.give("No such city.", is_error=True) == ["weather failed: No such city."]


def test_a_demanded_tool_is_called_with_input_that_fits_its_schema():
    shape = {"type": "integer", "minimum": 3}
    counter = tool("counter", name="string", count=shape, kind={"enum": ["a", "b"]}, list={"type": "array"})
    talk = Talk(SEARCH, counter, tool_choice={"type": "tool", "name": "counter"})
    assert talk.call("Go.") == {
        "type": "tool_use",
        "name": "counter",
        "input": {"name": "Go.", "count": 3, "kind": "a", "list": []},
    }
    assert Talk(SEARCH, tool_choice={"type": "any"}).call("Go.")["name"] == "search_memory"


def test_a_json_format_is_kept():
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    talk = Talk(output_config={"format": {"type": "json_schema", "schema": schema}})
    assert talk.text("Is it?") == '{"ok": false}'
