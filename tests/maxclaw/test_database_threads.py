"""Database work of asynchronous code."""

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper

from accounts.models import User
from maxclaw.database_threads import close_all, in_database

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def threads():
    yield
    close_all()


def test_units_run_side_by_side_on_threads_of_their_own():
    together = threading.Barrier(3, timeout=5)

    def unit():
        User.objects.count()
        together.wait()
        return threading.current_thread().name

    async def scenario():
        return await asyncio.gather(*(in_database(unit) for _index in range(3)))

    names = async_to_sync(scenario)()
    assert len(set(names)) == 3
    assert all(name.startswith("database") for name in names)


def test_the_connection_is_closed_after_the_unit():
    def unit():
        wrapper = connections[connection.alias]
        wrapper.ensure_connection()
        return wrapper

    used = async_to_sync(in_database)(unit)
    assert used.connection is None


def test_a_unit_raises_what_it_raises():
    async def scenario():
        await in_database(User.objects.get, pk=0)

    with pytest.raises(User.DoesNotExist):
        async_to_sync(scenario)()


def test_a_cancelled_caller_waits_until_its_unit_is_done():
    started, may_end = threading.Event(), threading.Event()
    done = []

    def unit():
        started.set()
        may_end.wait(5)
        done.append(User.objects.create_user("late").pk)

    async def scenario():
        task = asyncio.create_task(in_database(unit))
        await asyncio.to_thread(started.wait, 5)
        task.cancel()
        await asyncio.sleep(0.05)
        task.cancel()
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(done)

    assert async_to_sync(scenario)()
    assert User.objects.filter(username="late").exists()


def test_the_pool_hands_out_and_takes_back_connections_and_is_closed(settings):
    options = connection.settings_dict["OPTIONS"]
    close_all()  # the pool that tests have
    connection.settings_dict["OPTIONS"] = {**options, "pool": {"min_size": 1, "max_size": 2, "timeout": 5}}
    try:

        async def scenario():
            return await asyncio.gather(*(in_database(User.objects.count) for _index in range(20)))

        assert async_to_sync(scenario)() == [0] * 20
        wrapper: Any = DatabaseWrapper
        pool = wrapper._connection_pools[connection.alias]
        assert pool.get_stats()["pool_size"] <= 2
        assert pool.get_stats().get("requests_errors", 0) == 0
        close_all()
        assert pool.closed
    finally:
        connection.settings_dict["OPTIONS"] = options
        connection.close()
