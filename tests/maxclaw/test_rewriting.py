"""The database's own files after an erasure: what is asked, what waits for whom. That nothing erased stands in them
afterwards, tests/accounts/test_erasing_everywhere.py looks up."""

import io
from datetime import timedelta

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.urls import reverse
from django_q.models import OrmQ

from accounts import erasing
from agent.ticking import jobs
from maxclaw import clock, rewriting
from maxclaw.models import Erasure, Heartbeat, StaleFile
from tests.threads.records import thread_of

TABLE = Heartbeat._meta.db_table
AT_ONCE, GATHERED = timedelta(), timedelta(hours=1)


@pytest.fixture
def other():
    """Another connection to the same database."""
    with psycopg.connect(**connection.get_connection_params()) as opened:
        yield opened


@pytest.fixture
def stale(transactional_db, monkeypatch):
    """One table that is to be rewritten, and no patience."""
    monkeypatch.setattr(rewriting, "ROUNDS", 1)
    monkeypatch.setattr(rewriting, "READERS_SECONDS", 0.1)
    StaleFile.objects.create(name=TABLE, before=rewriting._value("SELECT pg_current_xact_id()::text"))


@pytest.mark.django_db
def test_erasing_asks_for_rewriting_and_an_account_does_so_at_once(alice, settings):
    tick = jobs()["rewrite files after erasures"]
    erasing.erase_thread(thread_of(alice))
    asked = Erasure.objects.get()
    assert asked.due - asked.asked == GATHERED
    settings.DATABASE_EMBEDDED = True
    tick(asked.asked)
    assert not OrmQ.objects.exists()
    erasing.erase_user(alice)
    asked = Erasure.objects.latest("id")
    assert asked.due - asked.asked == AT_ONCE
    settings.DATABASE_EMBEDDED = False
    tick(asked.due)
    assert not OrmQ.objects.exists(), "on another server its operator decides"
    settings.DATABASE_EMBEDDED = True
    tick(asked.due)
    assert [queued.func() for queued in OrmQ.objects.all()] == ["agent.tasks.rewrite_files"]


@pytest.mark.django_db
def test_what_an_erasure_that_fails_asked_for_is_not_done(alice):
    with pytest.raises(RuntimeError), transaction.atomic():
        erasing.erase_user(alice)
        raise RuntimeError
    assert rewriting.progress().is_done


def test_a_row_that_somebody_may_still_see_holds_its_table_back(stale, other):
    other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    other.execute("SELECT 1")
    StaleFile.objects.update(before=rewriting._value("SELECT pg_current_xact_id()::text"))
    assert rewriting.rewrite().left == 1
    other.rollback()
    assert rewriting.rewrite().is_done


def test_a_table_in_use_is_put_off_and_holds_no_other_up(stale, other):
    other.execute(f"LOCK TABLE {TABLE} IN ROW EXCLUSIVE MODE")
    before = StaleFile.objects.get().before
    StaleFile.objects.create(name="django_session", before=before)
    done = []
    assert rewriting.rewrite(tell=done.append).left == 1
    assert done == ["django_session"]
    other.rollback()
    assert rewriting.rewrite(tell=done.append).is_done
    assert done == ["django_session", TABLE]


def test_a_large_table_waits_until_no_turn_runs(stale, monkeypatch):
    monkeypatch.setattr(rewriting, "LARGE_BYTES", 0)
    assert rewriting.rewrite(large=False).left == 1
    assert rewriting.rewrite().is_done


def test_a_large_table_waits_no_longer_than_some_hours(stale, monkeypatch):
    """On a busy server a turn always runs. That more was erased meanwhile makes nobody wait longer."""
    monkeypatch.setattr(rewriting, "LARGE_BYTES", 0)
    with clock.moved(rewriting.LARGE_WAITS_FOR.total_seconds() - 60):
        rewriting.ask_for_all()
        StaleFile.objects.exclude(name=TABLE).delete()
        assert rewriting.rewrite(large=False).left == 1
    with clock.moved(rewriting.LARGE_WAITS_FOR.total_seconds() + 60):
        assert rewriting.rewrite(large=False).is_done


def test_one_process_rewrites_at_a_time(stale, other):
    other.execute("SELECT pg_advisory_lock(%s, %s)", [rewriting.ADVISORY_LOCK_SPACE, rewriting.REWRITING_LOCK])
    assert rewriting.rewrite().left == 1


def test_the_log_goes_on_in_a_file_of_its_own_after_the_tables(stale):
    StaleFile.objects.create(name=rewriting.LOG, before=0)
    old = rewriting._value("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
    done = []
    assert rewriting.rewrite(tell=done.append).is_done
    assert done == [TABLE, rewriting.LOG]
    assert rewriting._value("SELECT min(name) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'") > old


def test_the_command_goes_on_with_what_is_left_and_says_what_it_could_not_do(stale, other):
    def run(**options):
        out = io.StringIO()
        call_command("rewrite_storage", stdout=out, **options)
        return out.getvalue()

    assert f"1 of {rewriting.progress().total} parts" in run(status=True)
    other.execute(f"LOCK TABLE {TABLE} IN ROW EXCLUSIVE MODE")
    with pytest.raises(CommandError, match="They are in use"):
        run()
    other.rollback()
    out = run()
    assert f"{TABLE} rewritten" in out and "Archives of the write-ahead log" in out
    assert "Nothing is left" in out and "Nothing is left" in run(status=True)


@pytest.mark.django_db
def test_the_last_page_says_how_far_it_is(client, settings):
    def page():
        return client.get(reverse("account-erased")).content.decode()

    assert "whoever runs the server" in page()
    settings.DATABASE_EMBEDDED = True
    assert "nothing of yours stands in them" in page()
    Erasure.objects.create(asked=clock.now(), due=clock.now())
    assert "about to be written anew" in page()
    StaleFile.objects.create(name=TABLE, before=1)
    assert f"1 of {rewriting.progress().total} parts are left" in page()


def test_the_queue_of_notifications_goes_on_in_a_file_of_its_own(stale, other):
    """What was rung stands in it until then, whether or not somebody still listens."""
    other.execute("LISTEN heard")
    other.commit()
    word = "canary-of-the-queue"

    def found():
        return rewriting._value(
            "SELECT count(*) FROM pg_ls_dir('pg_notify') AS file"
            " WHERE position(%s::bytea IN pg_read_binary_file('pg_notify/' || file)) > 0",
            [word],
        )

    for _attempt in range(3):  # the page may be the last one of a file
        rewriting._value("SELECT pg_notify('heard', %s)", [word])
        rewriting._notify_nobody(18)  # more than are held back in memory
        if found():
            break
    assert found(), "else this proves nothing"
    StaleFile.objects.all().delete()
    StaleFile.objects.create(name=rewriting.QUEUE, before=0)
    for _round in range(100):  # a listener that is behind holds it back
        if rewriting.rewrite().is_done:
            break
    assert rewriting.progress().is_done
    assert not found()
