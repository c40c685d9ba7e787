"""On which day something was for a person: the one place that decides it, for pages, prompts and budgets alike."""

from datetime import datetime
from zoneinfo import ZoneInfo


def local(moment: datetime, time_zone: str) -> datetime:
    """A moment (aware) as clocks show it in a person's time zone, daylight saving included: its date is their day."""
    return moment.astimezone(ZoneInfo(time_zone))
