"""A quote whose every private part stands nowhere else, and the search for them in what a client is told."""

import json
from typing import Any

from accounts.models import User
from tests.quotes.records import at
from tests.threads.records import exchange
from threads.lifecycle import create_thread
from threads.models import Thread

TEXT = "xylophone-canary"
# Of no catalog: no page offers it, so that it stands only where the quote's source is told of, and in its sentence.
LEVEL = "marimba-level"
# What a frozen quote keeps beside its card under names that nothing else has.
KEPT = (
    "text_length",
    "source_scope",
    "source_category",
    "target_scope",
    "target_category",
    "needs_confirm",
    "confirm_text",
    "confirmed_at",
)


def secret_source(owner: User) -> Thread:
    """An isolated conversation of a category of its own, whose one answer holds TEXT."""
    thread = create_thread(owner, title="Boats", scope="isolated")
    exchange(thread, answer=f"The word is {TEXT}.")
    Thread.objects.filter(pk=thread.pk).update(category=LEVEL)
    thread.refresh_from_db()
    return thread


def quote_of(source: Thread) -> dict[str, Any]:
    return at(source, source.messages.get(role="assistant"))


def card_of(source: Thread) -> dict[str, Any]:
    return {**quote_of(source), "title": "Boats"}


def leaked(told: Any, *unless: str) -> list[str]:
    """What of a quote is told that must not be, but for the words in `unless`."""
    said = told if isinstance(told, str) else json.dumps(told, default=str, ensure_ascii=False)
    return [word for word in (TEXT, LEVEL, *KEPT) if word in said and word not in unless]


def check(told: Any, source: Thread) -> None:
    """`told` names where the quote leads, and holds nothing else of it."""
    said = told if isinstance(told, str) else json.dumps(told, default=str, ensure_ascii=False)
    found = leaked(said)
    assert not found, found
    assert "isolated" not in said
    assert source.channel in said and "Boats" in said
