"""What staff judge the memory by: how much was read, how it grows, what it rests on, what nobody uses."""

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import TruncDate

from maxclaw import clock
from memory.models import Fact, FactEvidence, FactUse
from memory.standing import stale_facts
from threads.models import Message, Thread


@dataclass
class Standing:
    """Active facts of one kind: `used` were found or briefed once at least, `unused` never, and `stale` ones rest on
    rewound words alone, whether used or not."""

    used: int = 0
    unused: int = 0
    stale: int = 0


@dataclass
class Statistics:
    """`days` are the last ones, the oldest first; `read` and `waiting` count people's own messages of each day that
    were digested and that were not; `written` counts facts by day and kind; `evidence` pieces of active facts by
    kind."""

    days: list[date]
    read: dict[date, int]
    waiting: dict[date, int]
    written: dict[str, dict[date, int]]
    evidence: dict[str, int]
    standing: dict[str, Standing] = field(default_factory=dict)

    @property
    def coverage(self) -> float | None:
        """The share that was digested of what people said in these days, None where nothing was said."""
        read, waiting = sum(self.read.values()), sum(self.waiting.values())
        return read / (read + waiting) if read + waiting else None


def used() -> Exists:
    """Facts that were found or briefed once at least."""
    return Exists(FactUse.objects.filter(fact_id=OuterRef("pk")))


def said_by_people() -> QuerySet[Message]:
    """People's own messages that are there to be digested: of conversations that are not isolated, copies not
    counted again."""
    return Message.objects.filter(
        role=Message.Role.USER,
        copied_from=None,
        thread__kind__in=(Thread.Kind.MAIN, Thread.Kind.WEB),
        thread__scope=Thread.Scope.OPEN,
        thread__deleted=None,
    )


def statistics(days: int, zone: tzinfo) -> Statistics:
    """The statistics of the last `days` days of the zone, today included; evidence and standing are of all active
    facts, whenever they were written."""
    today = clock.now().astimezone(zone).date()
    listed = [today - timedelta(days=days - 1 - index) for index in range(days)]
    start = datetime.combine(listed[0], time.min, zone)
    read, waiting = dict.fromkeys(listed, 0), dict.fromkeys(listed, 0)
    for row in (
        _by_day(said_by_people(), start, zone)
        .values("day")
        .annotate(read=Count("digest"), waiting=Count("pk", filter=Q(digest=None)))
    ):
        read[row["day"]], waiting[row["day"]] = row["read"], row["waiting"]
    written = {kind: dict.fromkeys(listed, 0) for kind in Fact.Kind.values}
    for row in _by_day(Fact.objects.all(), start, zone).values("day", "kind").annotate(number=Count("pk")):
        written[row["kind"]][row["day"]] = row["number"]
    return Statistics(listed, read, waiting, written, _evidence(), standing())


def standing() -> dict[str, Standing]:
    """Active facts by kind: used, unused and stale."""
    found = {kind: Standing() for kind in Fact.Kind.values}
    active = Fact.objects.filter(status=Fact.Status.ACTIVE)
    for kind, is_used, number in active.annotate(is_used=used()).values_list("kind", "is_used").annotate(Count("pk")):
        setattr(found[kind], "used" if is_used else "unused", number)
    for kind, number in stale_facts(active).values_list("kind").annotate(Count("pk")):
        found[kind].stale = number
    return found


def _by_day(rows: QuerySet[Any], start: datetime, zone: tzinfo) -> QuerySet[Any]:
    return rows.filter(created__gte=start).annotate(day=TruncDate("created", tzinfo=zone)).order_by()


def _evidence() -> dict[str, int]:
    counted = FactEvidence.objects.filter(fact__status=Fact.Status.ACTIVE).values_list("kind").annotate(Count("pk"))
    return {kind: dict(counted).get(kind, 0) for kind in FactEvidence.Kind.values}
