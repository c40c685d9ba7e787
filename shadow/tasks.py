"""Entry points of the background queue: a few lines each."""

from shadow import draining


def drain() -> int:
    """Run what waits, many at a time. Returns how many runs asked a model."""
    return draining.drain()
