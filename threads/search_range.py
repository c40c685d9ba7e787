"""Which rows a literal search of a conversation reads, and which of them hold a needle.

The range is every generation of the thread, and of the threads it was copied from up to that point. A row is left out
that was rewound (unless a copy of it lives on), that no model sees, that the framework wrote, or that is a copy of a
row in the range: the original is shown. Comparing is by `strpos`, which knows no wildcards and no escapes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add, or_

from django.db import connection
from django.db.models import Case, Exists, F, Func, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan, LessThanOrEqual

from threads import message_grams
from threads.models import Message, MessageGrams, Thread
from threads.visibility import Level, Viewer, can_flow

ANCESTORS_MAX = 20
COUNT_MAX = 1_000
SHORT_MAX = 20_000
CANDIDATES_MAX = 2_000
# Long texts are compared in the database: all of them where there are few, so that they are counted exactly.
RECHECKED_AT_ONCE = 64
RECHECKED_ALL = 256
RECHECKED_MAX = 512
LONG_WANTED = 40
POPULATION_MAX = 10_000
# Not what the framework wrote itself: its notes, and its interrupts. Results of tasks are event rows too, and content.
FROM_PEOPLE_AND_TOOLS = Q(meta__source__isnull=True) | ~(
    Q(meta__source="framework") | Q(meta__source__startswith="kernel/")
)
# In the very words of the partial index of short rows.
IS_SHORT = LessThanOrEqual(
    Func(F("search_text"), function="octet_length", output_field=IntegerField()), message_grams.LONG_BYTES
)


@dataclass(frozen=True)
class Span:
    """One thread's part of a range: its rows up to a message, None for all."""

    thread_id: int
    upto: int | None


@dataclass(frozen=True)
class Found:
    """Ids newest first. Not `complete`: there may be more."""

    ids: list[int]
    complete: bool


@dataclass(frozen=True)
class Matched:
    """(id, bits of the needles that it holds), bit n for needle n, newest first. Of `long` texts it is known only that
    they may hold them, and be shown. Not `complete`: there may be more."""

    short: list[tuple[int, int]]
    long: list[tuple[int, int]]
    complete: bool


@dataclass(frozen=True)
class SearchRow:
    """What is shown of a row. `wire` only where it has tool calls."""

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
    moved out of the context."""

    def __init__(self, viewer: Viewer, thread: Thread, *, only_cold: bool = False) -> None:
        self.owner_id = viewer.owner_id
        self.only_cold = only_cold
        self.spans = _spans(viewer, thread)

    def holding(self, needle: str) -> Found:
        """The rows that hold a folded needle. Where very many long ones may, the newest are read until there are
        LONG_WANTED."""
        ids: list[int] = []
        complete = True
        for span in self.spans:
            rows = self._of(span).filter(IS_SHORT, _holds(needle)).filter(self._shown())
            short = list(rows.order_by("-pk").values_list("pk", flat=True)[: COUNT_MAX + 1])
            long, all_read = self._long_holding(span, needle)
            ids += sorted([*short[:COUNT_MAX], *long], reverse=True)
            complete = complete and len(short) <= COUNT_MAX and all_read
        return Found(ids, complete)

    def holding_any(self, needles: Sequence[str]) -> Matched:
        """The rows that hold at least one of some folded needles, and which."""
        held = reduce(add, (Case(When(_holds(needle), then=1 << bit), default=0) for bit, needle in enumerate(needles)))
        short: list[tuple[int, int]] = []
        long: dict[int, int] = {}
        complete = True
        for span in self.spans:
            rows = self._of(span).filter(IS_SHORT, reduce(or_, map(_holds, needles))).filter(self._shown())
            found = list(rows.order_by("-pk").annotate(held=held).values_list("pk", "held")[: SHORT_MAX + 1])
            complete = complete and len(found) <= SHORT_MAX
            short += found[:SHORT_MAX]
            for bit, candidates in enumerate(self._candidates(span, needles)):
                complete = complete and len(candidates) < CANDIDATES_MAX
                for id in candidates:
                    long[id] = long.get(id, 0) | 1 << bit
        return Matched(short, list(long.items()), complete)

    def texts(self, ids: Sequence[int]) -> dict[int, str]:
        """The folded text of those rows among `ids` that are shown, by id."""
        rows = Message.objects.filter(pk__in=ids, owner_id=self.owner_id).filter(self._shown())
        return dict(rows.values_list("pk", "search_text"))

    def population(self) -> int:
        """How many rows the range has, at most POPULATION_MAX: enough to tell common words from rare ones."""
        return min(sum(self._of(span)[:POPULATION_MAX].count() for span in self.spans), POPULATION_MAX)

    def is_empty(self) -> bool:
        """Whether there is nothing that could be found."""
        return not any(self._of(span).filter(self._shown()).exists() for span in self.spans)

    def rows(self, ids: Sequence[int]) -> dict[int, SearchRow]:
        """What is shown of rows, by id."""
        calls = Q(role=Message.Role.ASSISTANT) & GreaterThan(StrIndex("wire", Value('"tool_use"')), 0)
        rows = Message.objects.filter(pk__in=ids, owner_id=self.owner_id).annotate(
            calls=Case(When(calls, then=F("wire")), default=None)
        )
        values = rows.values_list("pk", "generation_id", "role", "text", "calls", "created")
        return {row[0]: SearchRow(*row) for row in values}

    def _of(self, span: Span) -> QuerySet[Message]:
        rows = Message.objects.filter(thread_id=span.thread_id, owner_id=self.owner_id)
        return rows if span.upto is None else rows.filter(pk__lte=span.upto)

    def _shown(self) -> Q:
        within = reduce(or_, (Q(thread_id=span.thread_id, **_upto(span)) for span in self.spans))
        originals = Message.objects.filter(within, self._stands(), pk=OuterRef("copied_from_id"))
        return self._stands() & (Q(copied_from__isnull=True) | Q(~Exists(originals)))

    def _stands(self) -> Q:
        return standing() & Q(left_because=Message.LeftBecause.COLD) if self.only_cold else standing()

    def _long_holding(self, span: Span, needle: str) -> tuple[list[int], bool]:
        """Ids of long rows that hold a needle, newest first, and whether all of them were read."""
        candidates = self._candidates(span, [needle])[0]
        step = RECHECKED_AT_ONCE if len(candidates) > RECHECKED_ALL else RECHECKED_ALL
        ids: list[int] = []
        for first in range(0, min(len(candidates), RECHECKED_MAX), step):
            rows = self._of(span).filter(pk__in=candidates[first : first + step]).filter(_holds(needle))
            ids += rows.filter(self._shown()).order_by("-pk").values_list("pk", flat=True)
            if len(ids) >= LONG_WANTED and step == RECHECKED_AT_ONCE:
                return ids, first + step >= len(candidates)
        return ids, len(candidates) <= RECHECKED_MAX

    def _candidates(self, span: Span, needles: Sequence[str]) -> list[list[int]]:
        """For each needle, ids of the indexed rows that may hold it, newest first, at most CANDIDATES_MAX."""
        queries = []
        for number, needle in enumerate(needles):
            grams = [message_grams.thread_gram(span.thread_id), *message_grams.grams_of_needle(needle)]
            rows = MessageGrams.objects.filter(owner_id=self.owner_id, grams__contains=grams)
            if span.upto is not None:
                rows = rows.filter(message_id__lte=span.upto)
            numbered = rows.order_by("-message_id").annotate(number=Value(number))
            queries.append(numbered.values_list("number", "message_id")[:CANDIDATES_MAX])
        found: list[list[int]] = [[] for _needle in needles]
        with _by_gram_index():
            for number, id in queries[0].union(*queries[1:], all=True) if len(queries) > 1 else queries[0]:
                found[number].append(id)
        return found


@contextmanager
def _by_gram_index() -> Iterator[None]:
    """Have the planner use the index of grams: it takes reading the table for cheap, because it does not know what
    fetching the long arrays costs."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        yield
        cursor.execute("SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_indexscan TO DEFAULT")


def _upto(span: Span) -> dict[str, int]:
    return {} if span.upto is None else {"pk__lte": span.upto}


def _holds(needle: str) -> GreaterThan:
    return GreaterThan(StrIndex("search_text", Value(needle)), 0)


def _spans(viewer: Viewer, thread: Thread) -> list[Span]:
    """The thread itself, then what it was copied from, as far as the viewer may read it."""
    spans = [Span(thread.pk, None)]
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
