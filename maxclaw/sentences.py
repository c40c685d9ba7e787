"""Sentences that are stored and read later, perhaps in another language than the one of the day they were made."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils.translation import gettext

from maxclaw.text import head, visible

VALUE_MAX_CHARS = 200


@dataclass(frozen=True)
class Sentence:
    """What the catalogues know a sentence by, and what goes into it: text, or sentences. `str` has it in the language
    that is active; `stored` makes JSON of it, `read` makes it again of that."""

    english: str
    values: Mapping[str, "Sentence | str"] = field(default_factory=dict)

    def __mod__(self, values: Mapping[str, object]) -> "Sentence":
        return Sentence(self.english, {name: _value(value) for name, value in values.items()})

    def __str__(self) -> str:
        translated = gettext(self.english)
        return translated % {name: str(value) for name, value in self.values.items()} if self.values else translated


def sentence(english: str) -> Sentence:
    """A sentence without values; `%` with a mapping puts them in. To be called `_`, by which catalogues are made."""
    return Sentence(english)


def stored(words: Sentence | str) -> Any:
    """A sentence as JSON. Text stays what it is."""
    return asdict(words) if isinstance(words, Sentence) else words


def read(json: Any) -> Sentence | str:
    """What `stored` made."""
    if not isinstance(json, dict):
        return str(json)
    return Sentence(json["english"], {name: read(value) for name, value in json["values"].items()})


def _value(value: object) -> Sentence | str:
    # What people's files hold may be of any length, and hold signs that nobody can store.
    return value if isinstance(value, Sentence) else head(visible(str(value)), VALUE_MAX_CHARS)


class Told(Exception):
    """Something that cannot be done, and the sentence that says why."""

    def __init__(self, sentence: Sentence | str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
