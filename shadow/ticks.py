"""What shadows do every minute."""

from datetime import datetime

from agent.ticking import every_minute
from maxclaw import clock
from shadow import attempts, cursors, triggers


@every_minute("read conversations in their shadows")
def shadow_tick(intended: datetime) -> None:
    """Runs of workers that are gone end, what is new gets its cursor, what no model might read goes on once one may,
    and what is due is queued and taken."""
    now = clock.now()
    attempts.sweep(now)
    if cursors.is_missing():
        cursors.initialize()
    triggers.let_read(now)
    triggers.queue_idle(now, thorough=intended.minute == 0)
    if triggers.waiting().exists():
        triggers.drain_soon()
