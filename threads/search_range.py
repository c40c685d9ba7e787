"""Which rows a literal search of a conversation reads, and which of them hold a needle.

The range is every generation of the thread, and of the threads it was copied from up to that point. A row is left out
that was rewound (unless a copy of it lives on), that no model sees, that the framework wrote, that only brings old
words up again, or that is a copy of a row in the range: the original is shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.days import local
from threads import message_grams
from threads import search_statements as statements
from threads.looking_back import SAYS_NEW_WORDS
from threads.models import Message, Thread
from threads.visibility import Level, Viewer, can_flow, message_filter

ANCESTORS_MAX = 20
COUNT_MAX = 1_000
SHORT_MAX = 20_000
# Of the rows that seem to hold a word so many are looked at, a few more than are ever read: what a search costs must
# not grow with the conversation.
CANDIDATES_MAX = 256
# Long texts are compared in the database: all of them where there are few, so that they are counted exactly.
RECHECKED_FIRST = 64
RECHECKED_ALL = 256
LONG_WANTED = 40
POPULATION_MAX = 10_000
# Not what the framework wrote itself: its notes, and its interrupts. Results of tasks are event rows too, and content.
FROM_PEOPLE_AND_TOOLS = Q(meta__source__isnull=True) | ~(
    Q(meta__source="framework") | Q(meta__source__startswith="kernel/")
)
LAST_ROW = 2**63 - 1


@dataclass(frozen=True)
class Span:
    """One thread's part of a range: its rows up to a message, None for all."""

    thread_id: int
    upto: int | None

    @property
    def last(self) -> int:
        return LAST_ROW if self.upto is None else self.upto


@dataclass(frozen=True)
class Found:
    """Ids newest first. Not `complete`: there may be more."""

    ids: list[int]
    complete: bool


@dataclass(frozen=True)
class Matched:
    """(id, bits of the needles that it holds), bit n for needle n, newest first, of `short` texts with their length in
    bytes. `long` ones are shown and may hold them: `Range.held` tells. Not `complete`: there may be more."""

    short: list[tuple[int, int, int]]
    long: list[tuple[int, int]]
    complete: bool


@dataclass(frozen=True)
class SearchRow:
    """What is shown of a row. `wire` only where it has tool calls; `created` is in the person's own zone, so that its
    day is theirs."""

    id: int
    generation_id: int
    role: str
    text: str
    wire: str | None
    created: datetime


def standing() -> Q:
    """Rows that may be shown again: a model saw them, the framework did not write them, and they were not rewound, or
    a copy of theirs in the same thread lives on."""
    copies = Message.objects.filter(
        copied_from_id=OuterRef("pk"), thread_id=OuterRef("thread_id"), left_at_cut__isnull=True
    )
    rewound = Q(left_because=Message.LeftBecause.SUPERSEDED)
    return Q(model_visible=True, wire__isnull=False) & FROM_PEOPLE_AND_TOOLS & (~rewound | Q(Exists(copies)))


class Range:
    """The rows that a viewer may find in a conversation which the viewer may read. `only_cold` keeps those that were
    moved out of the context; `before` ends the viewer's own conversation before a row: the one that asks has the words
    of its query, and would find itself."""

    def __init__(self, viewer: Viewer, thread: Thread, *, only_cold: bool = False, before: int | None = None) -> None:
        self.owner_id = viewer.owner_id
        self.only_cold = only_cold
        self.spans = _spans(viewer, thread, before)

    def holding(self, needle: str) -> Found:
        """The rows that hold a folded needle. Where very many long ones may, the newest are read until there are
        LONG_WANTED. Within a transaction."""
        ids: list[int] = []
        complete = True
        for span in self.spans:
            short = self._read(statements.SHORT_HOLDING, span, needle=needle, limit=COUNT_MAX + 1)
            long, all_read = self._long_holding(span, needle)
            ids += sorted((row[0] for row in [*short[:COUNT_MAX], *long]), reverse=True)
            complete = complete and len(short) <= COUNT_MAX and all_read
        return Found(ids, complete)

    def holding_any(self, needles: Sequence[str]) -> Matched:
        """The rows that hold at least one of some folded needles, and which. Within a transaction."""
        named = {f"n{number}": needle for number, needle in enumerate(needles)}
        short: list[tuple[int, int, int]] = []
        long: dict[int, int] = {}
        complete = True
        for span in self.spans:
            sql = statements.short_holding_any(len(needles))
            rows = self._read(sql, span, limit=SHORT_MAX + 1, **named)
            complete = complete and len(rows) <= SHORT_MAX
            short += rows[:SHORT_MAX]
            # By themselves too, the rows that seem to hold all: common words may have many newer rows each.
            asked = [[needle] for needle in needles] + [list(needles)]
            by_asked = self._candidates(statements.CANDIDATES_SHOWN, span, asked, CANDIDATES_MAX)
            complete = complete and all(len(candidates) < CANDIDATES_MAX for candidates in by_asked)
            every = (1 << len(needles)) - 1
            for bits, candidates in zip([*(1 << bit for bit in range(len(needles))), every], by_asked, strict=True):
                for id in candidates:
                    long[id] = long.get(id, 0) | bits
        return Matched(short, list(long.items()), complete)

    def held(self, ids: Sequence[int], needles: Sequence[str]) -> dict[int, int]:
        """Bits of the folded needles that rows which are shown hold, by id: those of long rows that may hold them are
        read, because every run of three bytes of a word stands in many a long text without it."""
        named = {f"n{number}": needle for number, needle in enumerate(needles)}
        return dict(self._read(statements.long_holding(len(needles)), self.spans[0], ids=list(ids), **named))

    def texts(self, ids: Sequence[int]) -> dict[int, str]:
        """The folded text of those rows among `ids` that are shown, by id."""
        return dict(self._read(statements.FOLDED_TEXTS, self.spans[0], ids=list(ids)))

    def population(self) -> int:
        """How many rows the range has, at most POPULATION_MAX: enough to tell common words from rare ones."""
        counts = (self._read(statements.COUNT, span, limit=POPULATION_MAX)[0][0] for span in self.spans)
        return min(sum(counts), POPULATION_MAX)

    def is_empty(self) -> bool:
        """Whether there is nothing that could be found."""
        return not any(self._read(statements.ANY_SHOWN, span) for span in self.spans)

    def standing_rows(self) -> QuerySet[Message]:
        """All rows in range that may be shown again, copies beside their originals."""
        return Message.objects.filter(self._within(), self._stands(), owner_id=self.owner_id)

    def rows(self, ids: Sequence[int]) -> dict[int, SearchRow]:
        """What is shown of rows, by id."""
        return rows_shown(self.owner_id, ids)

    def _read(self, statement: str, span: Span, **parameters: Any) -> list[Any]:
        """The rows of one of the written statements."""
        common: dict[str, Any] = {
            "thread": span.thread_id,
            "owner": self.owner_id,
            "upto": span.last,
            "only_cold": self.only_cold,
            "threads": [each.thread_id for each in self.spans],
            "uptos": [each.last for each in self.spans],
        }
        with connection.cursor() as cursor:
            cursor.execute(statement, common | parameters)
            return cursor.fetchall()

    def _within(self) -> Q:
        return reduce(or_, (Q(thread_id=span.thread_id, **_upto(span)) for span in self.spans))

    def _stands(self) -> Q:
        return standing() & Q(left_because=Message.LeftBecause.COLD) if self.only_cold else standing()

    def _long_holding(self, span: Span, needle: str) -> tuple[list[Any], bool]:
        """Long rows that hold a needle and are shown, newest first, and whether all of them were read."""
        candidates = self._candidates(statements.CANDIDATES, span, [[needle]], LAST_ROW)[0]

        def holding(ids: Sequence[int]) -> list[Any]:
            return self._read(statements.SOME_HOLDING, span, needle=needle, ids=ids)

        return _read_until(LONG_WANTED, candidates, holding)

    def _candidates(self, statement: str, span: Span, asked: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        """For each set of needles, ids of the indexed rows that may hold all of it, newest first, at most so many."""
        thread = message_grams.thread_gram(span.thread_id)
        grams = [
            message_grams.array([thread, *dict.fromkeys(chain(*map(message_grams.grams_of_needle, needles)))])
            for needles in asked
        ]
        found: list[list[int]] = [[] for _needles in asked]
        with connection.cursor() as cursor:
            cursor.execute(statements.BY_GRAM_INDEX)
            for number, id in self._read(statement, span, grams=grams, limit=limit):
                found[number - 1].append(id)
            cursor.execute(statements.AS_USUAL)
        return found


def holding_anywhere(viewer: Viewer, needle: str) -> Found:
    """The rows that hold a folded needle in all conversations that a viewer may see: COUNT_MAX short ones, and long
    ones until there are COUNT_MAX. Which rows may be shown is asked before any limit, so that the others take no place
    of theirs. Copies of rows among them are left out. Within a transaction."""
    seen = Message.objects.filter(standing(), SAYS_NEW_WORDS, message_filter(viewer), owner_id=viewer.owner_id)
    seen = seen.filter(thread__deleted__isnull=True).order_by("-pk")
    asked: dict[str, Any] = {
        "grams": [message_grams.array(message_grams.grams_of_needle(needle))],
        "owner": viewer.owner_id,
        "upto": LAST_ROW,
        "limit": LAST_ROW,
    }
    with connection.cursor() as cursor:
        cursor.execute(statements.BY_GRAM_INDEX)
        cursor.execute(statements.CANDIDATES, asked)
        candidates = [row[1] for row in cursor.fetchall()]
        cursor.execute(statements.AS_USUAL)

    def holding(rows: QuerySet[Message]) -> QuerySet[Message, tuple[int, int | None]]:
        held = rows.extra(where=["strpos(threads_message.search_text, %s) > 0"], params=[needle])
        return held.values_list("pk", "copied_from_id")

    def long_holding(ids: Sequence[int]) -> list[tuple[int, int | None]]:
        # By themselves, so that no long text is read that is not shown.
        shown = list(seen.filter(pk__in=ids).values_list("pk", flat=True))
        return list(holding(seen.filter(pk__in=shown)))

    short = list(holding(seen.extra(where=["octet_length(threads_message.search_text) <= 2000"]))[: COUNT_MAX + 1])
    long, all_read = _read_until(COUNT_MAX, candidates, long_holding)
    found = dict([*short[:COUNT_MAX], *long])
    ids = [pk for pk, original in found.items() if original not in found]
    return Found(sorted(ids, reverse=True), all_read and len(short) <= COUNT_MAX)


def _read_until(
    wanted: int, candidates: Sequence[int], read: Callable[[Sequence[int]], list[Any]]
) -> tuple[list[Any], bool]:
    """What `read` makes of some candidates after others until it made as many as wanted, and whether all were read."""
    rows: list[Any] = []
    first, step = 0, RECHECKED_FIRST if len(candidates) > RECHECKED_ALL else RECHECKED_ALL
    while first < len(candidates) and len(rows) < wanted:
        rows += read(candidates[first : first + step])
        first, step = first + step, step * 2
    return rows, first >= len(candidates)


def rows_shown(owner_id: int, ids: Sequence[int]) -> dict[int, SearchRow]:
    """What is shown of rows of an owner, by id."""
    with connection.cursor() as cursor:
        cursor.execute(statements.SHOWN, {"ids": list(ids), "owner": owner_id})
        return {
            pk: SearchRow(pk, generation_id, role, text, wire, local(created, time_zone))
            for pk, generation_id, role, text, wire, created, time_zone in cursor.fetchall()
        }


def _upto(span: Span) -> dict[str, int]:
    return {} if span.upto is None else {"pk__lte": span.upto}


def _spans(viewer: Viewer, thread: Thread, before: int | None) -> list[Span]:
    """The thread itself, then what it was copied from, as far as the viewer may read it."""
    asks = before is not None and thread.pk == viewer.thread_id
    spans = [Span(thread.pk, before - 1 if asks and before is not None else None)]
    source = thread.copied_from_id
    while source is not None and len(spans) <= ANCESTORS_MAX:
        message = Message.objects.select_related("thread").only("id", "owner_id", "thread").filter(pk=source).first()
        if message is None or message.owner_id != viewer.owner_id:
            break
        ancestor = message.thread
        if ancestor.deleted is None and can_flow(Level.of_thread(ancestor), viewer.level):
            spans.append(Span(ancestor.pk, message.pk))
        source = ancestor.copied_from_id
    return spans
