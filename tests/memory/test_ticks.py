"""When embedding is asked for: after a turn, and every minute where something is missing."""

import pytest
from django.db import transaction
from django_q.models import OrmQ

from agent.ticking import jobs, run_tick
from maxclaw import clock
from memory import embedding_work, tasks
from memory.models import MessageChunk
from tests.threads.records import exchange, thread_of
from threads.lifecycle import settle
from threads.models import Thread
from threads.signals import SettledReason

pytestmark = pytest.mark.django_db


def waiting():
    """Function and arguments of the tasks in the queue."""
    return [(task.task["func"], task.task["args"]) for task in OrmQ.objects.order_by("id")]


def test_a_settled_turn_has_its_words_embedded(alice, django_capture_on_commit_callbacks):
    thread = thread_of(alice)
    exchange(thread)
    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        settle(thread, SettledReason.TURN_BOUNDARY)
    assert waiting() == [("memory.tasks.came_to_rest", (thread.pk, "turn-boundary"))]
    assert tasks.came_to_rest(thread.pk, "turn-boundary") == MessageChunk.objects.count() == 2


def test_the_tick_asks_for_what_is_missing_and_for_nothing_else(alice):
    assert "embed what is missing" in jobs()
    run_tick(clock.now())
    assert waiting() == []
    threads = [thread_of(alice) for _number in range(2)]
    for thread in threads:
        exchange(thread)
    run_tick(clock.now())
    assert waiting() == [("memory.tasks.catch_up", ())]
    assert tasks.catch_up() == MessageChunk.objects.count() == 4
    OrmQ.objects.all().delete()
    run_tick(clock.now())
    assert waiting() == []


def test_catching_up_stops_in_time_and_goes_on_later(alice):
    for _number in range(3):
        exchange(thread_of(alice))
    assert embedding_work.catch_up(seconds=0) == 0
    assert embedding_work.catch_up() == 6


def test_a_deleted_conversation_is_not_embedded_until_it_is_back(alice):
    thread = thread_of(alice)
    exchange(thread)
    Thread.objects.filter(pk=thread.pk).update(deleted=clock.now())
    assert embedding_work.catch_up() == 0
    assert embedding_work.embed_some(thread.pk) == 0
    Thread.objects.filter(pk=thread.pk).update(deleted=None)
    assert embedding_work.catch_up() == 2
