"""Signs of life of the background workers, kept in the database so that every machine sees them.

A worker beats around every task it runs and, during a long one, every BEAT_SECONDS. A supervisor whose
workers have been silent for PROBE_AFTER_SECONDS queues small tasks until one of them answers: workers that
wait for a lock which a killed sibling held never do, though all their processes are alive. After
STALE_SECONDS of silence they are started anew.
"""

import logging
import os
import socket
import threading

from django.db import DatabaseError, connection
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute
from django_q.tasks import async_task

from maxclaw import clock

WORKER_PREFIX = "worker:"
# Set by a supervisor for the workers it starts; the same for all of them.
WORKER_NAME_VARIABLE = "MAXCLAW_WORKER_NAME"
BEAT_SECONDS = 15.0
SPARE_SECONDS = 5.0  # beats closer together than this are left out
PROBE_AFTER_SECONDS = 30.0
STALE_SECONDS = 90.0

logger = logging.getLogger("maxclaw.heartbeat")


def beat(name: str) -> None:
    """Record a sign of life of `name`, by the database's clock: the one that all machines share."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO maxclaw_heartbeat (name, beat_at) VALUES (%s, clock_timestamp())"
            " ON CONFLICT (name) DO UPDATE SET beat_at = excluded.beat_at",
            [name],
        )


def age(name: str) -> float | None:
    """Seconds since the last beat of `name`; None when it never beat."""
    return _seconds(f"{_SINCE_LAST} WHERE name = %s", name)


def newest_worker_age() -> float | None:
    """Seconds since the last beat of any worker on any machine; None when there never was one."""
    return _seconds(f"{_SINCE_LAST} WHERE starts_with(name, %s)", WORKER_PREFIX)


_SINCE_LAST = "SELECT extract(epoch FROM clock_timestamp() - max(beat_at))::float8 FROM maxclaw_heartbeat"


def _seconds(query: str, value: str) -> float | None:
    with connection.cursor() as cursor:
        cursor.execute(query, [value])
        row = cursor.fetchone()
    return row[0] if row else None


def forget_old() -> None:
    """Remove the beats of workers that have been silent for a day."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM maxclaw_heartbeat WHERE beat_at < clock_timestamp() - interval '1 day'")


def worker_name(supervisor: int) -> str:
    """The name under which the workers of one supervising process beat."""
    return f"{WORKER_PREFIX}{socket.gethostname()}:{supervisor}"


def queue_probe() -> None:
    """Queue a task that does nothing: running it is the sign of life."""
    async_task("maxclaw.heartbeat.answer_probe", save=False)


def answer_probe() -> None:
    """What a probe runs. The worker beats around it, as around every task."""


class Pulse:
    """The beating of one worker process: around its tasks, and beside a long one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.busy = False
        self.last_beat = float("-inf")

    def start(self, **kwargs: object) -> None:
        """In the new worker process: say that it is there, and watch over long tasks."""
        self.beat()
        threading.Thread(target=self._beat_while_busy, name="pulse", daemon=True).start()

    def task_starts(self, **kwargs: object) -> None:
        self.busy = True
        self.beat()

    def task_ends(self, **kwargs: object) -> None:
        self.busy = False
        self.beat()

    def beat(self) -> None:
        if clock.monotonic() - self.last_beat < SPARE_SECONDS:
            return
        try:
            beat(self.name)
        except DatabaseError as error:
            # The work matters more than its sign of life.
            logger.warning("no heartbeat: %s", error)
        else:
            self.last_beat = clock.monotonic()

    def _beat_while_busy(self) -> None:
        pause = threading.Event()
        while not pause.wait(BEAT_SECONDS):
            if self.busy:
                self.beat()
                connection.close()


def listen_to_workers() -> None:
    """Have every worker process forked from this one beat."""
    pulse = Pulse(os.environ.get(WORKER_NAME_VARIABLE) or worker_name(os.getpid()))
    post_spawn.connect(pulse.start, weak=False, dispatch_uid="maxclaw.pulse")
    pre_execute.connect(pulse.task_starts, weak=False, dispatch_uid="maxclaw.pulse")
    post_execute_in_worker.connect(pulse.task_ends, weak=False, dispatch_uid="maxclaw.pulse")
