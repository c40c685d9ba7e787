"""The one schedule: the minute tick. Everything periodic hangs on it."""

from django.db import connection, transaction
from django_q.models import Schedule

TICK_NAME = "minute-tick"
TICK_FUNCTION = "agent.tasks.tick"
# Key space of PostgreSQL's advisory locks: the first number is this project's, the second names the lock.
ADVISORY_LOCK_SPACE = 0x6D6178
SCHEDULE_LOCK = 1
PREPARATION_LOCK = 2


def ensure_schedule() -> Schedule:
    """Make sure that exactly one schedule runs the tick every minute, at second 0; several may ask at once.

    The tick is told the minute it is for (`intended`), which is its idempotency key.
    """
    wanted = {
        "func": TICK_FUNCTION,
        "schedule_type": Schedule.MINUTES,
        "minutes": 1,
        "repeats": -1,
        "intended_date_kwarg": "intended",
    }
    with transaction.atomic(), connection.cursor() as cursor:
        # django-q's table knows no unique names.
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [ADVISORY_LOCK_SPACE, SCHEDULE_LOCK])
        # django-q goes by the machine's clock, and so does the database; ours may be moved.
        cursor.execute("SELECT date_trunc('minute', now()) + interval '1 minute'")
        next_minute = cursor.fetchone()[0]
        found = list(Schedule.objects.filter(name=TICK_NAME).order_by("id"))
        if not found:
            return Schedule.objects.create(name=TICK_NAME, next_run=next_minute, **wanted)
        tick, surplus = found[0], found[1:]
        Schedule.objects.filter(id__in=[schedule.id for schedule in surplus]).delete()
        for field, value in wanted.items():
            setattr(tick, field, value)
        if tick.next_run is None or tick.next_run > next_minute:
            tick.next_run = next_minute
        tick.save()
        return tick
