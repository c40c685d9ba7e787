"""Searching old words: the literal part and the part by meaning at once, merged into one bounded result.

The engine behind the tool `search_memory`; whoever searches for a person calls it too. No message is ever pushed into
a context because it resembled another: this runs when it is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from django.conf import settings

from maxclaw.database_threads import in_database
from maxclaw.text import head, visible
from memory import answering, excerpts, fact_search
from memory.fact_lines import lines_within
from memory.fact_search import FactHit, FactsFound
from memory.meaning_range import Reach, reach
from memory.meaning_search import MeaningHit, MeaningResult, meaning_search
from memory.merging import merged, was_cut
from memory.query_vectors import QueryVectors
from threads.literal_search import LiteralResult, literal_search
from threads.literal_windows import LiteralHit
from threads.search_terms import WORDS_MAX_CHARS, terms_of
from threads.visibility import Viewer

NO_FACTS = "No facts are stored."
NO_FACT_NEAR = "No fact that is stored is near enough in meaning."
FACTS_HEADING = "# What is remembered (facts; a decision outranks a passing remark)"
SAID_HEADING = "# What was said in conversations"
FACTS_LEFT_OUT = "({count} more facts were cut. Narrow the query to see them.)"
# The rest of the part beside the literal one is for what was said.
FACTS_SHARE = 0.5
NOTHING_STORED = "Nothing is stored that could be searched by meaning."
NOTHING_NEAR = "Nothing stored is near enough in meaning, and nothing has these words."
NOTHING_MORE = "What is near in meaning stands above already."
BY_WORDS_ALONE = "(Ranked by words alone: nothing can be compared by meaning now.)"


# Notes that facts are used; returns those that are still there.
UseFacts = Callable[[Sequence[int]], Awaitable[set[int]]]


@dataclass(frozen=True)
class SearchResult:
    """`text` is what a model reads, at most SEARCH_RESULT_MAX_CHARS characters; `literal` and `meaning` what it was
    made of, `literal_left_out` how many more messages have the words; `facts` those that `text` may show. `left_out`
    is how many messages, excerpts and facts that were found are not in `text`; not `exact`: at least so many."""

    text: str
    literal: list[LiteralHit] = field(default_factory=list)
    literal_left_out: int = 0
    left_out: int = 0
    exact: bool = True
    meaning: list[MeaningHit] = field(default_factory=list)
    facts: list[FactHit] = field(default_factory=list)


async def search(
    viewer: Viewer, query: str, channel: str | None = None, use: UseFacts | None = None, before: int | None = None
) -> SearchResult:
    """Search one conversation (and what it was copied from), or everything that the viewer may see. `use` notes that
    facts were found, before anything is made of them. `before` is the message that asks.

    Raises HistoryRefused, whose text says what to change: an empty query, one shorter than the smallest term or longer
    than a message may be, an unknown channel or another owner's (one answer), one's own that the viewer's level
    forbids.
    """
    literal, found, asked = await found_by_both(viewer, query, channel, before)
    # After a refusal nothing more is looked for.
    facts = await fact_search.find(viewer, asked)
    if use is not None and facts.hits:
        used = await use([hit.fact_id for hit in facts.hits])
        facts = replace(facts, hits=[hit for hit in facts.hits if hit.fact_id in used])
    answer = await _answer(viewer, asked.text, found, facts.hits)
    left_out: list[int] = []
    text = result_text(asked.text, found, facts, literal, channel, answer, left_out)
    words_left_out = 0 if literal is None else literal.left_out
    return SearchResult(
        text,
        literal=[] if literal is None else literal.hits,
        literal_left_out=words_left_out,
        left_out=words_left_out + sum(left_out),
        exact=(literal is None or literal.exact) and not was_cut(text),
        meaning=found.hits,
        facts=facts.hits,
    )


async def found_by_both(
    viewer: Viewer, query: str, channel: str | None, before: int | None = None
) -> tuple[LiteralResult | None, MeaningResult, QueryVectors]:
    """What either part finds, the literal one only in a conversation that is named; and the query's vectors, with as
    much of the query as is compared: a longer one is found word for word. Raises HistoryRefused."""
    searched: Reach = await in_database(_checked_reach, viewer, query, channel)
    asked = QueryVectors(head(visible(query), WORDS_MAX_CHARS), searched.category)
    if channel is None:
        return None, await _by_meaning(searched, asked), asked
    by_words = in_database(partial(literal_search, viewer, channel, query, before=before))
    both = await asyncio.gather(by_words, _by_meaning(searched, asked), return_exceptions=True)
    literal, by_meaning = both
    # Both were waited for, so that no work goes on behind a refusal.
    if isinstance(literal, BaseException):
        raise literal
    if isinstance(by_meaning, BaseException):
        raise by_meaning
    return literal, by_meaning, asked


def _checked_reach(viewer: Viewer, query: str, channel: str | None) -> Reach:
    """What is searched, for a query that asks for something. Raises HistoryRefused."""
    terms_of(query)
    return reach(viewer, channel)


def result_text(
    query: str,
    found: MeaningResult,
    facts: FactsFound | None,
    literal: LiteralResult | None = None,
    channel: str | None = None,
    answer: str | None = None,
    left_out: list[int] | None = None,
) -> str:
    """What was found, as a model reads it. `facts` None: they were not looked for. `answer` stands in the place of the
    list where one was written. `left_out` gains how many facts and excerpts have no room."""
    shown = literal.hits if literal is not None else []
    other = (
        answer
        if answer is not None
        else partial(_listed, query, found, facts, shown, channel, [] if left_out is None else left_out)
    )
    return merged(None if literal is None else literal.text, other)


async def _by_meaning(searched: Reach, asked: QueryVectors) -> MeaningResult:
    compared = await asked.by(searched.model) if searched.model is not None else None
    return await in_database(meaning_search, searched, asked.text, compared)


async def _answer(viewer: Viewer, query: str, found: MeaningResult, facts: Sequence[FactHit]) -> str | None:
    if settings.MEMORY_ANSWER != "synthesize" or not (found.hits or facts):
        return None
    return await answering.answer(viewer, query, found.hits, facts)


def _listed(
    query: str,
    found: MeaningResult,
    facts: FactsFound | None,
    shown: Sequence[LiteralHit],
    channel: str | None,
    left_out: list[int],
    room: int,
) -> str:
    """The part beside the literal one, in `room` characters."""
    lines = _facts(facts, channel, left_out, room)
    if not found.hits:
        lines.append(NOTHING_STORED if found.nothing_stored else NOTHING_NEAR)
    elif found.by_words_alone:
        lines.append(BY_WORDS_ALONE)
    before = "\n".join(lines)
    room -= len(before) + 2
    listed, excerpts_left_out = excerpts.render(
        found.hits, query, room, total=found.total, shown=shown, channel=channel
    )
    left_out.append(excerpts_left_out)
    if found.hits and not listed:
        listed = NOTHING_MORE
    return "\n\n".join(filter(None, [before, listed]))


def _facts(facts: FactsFound | None, channel: str | None, left_out: list[int], room: int) -> list[str]:
    """The lines of the facts with their headings. In a conversation that was named nothing is said of their lack."""
    if facts is None:
        return []
    if not facts.hits:
        said = NO_FACTS if facts.nothing_stored else NO_FACT_NEAR
        return [said] if channel is None else []
    lines = lines_within(facts.hits, round(room * FACTS_SHARE))
    cut = len(facts.hits) - len(lines)
    left_out.append(cut)
    return [FACTS_HEADING, *lines, *([FACTS_LEFT_OUT.format(count=cut)] if cut else []), "", SAID_HEADING]
