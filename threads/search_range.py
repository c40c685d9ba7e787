"""Which rows a literal search of a conversation reads, and which of them hold a needle.

The range is every generation of the thread, and of the threads it was copied from up to that point. A row is left out
that was rewound (unless a copy of it lives on), that no model sees, that the framework wrote, or that is a copy of a
row in the range: the original is shown. Comparing is by `strpos`, which knows no wildcards and no escapes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add, or_

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan

from threads.models import Message, Thread
from threads.visibility import Level, Viewer, can_flow

ANCESTORS_MAX = 20
COUNT_MAX = 1_000
MASKS_MAX = 20_000
POPULATION_MAX = 10_000
# Not what the framework wrote itself: its notes, and its interrupts. Results of tasks are event rows too, and content.
FROM_PEOPLE_AND_TOOLS = Q(meta__source__isnull=True) | ~(
    Q(meta__source="framework") | Q(meta__source__startswith="kernel/")
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
    """(id, bits of the needles that it holds) newest first. Not `complete`: there may be more."""

    rows: list[tuple[int, int]]
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


class Range:
    """The rows that a viewer may find in a conversation which the viewer may read. `only_cold` keeps those that were
    moved out of the context."""

    def __init__(self, viewer: Viewer, thread: Thread, *, only_cold: bool = False) -> None:
        self.owner_id = viewer.owner_id
        self.only_cold = only_cold
        self.spans = _spans(viewer, thread)

    def holding(self, needle: str) -> Found:
        """The rows that hold a folded needle."""
        ids: list[int] = []
        for span in self.spans:
            rows = self._of(span).filter(_holds(needle)).filter(self._shown())
            ids += rows.order_by("-pk").values_list("pk", flat=True)[: COUNT_MAX + 1]
        return Found(ids[:COUNT_MAX], complete=len(ids) <= COUNT_MAX)

    def holding_any(self, needles: Sequence[str]) -> Matched:
        """The rows that hold at least one of some folded needles, and which: bit n for needle n."""
        held = reduce(add, (Case(When(_holds(needle), then=1 << bit), default=0) for bit, needle in enumerate(needles)))
        found: list[tuple[int, int]] = []
        for span in self.spans:
            rows = self._of(span).filter(reduce(or_, map(_holds, needles))).filter(self._shown())
            found += rows.order_by("-pk").annotate(held=held).values_list("pk", "held")[: MASKS_MAX + 1]
        return Matched(found[:MASKS_MAX], complete=len(found) <= MASKS_MAX)

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
        copies = Message.objects.filter(
            copied_from_id=OuterRef("pk"), thread_id=OuterRef("thread_id"), left_at_cut__isnull=True
        )
        stands = Q(model_visible=True, wire__isnull=False) & FROM_PEOPLE_AND_TOOLS
        stands &= ~Q(left_because=Message.LeftBecause.SUPERSEDED) | Q(Exists(copies))
        return stands & Q(left_because=Message.LeftBecause.COLD) if self.only_cold else stands


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
