"""Greetings, honesty about what it is, sums, the time, and words that are no question."""

import pytest

from tests.llm.emulator.mind.talking import ALL, OPENING, Talk


def test_a_greeting_says_what_it_is_the_first_time_alone():
    talk = Talk(*ALL)
    assert "not a language model" in talk.text("Hello!")
    assert talk.text("hi") == "Hello!"


@pytest.mark.parametrize("words", ["Who are you?", "Are you an AI?", "what can you do"])
def test_it_says_what_it_is_when_asked(words):
    talk = Talk(*ALL)
    talk.say("My bicycle is green.")
    assert talk.text(words).startswith("I am MaxClaw's built-in rule-based model, not a language model")


def test_in_chinese_too():
    assert "不是语言模型" in Talk().text("你是谁？")
    assert Talk().text("你好").startswith("你好！我是 MaxClaw 内置的规则模型")
    assert Talk().text("谢谢你") == "不客气。"


def test_other_answers_do_not_introduce_it():
    talk = Talk(*ALL)
    for words in ("My bicycle is green.", "What colour is my bicycle?", "2 + 2", "thanks", "What time is it?"):
        assert "language model" not in str(talk.say(words))


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ("What is 12 * 12?", "12 * 12 = 144"),
        ("2 + 2", "2 + 2 = 4"),
        ("calculate (3.5 + 1.5) / 2", "(3.5 + 1.5) / 2 = 2.5"),
        ("How much is 1,200 × 3?", "1,200 × 3 = 3,600"),
        ("2^10 =", "2^10 = 1,024"),
        ("12 加 3 等于多少？ 12+3", "12+3 = 15"),
        ("what is 7 - -3", "7 - -3 = 10"),
    ],
)
def test_small_sums(asked, value):
    assert Talk().text(asked) == value


@pytest.mark.parametrize("asked", ["What is 9**9**9**9?", "what is 10^64^64", "My number is 555-1234.", "2026-11-30"])
def test_what_is_no_sum_or_too_large_is_not_calculated(asked):
    assert " = " not in str(Talk().say(asked))


def test_division_by_zero_is_said():
    assert Talk().text("What is 1/0?") == "I cannot calculate 1/0: division by zero."


def test_it_says_what_the_time_note_says():
    assert (
        Talk()
        .text("What time is it?")
        .startswith("My context says: opened: Monday 2026-11-30 09:15 Europe/Paris. I have no clock")
    )
    later = OPENING.replace("opened: Monday 2026-11-30 09:15", "now: Tuesday 2026-12-01 10:00")
    assert "now: Tuesday 2026-12-01 10:00" in Talk(opening=later).text("今天几号？")
    assert "does not say" in Talk(opening=None).text("What's the date today?")


def test_a_statement_is_acknowledged_in_its_language():
    assert Talk().text("My bicycle is green.") == ('I have read "My bicycle is green."; ask me about it any time.')
    assert Talk().text("我的自行车是绿色的。").startswith("我读到了「我的自行车是绿色的。」")


def test_news_of_the_framework_is_passed_on():
    talk = Talk(*ALL)
    talk.say("My bicycle is green.")
    said = talk.text("<framework>\nTask ch-red (Paint) finished. Its result:\n\nIt is painted.\n</framework>")
    assert said.startswith("News of a task: Task ch-red (Paint) finished.")
    assert "It is painted." in said


def test_it_is_deterministic():
    first, second = Talk(*ALL), Talk(*ALL)
    for words in ("My bicycle is green.", "What colour is my bicycle?", "Where is my boat?"):
        assert first.say(words) == second.say(words)
