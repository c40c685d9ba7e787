"""`manage.py shadow_tick`: what shadows do every minute, now and in this process."""

from typing import Any

from django.core.management.base import BaseCommand

from maxclaw import clock
from shadow import tasks, ticks


class Command(BaseCommand):
    """Queues what is due and runs what waits, of conversations of any age. A worker that is at it is told."""

    help = "Queue the shadow turns that are due and run them in this process, unless a worker is at it."

    def handle(self, *_args: Any, **_options: Any) -> None:
        ticks.shadow_tick(clock.now().replace(minute=0))
        self.stdout.write(f"Runs that asked a model: {tasks.drain()}.")
