"""Two ASGI processes and two queue clusters against one database, as on two machines."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from urllib.request import urlopen

import pytest
import websockets
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from accounts.models import User
from agent.models import InboxItem, TaskFrame
from llm.emulator.client import text
from llm.models import ModelCall
from maxclaw import clock
from maxclaw.database_threads import in_database
from maxclaw.heartbeat import WORKER_PREFIX
from maxclaw.models import Heartbeat
from maxclaw.processes import spawn
from tests.agent.test_cached_prefix import LONG, check_each_extends_the_one_before
from tests.agent.world import database_url
from tests.emulator_server import running_emulator
from threads.lifecycle import create_thread
from threads.models import Message, Thread
from threads.transcript import lapsed
from threads.verification import verify_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.timeout(300)]

USERS, HURRIED_USERS, MESSAGES = 50, 5, 10
WAIT_SECONDS = 240


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def two_servers(emulator_url, lease_seconds=900, clusters=2):
    """Two web processes and as many clusters; yields {process id: port}. Only rings can have done what they show:
    polling is an hour off, and a lease is renewed too late for a test to wait for it."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "maxclaw.settings",
        "DATABASE_URL": database_url(),
        "MAXCLAW_EMULATOR_URL": emulator_url,
        "MAXCLAW_DATA_DIR": str(django_settings.DATA_DIR),
        "MAXCLAW_SECRET_KEY": django_settings.SECRET_KEY,
        "MAXCLAW_POLL_SECONDS": "3600",
        "MAXCLAW_LEASE_SECONDS": str(lease_seconds),
        "MAXCLAW_LEASE_RENEW_SECONDS": str(lease_seconds // 2),
    }
    ports: dict[int, int] = {}
    processes = []
    try:
        for port in (free_port(), free_port()):
            command = [sys.executable, "-m", "uvicorn", "maxclaw.asgi:application", "--port", str(port)]
            # A busy machine is no reason to give up a socket.
            command += ["--ws-ping-timeout", "120"]
            web = {**environment, "MAXCLAW_ROLE": "web"}
            processes.append(spawn([*command, "--log-level", "warning", "--lifespan", "on"], environment=web))
            ports[processes[-1].pid] = port
        for _cluster in range(clusters):
            worker = {**environment, "MAXCLAW_ROLE": "worker", "MAXCLAW_SUPERVISOR": str(os.getpid())}
            processes.append(spawn([sys.executable, "manage.py", "qcluster"], environment=worker))
        for port in ports.values():
            wait_for(port)
        yield ports
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            with contextlib.suppress(Exception):
                process.wait(15)
            process.kill()
            process.wait()


def wait_for(port: int) -> None:
    deadline = clock.monotonic() + 60
    while True:
        try:
            with urlopen(f"http://127.0.0.1:{port}/health/live", timeout=5) as answer:
                assert answer.status == 200
                return
        except OSError:
            assert clock.monotonic() < deadline, "the server did not start"


def signed_in(user: User) -> str:
    """A session cookie of the user's."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return f"{django_settings.SESSION_COOKIE_NAME}={session.session_key}"


class Page:
    """One open page of a user's: a socket, and everything that came through it."""

    def __init__(self, port: int, cookie: str, channel: str) -> None:
        self.port, self.cookie, self.channel = port, cookie, channel
        self.frames: list[dict] = []
        self.numbers: list[int] = []
        self.answers: list[str] = []
        self.frame_id: int | None = None
        self.words: set[str] = set()
        self.at_rest = True
        self.last_row = ("", "")
        self.streamed = ""

    async def __aenter__(self) -> "Page":
        self.socket = await websockets.connect(
            f"ws://127.0.0.1:{self.port}/ws/chat/",
            additional_headers={"Cookie": self.cookie},
            origin=f"http://127.0.0.1:{self.port}",
            ping_interval=None,
        )
        await self.send({"type": "open", "channel": self.channel, "after": None})
        await self.until(lambda frame: frame["type"] == "snapshot")
        return self

    async def __aexit__(self, *_exc) -> None:
        await self.socket.close()

    async def send(self, frame: dict) -> None:
        await self.socket.send(json.dumps(frame))

    async def until(self, wanted) -> dict:
        """Read frames until one is wanted."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                frame = json.loads(await self.socket.recv())
                self.take(frame)
                if wanted(frame):
                    return frame

    def said(self, words: str) -> bool:
        """Whether a row with these words has come."""
        return words in self.words

    def has_ended(self) -> bool:
        """Whether the last row is an answer and its turn has ended. Words come before the turn that takes them, so
        rest alone may be that of the turn before."""
        return self.at_rest and self.last_row == ("assistant", "complete")

    def take(self, frame: dict) -> None:
        self.frames.append(frame)
        if frame["type"] == "snapshot":
            self.numbers = [frame["snapshot"]["event"]]
        if frame["type"] != "events":
            return
        for event in frame["events"]:
            self.numbers.append(event["number"])
            if event["kind"] == "delta":
                self.streamed += event["body"]["text"]
            if event["kind"] == "state" and event["body"]["turn"]:
                self.frame_id = event["body"]["turn"]["frame"]
            if event["kind"] == "state":
                self.at_rest = event["body"]["turn"] is None
            message = event["body"].get("message")
            if event["kind"] == "message":
                self.words.add(message["text"])
                self.last_row = (message["role"], message["state"])
            if event["kind"] == "message" and message["role"] == "assistant" and message["state"] == "complete":
                self.answers.append(message["text"])


def test_fifty_users_at_once_each_get_every_answer_in_order_and_nothing_of_anybody_else(transactional_db):
    people = [User(username=f"user{number}", password="!") for number in range(USERS)]
    for person in people:
        person.save()
    threads = [create_thread(person) for person in people]
    hurried = [create_thread(person) for person in people[:HURRIED_USERS]]
    cookies = [signed_in(person) for person in people]

    async def live(ports, number: int, together: asyncio.Barrier) -> Page:
        async with Page(list(ports.values())[number % 2], cookies[number], threads[number].channel) as page:
            await together.wait()  # at once: nobody is done before the last one came
            for index in range(MESSAGES):
                words = f"user {number} message {index}"
                await page.send({"type": "send", "channel": page.channel, "key": f"k{index}", "text": words})
                last = index == MESSAGES - 1
                await page.until(lambda _: len(page.answers) > index and (page.has_ended() or not last))  # noqa: B023
            await together.wait()  # nobody leaves while another's events could still reach them
            await page.send({"type": "ping"})
            await page.until(lambda frame: frame["type"] == "pong")
            return page

    async def hurry(ports, number: int) -> None:
        """The same without waiting for answers: what is sent while a turn runs waits for its next safe point."""
        async with Page(list(ports.values())[number % 2], cookies[number], hurried[number].channel) as page:
            for index in range(MESSAGES):
                words = f"hurried {number} message {index}"
                await page.send({"type": "send", "channel": page.channel, "key": f"h{index}", "text": words})
            await page.until(lambda _frame: page.said(f"hurried {number} message {MESSAGES - 1}") and page.has_ended())

    async def everybody(ports):
        together = asyncio.Barrier(USERS)
        async with asyncio.TaskGroup() as group:
            living = [group.create_task(live(ports, number, together)) for number in range(USERS)]
        pages = [task.result() for task in living]
        await asyncio.gather(*(hurry(ports, number) for number in range(HURRIED_USERS)))
        return pages

    with running_emulator(bodies=False) as emulator:
        emulator.answer(text("Heard."), times=-1)
        with two_servers(emulator.base_url) as ports:
            began = clock.now()
            pages = async_to_sync(everybody)(ports)
            holders = set(TaskFrame.objects.values_list("state", flat=True))
            assert holders == {"done"}
            wait_until_both_clusters_worked(since=began)

    for number, (page, thread) in enumerate(zip(pages, threads, strict=True)):
        rows = list(Message.objects.filter(thread=thread).order_by("id").values_list("role", "text"))
        expected = []
        for index in range(MESSAGES):
            expected += [("user", f"user {number} message {index}"), ("assistant", "Heard.")]
        assert rows == expected
        assert page.answers == ["Heard."] * MESSAGES
        assert page.numbers == list(range(page.numbers[0], page.numbers[0] + len(page.numbers)))
        seen = json.dumps(page.frames)
        assert all(f"user {other} message" not in seen for other in range(USERS) if other != number)
    calls = ModelCall.objects.filter(thread_id__in=[thread.pk for thread in threads])
    assert calls.filter(outcome="complete").count() == USERS * MESSAGES
    for number, thread in enumerate(hurried):
        rows = list(Message.objects.filter(thread=thread).order_by("id").values_list("role", "text"))
        said = [words for role, words in rows if role == "user"]
        assert said == [f"hurried {number} message {index}" for index in range(MESSAGES)]
        assert rows[-1] == ("assistant", "Heard.")
    assert not InboxItem.objects.filter(state="waiting").exists()


def wait_until_both_clusters_worked(since):
    """Each cluster's workers beat under its name, when they start and around every task."""
    deadline = clock.monotonic() + 60
    while Heartbeat.objects.filter(name__startswith=WORKER_PREFIX, beat_at__gte=since).count() < 2:
        assert clock.monotonic() < deadline, list(Heartbeat.objects.values())
        time.sleep(0.1)


def holder_of(thread, ports):
    """The process that holds the thread's lease, and the port of the other server."""
    holder = Thread.objects.get(pk=thread.pk).lease_holder
    [pid] = [pid for pid in ports if f"/{pid}/" in holder]
    return pid, next(port for other, port in ports.items() if other != pid)


def test_a_server_killed_in_the_middle_of_an_answer_leaves_the_next_message_to_the_other(alice):
    thread = create_thread(alice)
    cookie = signed_in(alice)
    words = "".join(f"{number} " for number in range(1_000))

    async def scenario(emulator, ports):
        async with Page(next(iter(ports.values())), cookie, thread.channel) as page:
            await page.send({"type": "send", "channel": thread.channel, "key": "k", "text": f"{LONG}Count"})
            await page.until(lambda _frame: page.streamed)
        pid, port = await in_database(holder_of, thread, ports)
        os.kill(pid, signal.SIGKILL)
        while not await in_database(lambda: lapsed(Thread.objects.get(pk=thread.pk))):
            await asyncio.sleep(0.1)
        async with Page(port, cookie, thread.channel) as page:
            await page.send({"type": "send", "channel": thread.channel, "key": "l", "text": "Still there?"})
            await page.until(lambda _frame: page.answers == ["Here again."] and page.has_ended())

    with running_emulator() as emulator:
        emulator.fault("stall", after_deltas=3)
        emulator.answer(text(words))
        emulator.answer(text("Here again."))
        with two_servers(emulator.base_url, lease_seconds=2, clusters=0) as ports:
            async_to_sync(scenario)(emulator, ports)
        requests = emulator.requests(path="/v1/messages")
    rows = list(Message.objects.filter(thread=thread).order_by("id"))
    assert [row.text for row in rows if row.role == "user"] == [f"{LONG}Count", "Still there?"]
    assert [row.meta.get("notice") for row in rows if row.role == "event"] == ["interrupted"]
    [cut, again] = [row for row in rows if row.role == "assistant"]
    assert cut.text and cut.text != words and words.startswith(cut.text)
    assert again is rows[-1] and again.text == "Here again."
    # Nothing but the records is left of the process that sent the first request: the other one sends it on unchanged.
    assert len(requests) == 2
    check_each_extends_the_one_before(requests)
    assert json.loads(requests[-1]["body"])["messages"][2] == {
        "role": "assistant",
        "content": [{"type": "text", "text": cut.text}],
    }
    assert list(TaskFrame.objects.order_by("id").values_list("end_reason", flat=True)) == ["interrupted", "answered"]
    report = verify_thread(thread)
    assert report.calls == report.proved == 2


def test_stop_pressed_on_one_server_ends_a_turn_of_the_other(alice):
    thread = create_thread(alice)
    cookie = signed_in(alice)

    async def scenario(emulator, ports):
        async with Page(next(iter(ports.values())), cookie, thread.channel) as page:
            await page.send({"type": "send", "channel": thread.channel, "key": "k", "text": "Count"})
            await asyncio.to_thread(emulator.wait_for_held, 1)
            await page.until(lambda _frame: page.frame_id is not None)
            _pid, port = await in_database(holder_of, thread, ports)
            async with Page(port, cookie, thread.channel) as other:
                await other.send({"type": "stop", "channel": thread.channel, "frame": page.frame_id})
                await other.until(
                    lambda frame: (
                        frame["type"] == "events"
                        and any(event["kind"] == "state" and not event["body"]["turn"] for event in frame["events"])
                    )
                )

    with running_emulator() as emulator:
        emulator.answer(text("one two three four"), times=-1, hold="held")
        with two_servers(emulator.base_url, clusters=0) as ports:
            async_to_sync(scenario)(emulator, ports)
    assert list(TaskFrame.objects.order_by("id").values_list("end_reason", flat=True)) == ["stopped"]
    assert Thread.objects.get(pk=thread.pk).state == "idle"
