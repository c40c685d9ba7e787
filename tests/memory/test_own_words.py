"""What a person pasted or quotes is not said by them, where a sign tells it from their own words."""

import pytest

from memory.asking import only_asks
from memory.assent import accepts
from memory.own_words import own_words

MAIL = "Anna prefers tea."


@pytest.mark.parametrize(
    "pasted",
    [
        f"```\n{MAIL}\n```",
        f"~~~ text\n{MAIL}\n~~~",
        f"```\n{MAIL}",
        f"> {MAIL}",
        f"  >> {MAIL}",
        f"<document>\n{MAIL}\n</document>",
        f'<email from="Anna">\n{MAIL}\n</email>',
        f"-----Original Message-----\nFrom: Anna\n\n{MAIL}",
        f"---------- Forwarded message ---------\n{MAIL}",
        f"Begin forwarded message:\n\n{MAIL}",
        f"From: Anna <anna@example.org>\nSent: Monday\nTo: Bob\nSubject: Tea\n\n{MAIL}",
        f"From: Anna\nTo: Bob\nDate: Monday\nSubject: Tea\n\n{MAIL}",
        f"On Mon, 8 May 2023 at 13:56, Anna <anna@example.org> wrote:\n{MAIL}",
        f"-----原始邮件-----\n{MAIL}",
        f"发件人：安娜\n发送时间：2023年5月8日\n收件人：鲍勃\n主题：茶\n\n{MAIL}",
        f"在2023年5月8日，安娜写道：\n{MAIL}",
        f"[13:56, 5/8/2023] Anna: {MAIL}",
        f"[2023-05-08 13:56] Anna: {MAIL}",
        f"12/05/2023, 10:32 - Anna: {MAIL}",
    ],
)
def test_pasted_and_quoted_words_are_not_the_persons_own(pasted):
    assert own_words(pasted) == ""
    assert own_words(f"Mine.\n{pasted}") == "Mine."


@pytest.mark.parametrize(
    "words",
    [
        "I decided the following:\n- tabs\n- no tea",
        "From: Lisbon\nTo: Porto\nDate: Monday",
        "On tea: I prefer green. What I wrote: nothing.",
        "I use <b>tabs</b> -- always -- and [12:30] for lunch.",
        "Meet at 12:30: I prefer that.",
        "我喜欢安静的早晨：每天如此。",
        "2 > 1 and ~~never~~ always tabs",
    ],
)
def test_own_words_with_some_of_the_same_signs_are_their_own(words):
    assert own_words(words) == words


def test_what_is_pasted_neither_accepts_nor_keeps_a_question_from_being_one():
    assert not accepts("-----Original Message-----\nYes.")
    assert accepts("Yes.\n\nOn Monday, 8 May, Anna wrote:\nNo.")
    assert only_asks(f"Should we use tea?\n[13:56, 5/8/2023] Anna: {MAIL}")
