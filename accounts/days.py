"""On which day something was for a person: the one place that decides it, for pages, prompts and budgets alike."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

# At either end of the calendar a moment has a date in one time zone and none in the next, and no second after it.
FIRST_YEAR, LAST_YEAR = 2, 9998


def local(moment: datetime, zone: str | tzinfo) -> datetime:
    """A moment (aware) as clocks show it in a person's time zone, daylight saving included: its date is their day.

    One at the end of the calendar, which that zone cannot show, stays in UTC: a day that is off by one is better than
    a page that fails.
    """
    try:
        return moment.astimezone(ZoneInfo(zone) if isinstance(zone, str) else zone)
    except OverflowError:
        return moment.astimezone(UTC)


def moment_of(text: str) -> datetime:
    """A time from elsewhere, in ISO 8601, as UTC; without an offset it is UTC. Raises ValueError for what is no time,
    and for one that `in_calendar` refuses."""
    read = datetime.fromisoformat(text)
    try:
        return in_calendar(read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC))
    except OverflowError:
        raise ValueError(text) from None


def in_calendar(moment: datetime) -> datetime:
    """The moment (in UTC). Raises ValueError for one outside FIRST_YEAR to LAST_YEAR, whose day not every zone can
    show."""
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"{moment.isoformat()} is at the end of the calendar")
    return moment
