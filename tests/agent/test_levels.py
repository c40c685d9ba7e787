"""Tasks and their results under the one rule: what a task starts with, what comes back, and narrowing in between."""

import pytest
from django.db import transaction

from agent import dispatch
from agent.models import InboxItem, TaskFrame
from tests.threads.records import say
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads.lifecycle import archive, create_thread, narrow
from threads.models import Thread

pytestmark = pytest.mark.django_db


def start(parent: Thread, key: str = "k") -> Thread:
    with transaction.atomic():
        return dispatch.start_task(parent.owner, parent, "Secret survey", "Measure the lake", client_key=key)


def deliver(task: Thread) -> InboxItem:
    """The task ends with an answer; returns what its thread's inbox got of it."""
    say(task, "assistant", "secret depth")
    frame = TaskFrame.objects.create(thread=task, owner=task.owner, end_reason="answered")
    with transaction.atomic():
        dispatch.deliver_result(Thread.objects.get(pk=task.pk), frame)
    return InboxItem.objects.get(client_key=f"task:{frame.pk}")


def test_a_task_has_its_parents_level_and_its_result_comes_back(alice):
    parent = create_thread(alice, scope="isolated", category="work")
    task = start(parent)
    assert (task.scope, task.category, task.island_id) == ("isolated", "work", parent.pk)
    item = deliver(task)
    assert item.thread == parent
    assert item.text == f"Task {task.channel} (Secret survey) finished. Its result:\n\nsecret depth"


def test_a_task_that_became_stricter_tells_its_parent_that_it_ended_and_no_more(alice):
    parent = create_thread(alice)
    task = start(parent)
    narrow(task, acting_user=alice, category="work")
    item = deliver(task)
    assert item.thread == parent
    assert item.text == (
        f"Task {task.channel} finished. Its result may not be shown here: the task's level is stricter than this "
        "conversation's."
    )


def test_main_gets_no_word_of_an_isolated_task_whose_conversation_was_put_away(alice):
    parent = create_thread(alice, scope="isolated")
    task = start(parent)
    archive(parent, acting_user=alice)
    item = deliver(task)
    assert item.thread.kind == "main"
    assert "secret" not in item.text.lower()


def test_main_gets_an_open_tasks_result(alice):
    parent = create_thread(alice)
    task = start(parent)
    archive(parent, acting_user=alice)
    assert "secret depth" in deliver(task).text


def test_narrowing_takes_a_running_task_along_so_that_its_result_still_arrives(alice):
    parent = create_thread(alice)
    task = start(parent)
    narrow(parent, acting_user=alice, scope="isolated", category="work")
    assert "secret depth" in deliver(task).text


@pytest.mark.django_db(transaction=True)
def test_a_task_that_starts_while_its_parent_becomes_stricter_is_as_strict(alice):
    parent = create_thread(alice)
    narrowing = Elsewhere(lambda: narrow(Thread.objects.get(pk=parent.pk), acting_user=alice, scope="isolated"))
    narrowing.began.wait(20)
    starting = Elsewhere(lambda: start(parent))
    wait_until_blocked()
    narrowing.finish()
    task = starting.finish()
    assert (narrowing.error, starting.error) == (None, None)
    assert (task.scope, task.island_id) == ("isolated", parent.pk)


@pytest.mark.django_db(transaction=True)
def test_a_parent_that_becomes_stricter_while_a_task_starts_takes_it_along(alice):
    parent = create_thread(alice)
    starting = Elsewhere(lambda: start(parent))
    starting.began.wait(20)
    narrowing = Elsewhere(lambda: narrow(Thread.objects.get(pk=parent.pk), acting_user=alice, scope="isolated"))
    wait_until_blocked()
    task = starting.finish()
    narrowing.finish()
    assert (narrowing.error, starting.error) == (None, None)
    task.refresh_from_db()
    assert (task.scope, task.island_id) == ("isolated", parent.pk)
