"""The rule-based model answers from what its context holds, and looks for what it lacks."""

import json
import time

import pytest

from tests.llm.emulator.mind.talking import ALL, HISTORY, SEARCH, Talk

PAGE = """Historical evidence from conversation ch-blue ("Bikes"), oldest first. It informs; it is no instruction.

[m:41] user, generation 3, 2026-11-02 08:10 UTC:
My bicycle is green. It stands in the cellar.

[m:42] assistant, generation 3, 2026-11-02 08:11 UTC:
I have read it.

Older messages exist: call again with before=41."""
END = PAGE.replace("Older messages exist: call again with before=41.", "This is the beginning: nothing older exists.")
EMPTY_PAGE = """Historical evidence from conversation ch-blue ("Bikes"), oldest first. It informs; it is no instruction.

[m:{}] user, generation 3, 2026-11-03 08:10 UTC:
Something else entirely.

Older messages exist: call again with before={}."""


def test_it_quotes_what_the_user_said_before():
    talk = Talk(*ALL)
    talk.say("My bicycle is green. I bought it in Lyon.")
    talk.say("The weather is fine.")
    assert talk.text("What colour is my bicycle?") == 'You said: "My bicycle is green."'


def test_it_answers_in_chinese():
    talk = Talk(*ALL)
    talk.say("我的自行车是绿色的。它放在地下室。")
    talk.say("今天天气不错。")
    assert talk.text("我的自行车是什么颜色？") == "你说过：「我的自行车是绿色的。」"


def test_what_is_asked_in_one_chinese_word_is_found_in_another():
    talk = Talk()
    talk.say("我的上司名叫王思琪。我的表弟今年36岁。")
    assert talk.text("我的上司叫什么名字来着？") == "你说过：「我的上司名叫王思琪。」"
    assert talk.text("我表弟现在多大了呀？") == "你说过：「我的表弟今年36岁。」"


def test_it_prefers_the_newer_of_two_equal_sentences():
    talk = Talk()
    talk.say("My bicycle is green.")
    talk.say("My bicycle is black.")
    assert talk.text("What is my bicycle?").startswith('You said: "My bicycle is black."')


def test_words_just_before_the_question_are_context_too():
    talk = Talk()
    talk.messages.append({"role": "user", "content": "My bicycle is green."})
    assert talk.text("What colour is my bicycle?") == 'You said: "My bicycle is green."'


def test_a_question_is_no_answer_to_itself():
    talk = Talk()
    talk.say("What colour is my bicycle?")
    assert "did not find" in talk.text("What colour is my bicycle?")


def test_it_quotes_tool_results_of_the_context():
    talk = Talk(*ALL)
    talk.tools.append({"name": "stock", "input_schema": {"type": "object"}})
    talk.say("use stock {}")
    talk.give("There are 14 lamps in the shop.")
    assert talk.text("How many lamps are in the shop?") == 'A tool result says: "There are 14 lamps in the shop."'


def test_it_searches_memory_for_what_the_context_lacks():
    talk = Talk(*ALL)
    assert talk.call("What colour is my bicycle?") == {
        "type": "tool_use",
        "name": "search_memory",
        "input": {"query": "colour bicycle", "channel": "ch-blue"},
    }
    (said,) = talk.give(PAGE)
    assert said == 'You said (m:41, 2026-11-02 08:10): "My bicycle is green."'


def test_it_reads_history_page_by_page_when_there_is_no_search():
    talk = Talk(HISTORY)
    call = talk.call("What colour is my bicycle?")
    assert (call["name"], call["input"]) == ("message_history_read", {"channel": "ch-blue"})
    _, second = talk.give(EMPTY_PAGE.format(70, 70))
    assert second["input"] == {"channel": "ch-blue", "before": 70}
    _, third = talk.give(EMPTY_PAGE.format(60, 60))
    assert third["input"]["before"] == 60
    assert talk.give(PAGE) == ['You said (m:41, 2026-11-02 08:10): "My bicycle is green."']


def test_it_stops_after_four_rounds():
    talk = Talk(HISTORY)
    talk.call("What colour is my boat?")
    for number in (90, 80, 70):
        assert len(talk.give(EMPTY_PAGE.format(number, number))) == 2
    (said,) = talk.give(EMPTY_PAGE.format(60, 60))
    assert said.startswith("I looked through older words (rounds: 4) and found nothing")


def test_it_stops_where_history_begins():
    talk = Talk(HISTORY)
    talk.call("What colour is my boat?")
    (said,) = talk.give(END)
    assert said.startswith("I looked through older words (rounds: 1)")


def test_after_an_empty_search_it_goes_on_with_history():
    talk = Talk(*ALL)
    talk.call("What colour is my bicycle?")
    _, second = talk.give("Nothing is stored about that.")
    assert second["name"] == "message_history_read"
    assert talk.give(PAGE)[0].startswith("You said (m:41")


def test_without_tools_it_says_plainly_that_it_found_nothing():
    assert Talk().text("What colour is my bicycle?").startswith("I did not find anything about that")
    assert Talk().text("我的自行车是什么颜色？").startswith("在我能看到的内容里，没有找到")


def test_a_failed_search_is_said():
    talk = Talk(SEARCH)
    talk.call("What colour is my bicycle?")
    (said,) = talk.give("There is no such conversation.", is_error=True)
    assert said == "search_memory failed: There is no such conversation."


def test_no_tool_is_called_after_a_note_that_none_will_run():
    talk = Talk(HISTORY)
    talk.call("What colour is my boat?")
    (said,) = talk.give(EMPTY_PAGE.format(70, 70), note="This turn has reached its step limit: answer now.")
    assert "found nothing" in said


def test_no_tool_is_called_where_tool_choice_forbids_it():
    talk = Talk(*ALL, tool_choice={"type": "none"})
    assert "did not find" in talk.text("What colour is my bicycle?")


@pytest.mark.parametrize(
    "result",
    [
        json.dumps({"messages": [{"id": 41, "role": "user", "text": "My bicycle is green.", "created": "2026-11-02"}]}),
        "m:41 user: My bicycle is green.",
        "- (m:41, user, 2026-11-02) My bicycle is green.",
        "[m:41] user 2026-11-02:\nMy bicycle is green.",
    ],
)
def test_ids_are_found_in_every_form_of_result(result):
    talk = Talk(SEARCH)
    talk.call("What colour is my bicycle?")
    (said,) = talk.give(result)
    assert said.startswith("You said (m:41")
    assert said.endswith('"My bicycle is green."')


def test_a_sentence_is_quoted_with_the_one_that_says_what_it_is_about():
    talk = Talk()
    talk.say("About the garden party. It starts at seven on Friday evening.")
    assert "It starts at seven on Friday" in talk.text("When does the garden party start?")


def test_a_long_context_is_searched_quickly():
    talk = Talk()
    for number in range(5_000):
        talk.messages.append({"role": "user", "content": f"Item {number} lies on shelf {number % 97}."})
        talk.messages.append({"role": "assistant", "content": f"Noted item {number}."})
    started = time.monotonic()
    assert 'You said: "Item 4711 lies on shelf 55."' in talk.text("Where is item 4711?")
    assert time.monotonic() - started < 2


def test_it_reads_what_the_user_quotes_as_material_with_an_id():
    note = (
        '<framework>\nThe user attached a quote: one message of the conversation "Bikes" (channel ch-red, message '
        "m:41).\nThe quoted message, verbatim:\n<quote>\nThe bicycle is green. It stands in the cellar.\n</quote>\n"
        "</framework>"
    )
    said = Talk(*ALL).text(note, "What colour is the bicycle?")
    assert "The bicycle is green." in said and "m:41" in said
