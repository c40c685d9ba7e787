"""What the queue keeps of a failed task says where and why, and nothing that people wrote."""

import logging
from multiprocessing import Value
from queue import Queue

import pytest
from django.contrib.auth.models import Permission
from django.db import connection, transaction
from django_q.brokers import get_broker
from django_q.models import Failure
from django_q.monitor import monitor
from django_q.signing import SignedPackage
from django_q.tasks import async_task
from django_q.worker import worker

from maxclaw.logs import logging_settings
from tests.threads.records import say, thread_of
from threads.models import Message

WORDS = "words-5d1c"


def fails(message_id):
    """A task that stumbles over people's words twice: the database quotes them, and so does the code after it."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE threads_message SET left_at_cut = 1, left_because = '', text = text || %s WHERE id = %s",
                [f"\n{WORDS} : Traceback (most recent call last):\n  File {WORDS}", message_id],
            )
    except Exception as error:
        raise ValueError(f"Not stored: {WORDS}") from error


@pytest.fixture
def failed(alice, caplog):
    message = say(thread_of(alice), Message.Role.USER, WORDS)
    async_task(f"{__name__}.fails", message.pk)
    broker = get_broker()
    [(ack_id, package)] = broker.dequeue()
    tasks, results = Queue(), Queue()
    tasks.put({**SignedPackage.loads(package), "ack_id": ack_id})
    tasks.put("STOP")
    worker(tasks, results, Value("f", -1))
    results.put("STOP")
    with caplog.at_level(logging.INFO, logger="django-q"):
        monitor(results, broker)
    return Failure.objects.get()


@pytest.mark.django_db(transaction=True)  # the queue closes connections as it goes
def test_a_failed_task_keeps_no_words(failed, alice, bob, client, caplog):
    assert "django.db.utils.IntegrityError" in failed.result
    assert '(23514) constraint "message_left_says_why"' in failed.result
    assert "in fails" in failed.result
    assert failed.result.rstrip().endswith("builtins.ValueError")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_q_task AS task WHERE task::text LIKE %s", [f"%{WORDS}%"])
        assert cursor.fetchone() == (0,)
    options = dict(logging_settings("json", "INFO")["formatters"]["structured"])
    formatter = options.pop("()")(**options)
    lines = [formatter.format(record) for record in caplog.get_records("setup")]
    assert any("message_left_says_why" in line for line in lines)
    assert WORDS not in "".join(lines)
    bob.is_staff = True
    bob.save()
    bob.user_permissions.set(Permission.objects.filter(codename="view_failure"))
    client.force_login(bob)
    shown = client.get(f"/admin/django_q/failure/{failed.pk}/change/").content.decode()
    assert "message_left_says_why" in shown
    assert WORDS not in shown
