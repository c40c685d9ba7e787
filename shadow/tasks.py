"""Entry points of the background queue: a few lines each."""

from asgiref.sync import async_to_sync

from shadow import runs, triggers


def drain() -> int:
    """Run what waits, many at a time. Returns how many runs asked a model."""
    return async_to_sync(runs.drain)(_waiting)


def _waiting(limit: int, seen: set[int]) -> list[int]:
    """Queued runs that this drain has not looked at yet, as many as there is room for beside those of other workers."""
    room = min(limit, runs.AT_ONCE - triggers.going_on())
    return list(triggers.waiting().exclude(pk__in=seen).values_list("pk", flat=True)[: max(room, 0)])
