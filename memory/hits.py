"""What a search found, one message at a time, for whoever shows it to a person: the same engine and ranking as the
text that a model reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from maxclaw.database_threads import in_database
from memory.excerpts import excerpt, is_shown
from memory.meaning_search import MeaningHit, needles_of
from memory.searching import found_by_both
from threads.history import ROLE_NAMES
from threads.literal_search import literal_search_everywhere
from threads.literal_windows import LiteralHit
from threads.models import Message
from threads.visibility import Viewer

HITS_MAX = 40
HIT_MAX_CHARS = 320


@dataclass(frozen=True)
class Hit:
    """A message that was found. `excerpt` is what answers of it, in characters as they were said."""

    channel: str
    title: str
    message_id: int
    role: str
    created: datetime
    excerpt: str


@dataclass(frozen=True)
class Hits:
    """At most HITS_MAX messages, best first, and how many finds are not among them. Not `exact`: at least so many."""

    hits: list[Hit]
    left_out: int
    exact: bool


async def search_hits(viewer: Viewer, query: str, channel: str | None = None) -> Hits:
    """Search as `memory.searching.search` does: first the messages that hold the words, then those that are near in
    meaning. Without a channel those that hold the whole query are found in every conversation, whatever tool it was
    given to or came from. Raises HistoryRefused for the same."""
    literal, by_meaning, asked = await found_by_both(viewer, query, channel)
    if literal is None:
        literal = await in_database(literal_search_everywhere, viewer, query)
    shown = literal.hits
    hits = await in_database(_of_literal, shown)
    known = {hit.message_id for hit in hits}
    needles = needles_of(asked.text)
    for hit in by_meaning.hits:
        if hit.message_id not in known and not is_shown(hit, shown):
            known.add(hit.message_id)
            hits.append(_of_meaning(hit, needles))
    left_out = max(len(hits) - HITS_MAX, 0) + max(by_meaning.total - len(by_meaning.hits), 0) + literal.left_out
    return Hits(hits[:HITS_MAX], left_out, exact=literal.exact)


def _of_literal(shown: Sequence[LiteralHit]) -> list[Hit]:
    """The best window of each message."""
    best: dict[int, LiteralHit] = {}
    for hit in shown:
        best.setdefault(hit.message_id, hit)
    rows = Message.objects.select_related("thread").only("created", "thread__channel", "thread__title")
    found = rows.in_bulk(list(best))
    return [
        Hit(
            channel=found[id].thread.channel,
            title=found[id].thread.title,
            message_id=id,
            role=ROLE_NAMES[Message.Role(hit.role)],
            created=found[id].created,
            excerpt=hit.window.text,
        )
        for id, hit in best.items()
        if id in found
    ]


def _of_meaning(hit: MeaningHit, needles: Sequence[str]) -> Hit:
    return Hit(
        channel=hit.channel,
        title=hit.title,
        message_id=hit.message_id,
        role=ROLE_NAMES[Message.Role(hit.role)],
        created=hit.created,
        excerpt=excerpt(hit.text, needles, HIT_MAX_CHARS),
    )
