"""What model calls used and cost, day by day: the numbers behind the console's charts."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal

from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce, TruncDate

from llm.budgets import TOKEN_COLUMNS
from llm.models import ModelCall
from maxclaw import clock

PROMPT_COLUMNS = tuple(name for name in TOKEN_COLUMNS if name != "output_tokens")


@dataclass
class Sums:
    """Sums over calls. `dollars` covers the calls with a known price alone; `unpriced` counts the others that told
    usage, `untold` those of which no server ever told any."""

    calls: int = 0
    prompt_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    dollars: Decimal = Decimal(0)
    unpriced: int = 0
    untold: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and answer."""
        return self.prompt_tokens + self.output_tokens

    def add(self, other: "Sums") -> None:
        """Count another sum in."""
        self.calls += other.calls
        self.prompt_tokens += other.prompt_tokens
        self.cache_read_tokens += other.cache_read_tokens
        self.output_tokens += other.output_tokens
        self.dollars += other.dollars
        self.unpriced += other.unpriced
        self.untold += other.untold


@dataclass
class Costs:
    """The last days, the oldest first, and what each name (a model, a purpose) took on each of them."""

    days: list[date]
    by_day: dict[date, dict[str, Sums]]
    by_name: dict[str, Sums] = field(default_factory=dict)
    total: Sums = field(default_factory=Sums)


def costs(days: int, zone: tzinfo, by: str) -> Costs:
    """Sums of the last `days` days of the zone, today included, split by `model` or by `purpose`."""
    today = clock.now().astimezone(zone).date()
    first = today - timedelta(days=days - 1)
    rows = (
        ModelCall.objects.filter(started__gte=datetime.combine(first, time.min, zone))
        .annotate(day=TruncDate("started", tzinfo=zone))
        .values("day", by)
        .annotate(
            calls=Count("pk"),
            prompt=Sum(sum((Coalesce(F(name), 0) for name in PROMPT_COLUMNS[1:]), Coalesce(F(PROMPT_COLUMNS[0]), 0))),
            cache_read=Coalesce(Sum("cache_read_tokens"), 0),
            output=Coalesce(Sum("output_tokens"), 0),
            dollars=Sum("cost"),
            unpriced=Count("pk", filter=Q(cost__isnull=True, input_tokens__isnull=False)),
            untold=Count("pk", filter=Q(input_tokens__isnull=True)),
        )
    )
    found = Costs([first + timedelta(days=index) for index in range(days)], {})
    by_day: dict[date, dict[str, Sums]] = {day: defaultdict(Sums) for day in found.days}
    by_name: dict[str, Sums] = defaultdict(Sums)
    for row in rows:
        if row["day"] not in by_day:
            continue  # begun after midnight, while this was read
        sums = Sums(
            calls=row["calls"],
            prompt_tokens=row["prompt"],
            cache_read_tokens=row["cache_read"],
            output_tokens=row["output"],
            dollars=row["dollars"] or Decimal(0),
            unpriced=row["unpriced"],
            untold=row["untold"],
        )
        by_day[row["day"]][row[by]].add(sums)
        by_name[row[by]].add(sums)
        found.total.add(sums)
    found.by_day = {day: dict(names) for day, names in by_day.items()}
    found.by_name = dict(sorted(by_name.items(), key=lambda item: (-item[1].dollars, -item[1].tokens, item[0])))
    return found
