"""Database work of asynchronous code: synchronous units on threads of their own.

Left to Django's default every coroutine shares one database thread. Here each unit takes one of
settings.DATABASE_THREADS threads and a connection of the pool for as long as it runs.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper

P = ParamSpec("P")
R = TypeVar("R")

_executors: dict[str, ThreadPoolExecutor] = {}
_making = threading.Lock()


def _get_executor(name: str, threads: int) -> ThreadPoolExecutor:
    with _making:
        if name not in _executors:
            _executors[name] = ThreadPoolExecutor(threads, thread_name_prefix=name)
        return _executors[name]


def _forget_executors() -> None:
    """A forked child has none of its parent's threads."""
    global _executors, _making
    _executors, _making = {}, threading.Lock()


os.register_at_fork(after_in_child=_forget_executors)


async def in_database(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run one synchronous unit of database work off the event loop; returns and raises what the unit does.

    The thread's connections are closed after it, which hands them back to the pool. A unit that has started
    is waited for even when the caller is cancelled, and CancelledError raised only then: whatever the caller
    does next sees the unit done and never races with it. A cancelled caller cannot know whether it committed.
    """
    return await _on(_get_executor("database", settings.DATABASE_THREADS), function, *args, **kwargs)


async def in_database_at_length(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The same for a unit that may take long. These have threads of their own and at most half of the connections, so
    that no renewal of a lease ever waits behind them."""
    return await _on(_get_executor("database-long", settings.DATABASE_THREADS // 2), function, *args, **kwargs)


async def _on(executor: ThreadPoolExecutor, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    def unit() -> R:
        try:
            return function(*args, **kwargs)
        finally:
            connections.close_all()

    work = asyncio.ensure_future(sync_to_async(unit, thread_sensitive=False, executor=executor)())
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await _wait_for(work)
        raise


async def _wait_for(work: "asyncio.Future[R]") -> None:
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            continue
    if not work.cancelled():
        work.exception()  # read, so that asyncio does not report it as lost


def close_all() -> None:
    """Wait for running units, end the threads and close the pool: for tests and for the end of a process."""
    with _making:
        executors = list(_executors.values())
        _executors.clear()
    for executor in executors:
        executor.shutdown(wait=True)
    for connection in connections.all():
        # The pool belongs to the process, whichever thread opened it; asking for one that is not there makes it.
        pools: dict[str, object] = getattr(connection, "_connection_pools", {})
        if isinstance(connection, DatabaseWrapper) and connection.alias in pools:
            connection.close_pool()
