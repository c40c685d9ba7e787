"""The channel layer: who hears what, and that nothing is left behind."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from agent.bell import Bell
from agent.events import emit
from chat.consumers import ChatConsumer
from chat.layer import MessageTooLarge, NotifyChannelLayer, ring_group, thread_group, user_group
from maxclaw.database_threads import in_database
from tests.agent.world import database_url
from threads.lifecycle import create_thread
from threads.transcript import lock_thread

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_SECONDS = 5.0
SILENCE_SECONDS = 0.3
ROOT = Path(__file__).resolve().parents[2]


async def heard(layer, channel):
    return await asyncio.wait_for(layer.receive(channel), WAIT_SECONDS)


async def silent(layer, channel):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(layer.receive(channel), SILENCE_SECONDS)


def run(scenario):
    async def whole():
        try:
            await scenario()
        finally:
            await Bell.shared().stop()

    async_to_sync(whole)()


def test_each_member_hears_a_group_message_once_and_in_order_after_connecting_at_once():
    async def scenario():
        layer = NotifyChannelLayer()
        channels = await asyncio.gather(*(layer.new_channel() for _ in range(20)))
        for channel in channels:
            await layer.group_add("all", channel)
        for number in range(10):
            await layer.group_send("all", {"type": "count", "number": number})
        for channel in channels:
            assert [(await heard(layer, channel))["number"] for _ in range(10)] == list(range(10))
        await silent(layer, channels[0])
        assert await in_database(count_listeners) == 1

    run(scenario)


def count_listeners() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
        )
        return cursor.fetchone()[0]


def test_other_groups_and_discarded_members_hear_nothing():
    async def scenario():
        layer = NotifyChannelLayer()
        staying, leaving, other = [await layer.new_channel() for _ in range(3)]
        await layer.group_add("group", staying)
        await layer.group_add("group", leaving)
        await layer.group_add("elsewhere", other)
        await layer.group_discard("group", leaving)
        await layer.group_send("group", {"type": "hello"})
        assert await heard(layer, staying) == {"type": "hello"}
        await silent(layer, leaving)
        await silent(layer, other)

    run(scenario)


def test_after_a_lost_connection_members_are_told_to_resync_and_hear_again():
    async def scenario():
        layer = NotifyChannelLayer()
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await layer.group_send("group", {"type": "count", "number": 1})
        assert (await heard(layer, channel))["number"] == 1
        await in_database(end_listeners)
        assert await heard(layer, channel) == {"type": "resync"}
        await layer.group_send("group", {"type": "count", "number": 2})
        assert (await heard(layer, channel))["number"] == 2

    run(scenario)


def end_listeners() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
        )


@pytest.mark.parametrize(("filling", "bytes_each"), [("x", 1), ("字", 3)])
def test_a_message_over_the_limit_is_refused_by_its_bytes_and_the_largest_arrives(filling, bytes_each):
    empty = len(b'{"topic":"group","group":"group","message":{"type":"big","text":""}}')
    room = (7_999 - empty) // bytes_each

    async def scenario():
        layer = NotifyChannelLayer()
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        with pytest.raises(MessageTooLarge, match="7999"):
            await layer.group_send("group", {"type": "big", "text": filling * (room + 1)})
        await layer.group_send("group", {"type": "big", "text": filling * room})
        assert len((await heard(layer, channel))["text"]) == room

    run(scenario)


def test_a_rollback_sends_nothing():
    def rolled_back():
        with suppress(ZeroDivisionError), transaction.atomic():
            ring_group("group", {"type": "undone"})
            1 / 0  # noqa: B018  # the error that rolls back

    def committed():
        with transaction.atomic():
            ring_group("group", {"type": "done"})

    async def scenario():
        layer = NotifyChannelLayer()
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await in_database(rolled_back)
        await in_database(committed)
        assert await heard(layer, channel) == {"type": "done"}

    run(scenario)


def test_a_consumer_that_falls_behind_is_told_to_resync_instead_of_missing_messages():
    async def scenario():
        layer = NotifyChannelLayer(capacity=5)
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        for number in range(6):
            await layer._deliver("group", {"type": "count", "number": number})
        assert await heard(layer, channel) == {"type": "resync"}
        await layer._deliver("group", {"type": "count", "number": 7})
        assert (await heard(layer, channel))["number"] == 7

    run(scenario)


def test_old_messages_and_memberships_do_not_expire():
    async def scenario():
        layer = NotifyChannelLayer(expiry=-1, group_expiry=-1)
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await layer.group_send("group", {"type": "first"})
        assert await heard(layer, channel) == {"type": "first"}
        await layer.group_send("group", {"type": "second"})
        assert await heard(layer, channel) == {"type": "second"}

    run(scenario)


def test_another_process_is_heard():
    program = (
        "import django; django.setup();"
        "from chat.layer import ring_group; ring_group('group', {'type': 'hello', 'text': '您好'})"
    )

    async def scenario():
        layer = NotifyChannelLayer()
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
        await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program],
            cwd=ROOT,
            check=True,
            env={"DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "maxclaw.settings", "PATH": ""},
        )
        assert await heard(layer, channel) == {"type": "hello", "text": "您好"}

    run(scenario)


def test_events_reach_the_thread_and_state_events_the_owners_list_too(alice):
    thread = create_thread(alice)

    def say_two():
        with transaction.atomic():
            lock_thread(thread.pk)
            emit(thread.pk, alice.pk, "unqueued", {"item": 1})
            emit(thread.pk, alice.pk, "state", {"thread": {}, "turn": None})

    async def scenario():
        layer = NotifyChannelLayer()
        reader, owner = await layer.new_channel(), await layer.new_channel()
        await layer.group_add(thread_group(thread.pk), reader)
        await layer.group_add(user_group(alice.pk), owner)
        await in_database(say_two)
        first, second = await heard(layer, reader), await heard(layer, reader)
        assert (first["type"], first["kind"], first["body"]) == ("thread.event", "unqueued", {"item": 1})
        assert second["number"] == first["number"] + 1
        assert await heard(layer, owner) == {"type": "list.changed"}

    run(scenario)


def test_a_cancelled_consumer_leaves_nothing_behind(alice):
    from channels.layers import get_channel_layer

    async def scenario():
        layer = get_channel_layer()
        sent: list[dict] = []

        async def receive():
            if not sent:
                return {"type": "websocket.connect"}
            await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        scope = {"type": "websocket", "user": alice, "session": await in_database(session_of, alice)}
        consumer = asyncio.create_task(ChatConsumer.as_asgi()(scope, receive, send))
        while len(sent) < 2:
            await asyncio.sleep(0.01)
        assert layer.groups
        consumer.cancel()
        with suppress(asyncio.CancelledError):
            await consumer
        await asyncio.sleep(0)
        assert layer.groups == {}
        assert layer.channels == {}
        assert not [task for task in asyncio.all_tasks() if "ChatConsumer" in repr(task.get_coro())]

    run(scenario)


def session_of(user):
    from tests.browser import signed_in_session

    return signed_in_session(user)
