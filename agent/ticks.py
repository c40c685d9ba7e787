"""What the agent does every minute."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django_q.tasks import async_task

from agent import compaction, conversations, import_jobs, summarizing, taking
from agent.ticking import every_minute
from maxclaw import clock, heartbeat, rewriting

EVENTS_KEPT = timedelta(days=1)


@every_minute("sweep lapsed leases")
def sweep_lapsed_leases(_intended: datetime) -> None:
    """Turns whose holder is gone end as interrupted; the ring lets a living process take the thread."""
    for thread_id in list(taking.lapsed_threads().values_list("pk", flat=True)):
        taking.sweep(thread_id)


@every_minute("prune turn events")
def prune_turn_events(_intended: datetime) -> None:
    """Events are for replay; once a turn is stored and a day has passed, a snapshot says the same. The newest of a
    thread stays: the next number is counted from it."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            DELETE FROM agent_turnevent AS old USING threads_thread AS thread
            WHERE old.created < %s AND thread.id = old.thread_id AND thread.state = 'idle'
              AND EXISTS (SELECT 1 FROM agent_turnevent AS newer
                          WHERE newer.thread_id = old.thread_id AND newer.number > old.number)
            """,
            [clock.now() - EVENTS_KEPT],
        )


@every_minute("forget old heartbeats")
def forget_old_heartbeats(_intended: datetime) -> None:
    """Workers that have been silent for a day are gone for good."""
    heartbeat.forget_old()


@every_minute("erase deleted conversations")
def erase_deleted_conversations(_intended: datetime) -> None:
    """The time for undoing a deletion has passed."""
    conversations.erase_deleted()


@every_minute("compact resting conversations")
def compact_resting_conversations(_intended: datetime) -> None:
    """A large context whose cache is about to run out is renewed while reading it is still cheap."""
    for thread_id in compaction.idle_due(clock.now()):
        async_task("agent.tasks.compact_idle", thread_id)


@every_minute("close abandoned calls for summaries")
def close_abandoned_calls(now: datetime) -> None:
    """What a killed worker asked for, nobody waits for any more: the ledger says so."""
    summarizing.close_abandoned(now)


@every_minute("sweep imports")
def sweep_imports(_intended: datetime) -> None:
    """Imports whose worker is gone go on; files that nobody needs any more go."""
    import_jobs.sweep()


@every_minute("rewrite files after erasures")
def rewrite_files_after_erasures(now: datetime) -> None:
    """What was erased goes out of the embedded database's files too. On another server its operator decides when tables
    are locked for that."""
    if settings.DATABASE_EMBEDDED and rewriting.is_due(now):
        async_task("agent.tasks.rewrite_files")
