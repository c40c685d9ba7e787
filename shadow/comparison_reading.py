"""The rows that a comparison is made of, read within a window of days in a transaction that cannot write."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from llm.models import ModelCall
from llm.prices import prices_from_json
from maxclaw import clock
from memory import backlog
from memory.models import Digest, Episode, Fact, FactEvidence
from shadow import comparison
from shadow.comparison import Item, Reading
from shadow.comparison_figures import Spent
from shadow.models import ShadowBaseline, ShadowFactProposal, ShadowRun
from threads.models import Message, Thread

DAYS = 7
STEWARD, STEWARD_ON_MAIN, OTHER_CALLS = "steward", "steward-on-main", "repeated"
LIVE = "live"
# Outcomes of calls whose end nobody saw.
BROKEN_OFF = ("", ModelCall.Outcome.INTERRUPTED)
OVER = (ShadowRun.Status.COMPLETED, ShadowRun.Status.FAILED, ShadowRun.Status.CANCELLED)


@dataclass(frozen=True)
class Window:
    """Days from `first` to `last`, both within, in the server's time zone."""

    first: date
    last: date

    @property
    def since(self) -> datetime:
        return datetime.combine(self.first, time.min, timezone.get_default_timezone())

    @property
    def until(self) -> datetime:
        return datetime.combine(self.last + timedelta(days=1), time.min, timezone.get_default_timezone())

    def of(self, rows: QuerySet[Any], column: str = "created") -> QuerySet[Any]:
        """Those of the rows that are within the window."""
        return rows.filter(**{f"{column}__gte": self.since, f"{column}__lt": self.until})


def last_week(days: int = DAYS) -> Window:
    """The days up to today."""
    today = clock.now().astimezone(timezone.get_default_timezone()).date()
    return Window(today - timedelta(days=days - 1), today)


@dataclass
class Rows:
    """`steward` and `shadow` are what is compared; `outside` counts facts of the steward's that shadows cannot write:
    of main conversations, of words from before shadows began to read, or isolated since. `rejected` counts proposals
    that did not hold. `examined` holds how often each due message was read, by reader and the way its generation
    ended."""

    steward: list[Item] = field(default_factory=list)
    shadow: list[Item] = field(default_factory=list)
    outside: int = 0
    rejected: int = 0
    spent: list[Spent] = field(default_factory=list)
    examined: dict[str, dict[str, list[int]]] = field(default_factory=dict)


@contextmanager
def reading_only() -> Iterator[None]:
    """A transaction in which the database refuses every write, and whose queries all see the same moment unless a
    caller's transaction was begun before."""
    isolation = "" if connection.in_atomic_block else "ISOLATION LEVEL REPEATABLE READ, "
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET TRANSACTION {isolation}READ ONLY")
        yield


def read(window: Window) -> Rows:
    """Everything of the window but evidence and verdicts, which `comparison_evidence` reads."""
    found = Rows()
    _read_facts(window, found)
    _read_proposals(window, found)
    found.spent = [*_runs(window), *_calls_beside_runs(window), *_calls_of_steward(window)]
    found.examined = _examined(window)
    return found


def facts_of_steward(window: Window) -> QuerySet[Fact]:
    """What the steward wrote in these days, whatever became of it."""
    return window.of(Fact.objects.filter(writer=Fact.Writer.STEWARD)).defer("embedding")


def _read_facts(window: Window, found: Rows) -> None:
    sources: dict[int, set[str]] = defaultdict(set)
    web: set[int] = set()
    rows = FactEvidence.objects.filter(fact__in=facts_of_steward(window).values("pk"))
    for fact_id, message, accepted, generation, kind, other, baseline in rows.values_list(
        "fact_id",
        "message_id",
        "accepted_by_id",
        "generation_id",
        "message__thread__kind",
        "generation__thread__kind",
        "message__generation__shadow_baseline__baseline",
    ):
        sources[fact_id] |= pointers(message, accepted, generation)
        # Where it was accepted is the later of the two: a shadow that reads it may well propose it.
        read_by_none = message is not None and baseline is not None and max(message, accepted or 0) <= baseline
        if Thread.Kind.WEB in (kind, other) and not read_by_none:
            web.add(fact_id)
    for fact in facts_of_steward(window).order_by("pk").only("owner", "text", "category", "scope"):
        isolated = fact.scope == Thread.Scope.ISOLATED
        if isolated or fact.pk not in web:
            found.outside += 1
            continue
        found.steward.append(_item("f", fact, sources[fact.pk]))


def _read_proposals(window: Window, found: Rows) -> None:
    proposals = window.of(ShadowFactProposal.objects.prefetch_related("evidence"))
    for proposal in proposals.order_by("pk").defer("raw"):
        if proposal.validation_error:
            found.rejected += 1
            continue
        cited = set().union(
            *(pointers(row.message_id, row.accepted_by_id, row.generation_id) for row in proposal.evidence.all())
        )
        found.shadow.append(_item("p", proposal, cited))


def _item(kind: str, row: Any, sources: Iterable[str]) -> Item:
    categories = frozenset([row.category]) if row.category else frozenset()
    return Item(f"{kind}:{row.pk}", row.owner_id, row.text, frozenset(sources), categories)


def pointers(message: int | None, accepted: int | None, generation: int | None) -> set[str]:
    """Evidence as it is written in a comparison."""
    found = {f"m:{pk}" for pk in (message, accepted) if pk is not None}
    return found | ({f"g:{generation}"} if generation is not None else set())


def _runs(window: Window) -> Iterator[Spent]:
    runs = window.of(ShadowRun.objects.filter(status__in=OVER))
    held = ShadowFactProposal.objects.filter(run__in=runs.values("pk"), validation_error="")
    fruitful = set(held.values_list("run_id", flat=True))
    # A run that was cancelled is over before its call is closed, which then knows first what it used.
    calls = ModelCall.objects.in_bulk(runs.exclude(call=None).values_list("call", flat=True))
    for run in runs.order_by("pk").iterator():
        completed = run.status == ShadowRun.Status.COMPLETED
        waited = (run.ended - run.created).total_seconds() * 1000 if completed and run.ended else None
        call = calls.get(run.call or 0)
        yield _spent(
            run if call is None else call,
            path=run.path or "–",
            status=run.status,
            called=run.call is not None or run.input_tokens is not None,
            duration_ms=run.duration_ms if completed else None,
            waited_ms=None if waited is None else int(waited),
            barren=run.pk not in fruitful,
            refused=call is not None and call.outcome not in BROKEN_OFF,
        )


def _calls_beside_runs(window: Window) -> Iterator[Spent]:
    """Calls of shadows that no run names: attempts before the one that its run kept."""
    named = ShadowRun.objects.filter(call__isnull=False).values("call")
    calls = window.of(ModelCall.objects.filter(purpose=ModelCall.Purpose.SHADOW), "started")
    for call in calls.exclude(outcome="").exclude(pk__in=named).order_by("pk").iterator():
        yield _spent(call, path=OTHER_CALLS, status=call.outcome, barren=True, refused=call.outcome not in BROKEN_OFF)


def _calls_of_steward(window: Window) -> Iterator[Spent]:
    calls = window.of(ModelCall.objects.filter(purpose=ModelCall.Purpose.STEWARD, thread_id__isnull=False), "started")
    calls = calls.exclude(outcome="")
    episodes = Episode.objects.filter(generation__in=calls.values("generation_id"), created__lt=window.until)
    cited = FactEvidence.objects.filter(fact__writer=Fact.Writer.STEWARD)
    fruitful = set(
        Digest.objects.filter(episode__in=episodes, message__in=cited.values("message")).values_list(
            "episode_id", flat=True
        )
    )
    began: dict[int, list[tuple[datetime, int]]] = defaultdict(list)
    for pk, generation, created in episodes.order_by("created").values_list("pk", "generation_id", "created"):
        began[generation].append((created, pk))
    main = set(Thread.objects.filter(kind=Thread.Kind.MAIN).values_list("pk", flat=True))
    for call in calls.order_by("pk").iterator():
        before = [pk for created, pk in began[call.generation_id or 0] if created <= call.started]
        complete = call.outcome == ModelCall.Outcome.COMPLETE
        yield _spent(
            call,
            path=STEWARD_ON_MAIN if call.thread_id in main else STEWARD,
            status=call.outcome,
            refused=call.outcome not in BROKEN_OFF,
            duration_ms=call.total_ms if complete else None,
            barren=not before or before[-1] not in fruitful,
        )


def _spent(row: Any, *, refused: bool, **fields: Any) -> Spent:
    """`refused`: of a call that told no usage the server said no, and charged nothing. What an answer cost that was
    broken off before it told any, nobody knows."""
    prices = prices_from_json(row.prices)
    told = row.input_tokens is not None
    return Spent(
        model=row.model or "–",
        input_tokens=row.input_tokens or 0,
        output_tokens=row.output_tokens or 0,
        cache_read_tokens=row.cache_read_tokens or 0,
        cache_write_tokens=(row.cache_write_5m_tokens or 0) + (row.cache_write_1h_tokens or 0),
        cost=Decimal(0) if refused and not told else row.cost,
        output_price=None if prices is None else prices.get("output"),
        **fields,
    )


def _examined(window: Window) -> dict[str, dict[str, list[int]]]:
    """How often each message of the window was read by shadows and by the steward, by the way its generation ended."""
    rows = window.of(Message.objects.filter(backlog.readable(), pk__gt=F("generation__shadow_baseline__baseline")))
    rows = rows.filter(thread__kind=Thread.Kind.WEB, thread__scope=Thread.Scope.OPEN, thread__deleted__isnull=True)
    due: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for generation, message, reason in rows.order_by("pk").values_list("generation_id", "pk", "generation__end_reason"):
        due[reason or LIVE].append((generation, message))
    readings = _readings({generation for pairs in due.values() for generation, _message in pairs})
    digested = set(Digest.objects.filter(message__in=rows.values("pk")).values_list("message_id", flat=True))
    return {
        "shadow": {way: comparison.times_read(pairs, readings) for way, pairs in sorted(due.items())},
        STEWARD: {
            way: [int(message in digested) for _generation, message in pairs] for way, pairs in sorted(due.items())
        },
    }


def _readings(generations: set[int]) -> list[Reading]:
    """What each completed run read: from where its generation stood when it began. Of two that ran at once, both count
    what both read."""
    baselines = ShadowBaseline.objects.filter(pk__in=generations).values_list("pk", "baseline")
    reached: dict[int, list[tuple[datetime | None, int]]] = {pk: [(None, baseline)] for pk, baseline in baselines}
    found = []
    runs = ShadowRun.objects.filter(generation__in=generations, status=ShadowRun.Status.COMPLETED).order_by("pk")
    for generation, through, started, ended in runs.values_list("generation_id", "through_seq", "started", "ended"):
        assert generation is not None and through is not None and started is not None  # a rule of completed runs
        ends = reached[generation]
        after = max(seq for end, seq in ends if end is None or end <= started)
        found.append(Reading(generation, after, through))
        ends.append((ended, through))
    return found
