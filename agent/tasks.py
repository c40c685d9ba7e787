"""Entry points of the background queue: a few lines each."""

from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync

from agent import compaction, import_jobs
from agent.ticking import run_tick
from maxclaw import clock, rewriting
from threads.models import Thread


def tick(intended: Any = None) -> dict[str, bool]:
    """The minute tick. `intended` is the minute it is for, as the scheduler hands it over."""
    if isinstance(intended, str):
        intended = datetime.fromisoformat(intended)
    return run_tick(intended or clock.now())


def compact_idle(thread_id: int) -> bool:
    """Renew the context of a thread at rest."""
    return async_to_sync(compaction.compact_idle)(thread_id)


def run_import(job_id: int) -> None:
    """One slice of an import that a person started on the page."""
    import_jobs.run(job_id)


def rewrite_files() -> None:
    """Rewrite what was erased from; large tables while no turn runs, which would wait for them, or after some hours."""
    rewriting.rewrite(large=not Thread.objects.filter(state=Thread.State.RUNNING).exists())
