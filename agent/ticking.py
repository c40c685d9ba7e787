"""The minute tick: what each app's `ticks.py` registered, each alone, so that one that fails holds up no other."""

import logging
from collections.abc import Callable
from datetime import datetime

logger = logging.getLogger("maxclaw.tick")

Job = Callable[[datetime], None]

_jobs: dict[str, Job] = {}


def every_minute(name: str) -> Callable[[Job], Job]:
    """Register a job of the tick. It gets the minute that the tick is for; running it twice must do no harm."""

    def decorate(function: Job) -> Job:
        if name in _jobs:
            raise ValueError(f"There is already a job named {name}.")
        _jobs[name] = function
        return function

    return decorate


def jobs() -> dict[str, Job]:
    """The registered jobs by name."""
    return dict(_jobs)


def run_tick(intended: datetime) -> dict[str, bool]:
    """Run every job. Returns for each name whether it went well."""
    outcome = {}
    for name, job in _jobs.items():
        try:
            job(intended)
            outcome[name] = True
        except Exception:
            logger.exception("The job %s of the tick failed.", name)
            outcome[name] = False
    return outcome
