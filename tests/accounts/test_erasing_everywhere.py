"""Erasing on a running server: whoever is connected is told, and the person's words are in no table, log or file."""

import logging
import mmap
import os
import random
import string
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from django.conf import settings as project
from django.db import IntegrityError, connection
from django.urls import reverse

from accounts.models import User
from agent import tasks
from agent.models import TaskFrame
from llm.emulator import client as say
from maxclaw import rewriting
from maxclaw.logs import NOWHERE
from tests.accounts.test_erasing import places_with
from tests.browser import signed_in_session
from tests.chat.sockets import open_socket
from tests.conftest import PASSWORD, make_person
from tests.maxclaw.running import wait_until
from tests.threads.records import exchange
from threads.lifecycle import create_thread
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-9e41"


class Browser:
    """A person's requests over HTTP, with their cookies and the token of the page before."""

    def __init__(self, server, user=None):
        cookies = {project.SESSION_COOKIE_NAME: signed_in_session(user).session_key} if user else {}
        self.http = httpx2.Client(base_url=server.url, cookies=cookies, timeout=30.0)

    def get(self, name):
        return self.http.get(reverse(name))

    def post(self, name, page, **fields):
        """Send a form, found on the page of this name, to the page of a name or at an address."""
        self.get(page)
        fields["csrfmiddlewaretoken"] = self.http.cookies[project.CSRF_COOKIE_NAME]
        body = urlencode(fields)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Referer": str(self.http.base_url)}
        return self.http.post(name if "/" in name else reverse(name), content=body, headers=headers)


def test_open_pages_are_told_and_get_nothing_more(server, alice, bob):
    thread = create_thread(alice)
    mine = Browser(server, alice)
    with open_socket(server, alice) as socket, open_socket(server, bob) as stranger:
        socket.open(thread.channel)
        answer = mine.post("account-erase", "account-erase", username="alice", password=PASSWORD)
        assert answer.status_code == 302, answer.text
        socket.receive("signed_out")
        socket.send(type="send", channel=thread.channel, key="late", text="too late")
        assert socket.receive()["code"] == "signed-out"
        assert stranger.is_usable()
    assert not Message.objects.filter(text="too late").exists()
    assert "django_session" not in "".join(places_with("alice"))


def test_a_running_answer_ends_with_its_account(server, emulator, alice):
    thread = create_thread(alice)
    emulator.answer(say.text("word " * 400), pace="20:20")
    with open_socket(server, alice) as socket:
        socket.open(thread.channel)
        socket.send(type="send", channel=thread.channel, key="1", text="go on")
        wait_until(Thread.objects.filter(pk=thread.pk, state="running").exists, what="the answer")
        answer = Browser(server, alice).post("account-erase", "account-erase", username="alice", password=PASSWORD)
        assert answer.status_code == 302, answer.text
        socket.receive("signed_out")
    assert not User.objects.filter(username="alice").exists()
    assert not Thread.objects.exists()


def test_the_export_of_a_long_history_arrives_whole(server, alice):
    thread = create_thread(alice)
    generation = thread.generations.get()
    Message.objects.bulk_create(
        [
            Message(
                thread=thread, owner=alice, generation=generation, role="user", text=f"message {index} " + "字" * 500
            )
            for index in range(1_500)
        ]
    )
    answer = Browser(server, alice).post("account-export", "account")
    assert answer.status_code == 200
    assert len(answer.content) == int(answer.headers["Content-Length"]) > 2_000_000
    assert answer.text.count('"record": "message"') == 1_500


@pytest.fixture
def log_file():
    """Everything that the product's own logging writes while the test runs, as it writes it."""
    path = Path(project.DATA_DIR) / "test-run.log"
    root = logging.getLogger()
    handler = logging.FileHandler(path)
    options = dict(project.LOGGING["formatters"]["structured"])
    handler.setFormatter(options.pop("()")(**options))
    root.addHandler(handler)
    yield path
    root.removeHandler(handler)
    handler.close()
    path.unlink()


def files_with(word):
    """Every file of the data folder, and of the embedded database's log, in which the word stands. The database's own
    files are looked at by `database_files_with`."""
    files = [path for path in Path(project.DATA_DIR).rglob("*") if path.is_file() and "postgres" not in path.parts]
    log = database_folder().parent / "postgres.log"
    return [path for path in (*files, log) if path.is_file() and word.encode() in path.read_bytes()]


def database_folder():
    with connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        return Path(cursor.fetchone()[0])


def database_files_with(word):
    """Folders of the database's own files that hold the word: tables with what they moved out of the rows, indexes,
    the write-ahead log, temporary files, whatever is there."""
    found = set()
    for path in database_folder().rglob("*"):
        # Those of other processes' databases come and go.
        with suppress(OSError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    if content.find(word.encode()) >= 0:
                        found.add(path.relative_to(database_folder()).parts[0])
    return found


def test_after_erasing_a_canary_is_in_no_table_log_or_file(server, emulator, log_file):
    person = make_person(f"{CANARY}-name")
    person.email = f"{CANARY}@example.org"
    person.save()
    visitor = Browser(server)
    visitor.post("login", "login", username=person.username, password=f"{CANARY} wrong")
    mine = Browser(server)
    assert mine.post("login", "login", username=person.username, password=PASSWORD).status_code == 302
    person.username = f"{CANARY}-renamed"
    person.save()
    asked = [reverse("api-search") + "?q=", reverse("api-threads") + "?search=", "/nowhere/?q=", "/admin/login/?next="]
    in_paths = ["/nowhere/", "/c/", "/api/threads/"]
    for browser in (visitor, mine):
        for address in asked:
            browser.http.get(address + CANARY)
        for address in in_paths:
            browser.http.get(f"{address}{CANARY}/")
    mine.post("account", "account", time_zone=f"{CANARY}/zone", language="en")
    mine.post("account-erase", "account-erase", username=f"{CANARY} other", password=f"{CANARY} wrong")
    thread = create_thread(person, title=f"{CANARY} title")
    with open_socket(server, person) as socket:
        socket.open(thread.channel)
        emulator.answer(say.thinking(f"{CANARY} thought"), say.text(f"{CANARY} answer"))
        emulator.answer(say.tool_use("message_history_read", {"channel": f"{CANARY} argument"}))
        emulator.answer(say.text(f"{CANARY} end"))
        for key in ("1", "2"):
            socket.send(type="send", channel=thread.channel, key=f"{CANARY}-{key}", text=f"{CANARY} words")
            wait_for_rest(thread, int(key))
        emulator.fault("status", status=400, message=f"{CANARY} in an error", times=-1)
        socket.send(type="send", channel=thread.channel, key="3", text=f"{CANARY} last words")
        wait_for_rest(thread, 3)
        socket.send_raw(f'{{"type": "{CANARY}", "channel": ')
        socket.send(type="ping")
        while socket.receive()["type"] != "pong":
            pass
    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE threads_message SET left_at_cut = 1, left_because = '' WHERE thread_id = %s", [thread.pk]
        )
    logging.getLogger("chat").error("the log is written")
    # Too long for its row, and of letters that no compression makes shorter.
    noise = "".join(random.Random(1).choices(string.ascii_letters + string.digits + "+/", k=20_000))
    exchange(thread, f"{noise[:10_000]} {CANARY} {noise[10_000:]}", f"{CANARY} again")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        cursor.execute("CHECKPOINT")
        cursor.execute("SELECT count(*) FROM pg_stats WHERE most_common_vals::text ~ %s", [CANARY])
        assert cursor.fetchone()[0], "else this proves nothing"
    assert len(places_with(CANARY)) > 8, "else this proves nothing"
    answer = mine.post("account-erase", "account-erase", username=person.username, password=PASSWORD)
    assert answer.status_code == 302, answer.text
    assert places_with(CANARY) == []
    assert "the log is written" in log_file.read_text()
    for address in (NOWHERE, reverse("api-search"), "/admin/login/"):
        assert f"GET {address}" in log_file.read_text(), "else this proves nothing"
    assert files_with(CANARY) == []
    with connection.cursor() as cursor:
        cursor.execute("SHOW wal_recycle")
        if cursor.fetchone()[0] != "off":
            pytest.skip("this run uses a server that is not the embedded one")
    assert database_files_with(CANARY) >= {"base", "pg_wal"}, "else this proves nothing"
    tasks.rewrite_files()
    assert rewriting.progress().is_done
    assert database_files_with(CANARY) == set()


def wait_for_rest(thread, turns):
    """Wait until the thread rests after so many turns."""
    wait_until(
        lambda: (
            TaskFrame.objects.filter(thread=thread, ended__isnull=False).count() >= turns
            and Thread.objects.filter(pk=thread.pk, state="idle").exists()
        ),
        what=f"turn {turns} ends",
    )
