"""Searching old words: the literal part and the part by meaning at once, merged into one bounded result.

The engine behind the tool `search_memory`; whoever searches for a person calls it too. No message is ever pushed into
a context because it resembled another: this runs when it is asked.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings

from llm.embedding import EmbeddingError
from maxclaw.database_threads import in_database
from memory import answering, excerpts
from memory.fact_search import FactHit, fact_hits
from memory.meaning_range import Reach, reach, vector_of
from memory.meaning_search import MeaningHit, MeaningResult, meaning_search
from memory.merging import merged
from threads.literal_search import LiteralHit, LiteralResult, literal_search
from threads.search_terms import terms_of
from threads.visibility import Viewer

logger = logging.getLogger("maxclaw.search")

NO_FACTS = "No facts are stored."
NOTHING_STORED = "Nothing is stored that could be searched by meaning."
NOTHING_NEAR = "Nothing stored is near enough in meaning, and nothing has these words."
NOTHING_MORE = "What is near in meaning stands above already."
BY_WORDS_ALONE = "(Ranked by words alone: nothing can be compared by meaning now.)"


@dataclass(frozen=True)
class SearchResult:
    """`text` is what a model reads, at most SEARCH_RESULT_MAX_CHARS characters; `literal` and `meaning` what it was
    made of, `literal_left_out` how many more messages have the words."""

    text: str
    literal: list[LiteralHit] = field(default_factory=list)
    literal_left_out: int = 0
    meaning: list[MeaningHit] = field(default_factory=list)


async def search(viewer: Viewer, query: str, channel: str | None = None) -> SearchResult:
    """Search one conversation (and what it was copied from), or everything that the viewer may see.

    Raises HistoryRefused, whose text says what to change: an empty query or one shorter than the smallest term, an
    unknown channel or another owner's (one answer), one's own that the viewer's level forbids.
    """
    facts: list[FactHit] = []
    if channel is None:
        terms_of(query)
        (literal, found), facts = await asyncio.gather(
            found_by_both(viewer, query, None), in_database(fact_hits, viewer, query)
        )
    else:
        literal, found = await found_by_both(viewer, query, channel)
    answer = await _answer(viewer, query, found, facts)
    text = result_text(query, found, facts, literal, channel, answer)
    if literal is None:
        return SearchResult(text, meaning=found.hits)
    return SearchResult(text, literal.hits, literal.left_out, found.hits)


async def found_by_both(viewer: Viewer, query: str, channel: str | None) -> tuple[LiteralResult | None, MeaningResult]:
    """What either part finds; the literal one only in a conversation that is named. Raises HistoryRefused."""
    terms_of(query)
    if channel is None:
        return None, await _by_meaning(viewer, query, None)
    both = await asyncio.gather(
        in_database(literal_search, viewer, channel, query),
        _by_meaning(viewer, query, channel),
        return_exceptions=True,
    )
    literal, by_meaning = both
    # Both were waited for, so that no work goes on behind a refusal.
    if isinstance(literal, BaseException):
        raise literal
    if isinstance(by_meaning, BaseException):
        raise by_meaning
    return literal, by_meaning


def result_text(
    query: str,
    found: MeaningResult,
    facts: Sequence[FactHit],
    literal: LiteralResult | None = None,
    channel: str | None = None,
    answer: str | None = None,
) -> str:
    """What was found, as a model reads it. `answer` stands in the place of the list where one was written."""
    shown = literal.hits if literal is not None else []
    other = answer if answer is not None else partial(_listed, query, found, facts, shown, channel)
    return merged(None if literal is None else literal.text, other)


async def _by_meaning(viewer: Viewer, query: str, channel: str | None) -> MeaningResult:
    searched: Reach = await in_database(reach, viewer, channel)
    compared = None
    if searched.model is not None:
        try:
            compared = await asyncio.to_thread(vector_of, query, searched.model, searched.category)
        except EmbeddingError as error:
            logger.warning("A search goes by words alone: %s", error.text)
    vector, threshold = compared if compared is not None else (None, 1.0)
    return await in_database(meaning_search, searched, query, vector, threshold)


async def _answer(viewer: Viewer, query: str, found: MeaningResult, facts: Sequence[FactHit]) -> str | None:
    if settings.MEMORY_ANSWER != "synthesize" or not (found.hits or facts):
        return None
    return await answering.answer(viewer, query, found.hits, facts)


def _listed(
    query: str,
    found: MeaningResult,
    facts: Sequence[FactHit],
    shown: Sequence[LiteralHit],
    channel: str | None,
    room: int,
) -> str:
    """The part beside the literal one, in `room` characters."""
    lines = [f"f:{fact.fact_id} {fact.text}" for fact in facts]
    if channel is None and not facts:
        lines.append(NO_FACTS)
    if not found.hits:
        lines.append(NOTHING_STORED if found.nothing_stored else NOTHING_NEAR)
    elif found.by_words_alone:
        lines.append(BY_WORDS_ALONE)
    before = "\n".join(lines)
    room -= len(before) + 2
    listed = excerpts.render(found.hits, query, room, total=found.total, shown=shown, channel=channel)
    if found.hits and not listed:
        listed = NOTHING_MORE
    return "\n\n".join(filter(None, [before, listed]))
