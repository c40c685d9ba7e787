"""What a person said is a whole sentence of their own, stated: not a part of one, a quotation or a question."""

import pytest

from memory.own_sentences import says

HATES = "I hate coriander with a passion."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Hello. I HATE coriander  with a passion! And mint.", HATES),
        ("I hate coriander\nwith a passion", HATES),
        ("As I said, I hate coriander with a passion.", HATES),
        ("It is late\n\nI hate coriander with a passion.", HATES),
        ("I don’t eat meat.", "I don't eat meat"),
        ("你好。我喜欢安静的早晨。走吧", "我喜欢安静的早晨"),
        ("I use version 3.5 at home.", "I use version 3.5 at home."),
    ],
)
def test_a_whole_sentence_was_said(text, sentence):
    assert says(text, sentence)


@pytest.mark.parametrize(
    "text",
    [
        "It is not true that I hate coriander with a passion.",
        "It is not true that\nI hate coriander with a passion.",
        "> I hate coriander with a passion.\nMy brother wrote this.",
        "```\nI hate coriander with a passion.\n```",
        "My brother wrote:\nI hate coriander with a passion.",
        "My brother wrote:\n\nI hate coriander with a passion.",
        "My brother wrote:\n\n\nHello. I hate coriander with a passion.",
        'He wrote "Hello. I hate coriander with a passion. Bye."',
        "他说：“I hate coriander with a passion.”",
        "I hate coriander with a passion?",
        "I hate coriander with a passion, said nobody.",
        "Never say: I hate coriander with a passion.",
    ],
)
def test_a_part_a_quotation_and_a_question_were_not(text):
    assert not says(text, HATES)
