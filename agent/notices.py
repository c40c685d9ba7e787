"""Sentences of the server's for a person, which stand in a conversation and never enter a prompt.

A notice is stored as it was first said. Where its code says all of it, a reader has it in the language of the day it is
read: no model read the row, so nothing that was sent changes with it. Others name what was only known then, such as a
number or an error, and stay as they were said.
"""

from django.utils.translation import gettext_lazy

from threads.models import Message

RENEWED = "generation"
THINKING_DROPPED = "thinking-dropped"

_SENTENCES = {
    RENEWED: gettext_lazy("The context was renewed: what was said before is summarised."),
    THINKING_DROPPED: gettext_lazy(
        "The model refused its own earlier reasoning, so it was left out and the question asked again."
    ),
}


def sentence_of(code: str) -> str:
    """The whole sentence of a notice with this code, in the language that is active."""
    return str(_SENTENCES[code])


def text_of(message: Message) -> str:
    """What a person reads of a row, in the language that is active where that may be."""
    code = message.meta.get("notice")
    return sentence_of(code) if code in _SENTENCES else message.text
