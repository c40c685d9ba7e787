"""How the work goes, in numbers: the queue, the tick, the workers, the leases. What the console's health page shows."""

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count
from django_q.models import OrmQ, Task

from agent import taking
from agent.models import InboxItem
from llm import catalog, embedding, router
from llm.catalog import emulator_in_use
from maxclaw import heartbeat, rewriting
from maxclaw.schedule import TICK_FUNCTION
from threads.models import Thread

# The tick runs every minute; twice missed is a reason to look.
TICK_LATE_SECONDS = 150.0
# Each worker takes a task within a poll; more waiting than this is a queue that grows.
QUEUE_LONG = 100


@dataclass(frozen=True)
class Work:
    """Ages are seconds; None: there never was one. `unread_categories`: what search by meaning leaves out;
    `unread_by_light`: what no light model may read, so that memory learns nothing of it."""

    queued_tasks: int
    tick_age: float | None
    failed_jobs: list[str]
    worker_age: float | None
    running_threads: int
    waiting_items: int
    lapsed: list[Thread]
    emulator: bool
    unread_categories: str
    unread_by_light: str
    rewriting: rewriting.Progress

    @property
    def tick_late(self) -> bool:
        return self.tick_age is None or self.tick_age > TICK_LATE_SECONDS

    @property
    def workers_silent(self) -> bool:
        return self.worker_age is None or self.worker_age > heartbeat.STALE_SECONDS

    @property
    def queue_long(self) -> bool:
        return self.queued_tasks > QUEUE_LONG

    @property
    def alarms(self) -> int:
        """How many things somebody should look at."""
        return sum((self.tick_late, self.workers_silent, self.queue_long, bool(self.lapsed), bool(self.failed_jobs)))


def work() -> Work:
    """The state of the work now."""
    age, failed = _newest_tick()
    running = Thread.objects.filter(state=Thread.State.RUNNING).aggregate(number=Count("pk"))["number"]
    return Work(
        queued_tasks=OrmQ.objects.count(),
        tick_age=age,
        failed_jobs=failed,
        worker_age=heartbeat.newest_worker_age(),
        running_threads=running,
        waiting_items=InboxItem.objects.filter(state=InboxItem.State.WAITING).count(),
        lapsed=list(taking.lapsed_threads().select_related("owner").order_by("lease_until")[:50]),
        emulator=emulator_in_use(),
        unread_categories=", ".join(embedding.unread_categories()),
        unread_by_light=", ".join(router.unread_categories(catalog.LIGHT)),
        rewriting=rewriting.progress(),
    )


def _newest_tick() -> tuple[float | None, list[str]]:
    """Age of the newest finished tick, and which of its jobs failed."""
    newest = Task.objects.filter(func=TICK_FUNCTION).order_by("-stopped").first()
    if newest is None:
        return None, []
    with connection.cursor() as cursor:
        # django-q goes by the machine's clock, and so does the database; ours may be moved.
        cursor.execute("SELECT extract(epoch FROM clock_timestamp() - %s)::float8", [newest.stopped])
        age: float = cursor.fetchone()[0]
    outcome: Any = newest.result
    if not newest.success or not isinstance(outcome, dict):
        return age, ["tick"]
    return age, [str(name) for name, well in outcome.items() if not well]
