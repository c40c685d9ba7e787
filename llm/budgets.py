"""What background calls may spend in a day: for each user and for the server, in tokens and in list price.

The reservation is the open call itself: `reserve` and `ledger.open_call` run in one transaction, and the lock
that `reserve` takes holds until its end, so that two calls never share the same room. Turns never pass here.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, models
from django.db.models import Case, F, Q, Sum, When
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from llm.catalog import Model
from llm.models import ModelCall
from llm.prices import Usage, cost
from maxclaw import clock

if TYPE_CHECKING:
    from accounts.models import User

# One key for all reservations: the server's day is shared by every user.
LOCK_KEY = 0x6C6C6D_627564
TOKEN_COLUMNS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
)
ZERO = models.Value(Decimal(0), output_field=models.DecimalField(max_digits=20, decimal_places=8))


class BudgetExhausted(Exception):
    """Today's budget has no room for this call. `until` is the start of the next day, when it may be tried again."""

    def __init__(self, sentence: str, until: datetime) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.until = until


@dataclass(frozen=True)
class Reservation:
    """Room in the budgets, for `ledger.open_call(reserve=...)`. `cost` is None where a price is missing."""

    tokens: int
    cost: Decimal | None


@dataclass(frozen=True)
class Spent:
    """What background calls took of a day. Calls without a price count in tokens alone."""

    tokens: int
    cost: Decimal


def reserve(
    owner: "User | None",
    model: Model,
    estimated_input: int,
    max_output: int,
    purpose: str,
    *,
    expected_cache_read: int = 0,
) -> Reservation:
    """Take room for one background call, estimated at `estimated_input` + `max_output` tokens, of which the provider's
    cache is expected to give `expected_cache_read` at its own price.

    Must run inside the transaction that opens the call (RuntimeError otherwise). Raises BudgetExhausted when
    the day of the owner, or the server's, has no room for it.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("a reservation must be made in the transaction that opens its call")
    if purpose == ModelCall.Purpose.TURN:
        raise ValueError("turns have no budget and wait for none")
    tokens = estimated_input + max_output
    usage = Usage(
        input_tokens=estimated_input - expected_cache_read,
        output_tokens=max_output,
        cache_read_tokens=expected_cache_read,
    )
    price = cost(usage, model.prices_for(estimated_input))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
    if owner is not None:
        _check(owner, tokens, price)
    _check(None, tokens, price)
    return Reservation(tokens, price)


def spent_today(owner: "User | None") -> Spent:
    """What background calls took today: of this user, by the days of the user's time zone, or of the whole
    server (None), by days of UTC. Open calls count with what they reserved."""
    start, _end = _day_of(owner)
    calls = ModelCall.objects.filter(started__gte=start, reserved_tokens__gt=0)
    if owner is not None:
        calls = calls.filter(owner=owner)
    told = Q(input_tokens__isnull=False)
    # A request that failed before the server told any usage cost nothing; one whose end nobody saw may have.
    unknown = ~told & Q(outcome__in=["", ModelCall.Outcome.INTERRUPTED])
    used = sum((Coalesce(F(name), 0) for name in TOKEN_COLUMNS[1:]), start=Coalesce(F(TOKEN_COLUMNS[0]), 0))
    sums = calls.aggregate(
        tokens=Sum(Case(When(told, then=used), When(unknown, then=F("reserved_tokens")), default=0)),
        cost=Sum(
            Case(
                When(told, then=Coalesce(F("cost"), ZERO)),
                When(unknown, then=Coalesce(F("reserved_cost"), ZERO)),
                default=ZERO,
            ),
            output_field=models.DecimalField(max_digits=20, decimal_places=8),
        ),
    )
    return Spent(sums["tokens"] or 0, sums["cost"] or Decimal(0))


def _check(owner: "User | None", tokens: int, price: Decimal | None) -> None:
    most_tokens, most_dollars = (
        (settings.BUDGET_SERVER_TOKENS, settings.BUDGET_SERVER_DOLLARS)
        if owner is None
        else (settings.BUDGET_USER_TOKENS, settings.BUDGET_USER_DOLLARS)
    )
    spent = spent_today(owner)
    too_many = spent.tokens + tokens > most_tokens
    too_dear = price is not None and spent.cost + price > Decimal(str(most_dollars))
    if not too_many and not too_dear:
        return
    _start, end = _day_of(owner)
    sentence = (
        _("The server's budget for background work is spent for today.")
        if owner is None
        else _("This account's budget for background work is spent for today.")
    )
    raise BudgetExhausted(sentence, end)


def _day_of(owner: "User | None") -> tuple[datetime, datetime]:
    """Start and end of today, in UTC."""
    zone = UTC if owner is None else owner.zone
    today = clock.now().astimezone(zone).date()
    return _midnight(today, zone), _midnight(today + timedelta(days=1), zone)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time.min, zone).astimezone(UTC)
