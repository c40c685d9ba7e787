"""The web server is killed at any moment of a turn: no word is lost, no tool call is left without a result, and another
server answers the next message."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from websockets.exceptions import ConnectionClosed

from agent import renewal, summarizing, taking
from agent.models import InboxItem, TaskFrame, ToolCall, TurnEvent
from agent.ticking import jobs
from llm.emulator.client import text, tool_use
from llm.models import ModelCall
from maxclaw import clock
from maxclaw.supervisor import free_port
from tests.agent.crashing_process import IDLE_POINTS, POINTS, RENEWAL_POINTS, THRESHOLD_POINTS
from tests.agent.renewing import ASKED, summary_text
from tests.agent.test_cached_prefix import LONG, check_each_extends_the_one_before
from tests.agent.world import database_url
from tests.chat.sockets import open_socket
from threads.lifecycle import create_thread
from threads.models import Generation, Message, Thread
from threads.verification import verify_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

ROOT = Path(django_settings.BASE_DIR)
WAIT_SECONDS = 60
WORDS = "Please read the history twice and count to six."
COUNTED = [f"{word} " for word in ["one", "two", "three", "four", "five", "six"]]


class Child:
    """One running child: with a port the server there, whose `url` has no slash at its end."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def wait(self, seconds: float = WAIT_SECONDS) -> None:
        """Wait for its end."""
        wait_until(lambda: not self.alive(), seconds)

    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="module")
def nursery(emulator_process, django_db_setup):
    """The process that children are forked from: loading the project once, not for each of them."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "maxclaw.settings",
        "DATABASE_URL": database_url(),
        "MAXCLAW_EMULATOR_URL": emulator_process.base_url,
        "MAXCLAW_DATA_DIR": str(django_settings.DATA_DIR),
        "MAXCLAW_SECRET_KEY": django_settings.SECRET_KEY,
        "MAXCLAW_POLL_SECONDS": "3600",
        "MAXCLAW_ROLE": "web",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.agent.crashing_process"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.stdin.close()
    process.wait(WAIT_SECONDS)
    process.stdout.close()


@pytest.fixture
def child(nursery):
    """A context manager that runs a child which dies at a point, and kills it at the end in any case."""

    @contextlib.contextmanager
    def start(point, **asked):
        port = asked.get("port", 0)
        nursery.stdin.write(f"{json.dumps({'point': point, **asked})}\n")
        nursery.stdin.flush()
        running = Child(int(nursery.stdout.readline().removeprefix("running ")), port)
        try:
            yield running
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, signal.SIGKILL)
            running.wait()

    return start


@pytest.fixture
def web_server(child):
    """The same for a web server. `later` is the lead of its clock, in seconds; yields it when it listens."""

    @contextlib.contextmanager
    def start(point="nowhere", later=0):
        with child(point, port=free_port(), later=later) as running:
            wait_until(running.listens)
            yield running

    return start


def test_the_prefix_holds_after_the_server_is_killed_and_restarted(emulator, alice, web_server):
    """Everything a request is made of stands in the records: a new process sends the same bytes and reads the cache."""
    thread = create_thread(alice)
    call = {"channel": thread.channel}
    emulator.answer(text("Looking."), tool_use("message_history_read", call), tool_use("message_history_read", call))
    emulator.answer(text("First answer."))
    emulator.answer(text("Second answer."))
    with web_server() as server:
        converse(server, thread, LONG, "First answer.")
    with web_server() as server:
        converse(server, thread, "And after the restart?", "Second answer.")
    requests = emulator.requests(path="/v1/messages")
    assert len(requests) == 3
    check_each_extends_the_one_before(requests)


def converse(server, thread, words, answer):
    """Say something on a page of this server's, and wait until it was answered with just that and the thread rests."""
    say(server, thread, words, words[:20].replace(" ", "-"))
    wait_until(lambda: Message.objects.filter(thread=thread, text=answer).exists())
    wait_until(lambda: Thread.objects.get(pk=thread.pk).state == Thread.State.IDLE)


def say(server, thread, words, key):
    with open_socket(server, thread.owner) as page:
        page.send(type="send", channel=thread.channel, key=key, text=words)
        page.receive("sent", timeout=WAIT_SECONDS)


def wait_until(look, seconds=WAIT_SECONDS):
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError("It did not happen.")
        time.sleep(0.02)
    return found


def script(emulator, thread):
    # Paced, so that the stream is stored in several batches.
    pace = {"first_token_ms": 0, "tokens_per_second": 20}
    call = {"channel": thread.channel}
    emulator.answer(text("Here I am."), match={"contains": "Are you there?"}, times=-1)
    emulator.answer(
        text("one two three four five six", pieces=COUNTED),
        tool_use("message_history_read", call),
        tool_use("message_history_read", call),
        match={"contains": WORDS},
        pace=pace,
    )
    emulator.answer(
        text("one two three four five six", pieces=COUNTED),
        match={"tool": "message_history_read"},
        pace=pace,
    )


@pytest.mark.parametrize("point", POINTS)
def test_killed(point, emulator, alice, web_server):
    """Words go to the one server and to the other over their sockets, sent again under their key when the page was not
    told that they came, as pages do. Nothing but the other server's start ends what the killed one held."""
    thread = create_thread(alice)
    script(emulator, thread)
    words = {"type": "send", "channel": thread.channel, "key": "first", "text": f"{LONG}{WORDS}"}
    told = False
    with web_server(point) as server, open_socket(server, alice) as page:
        page.send(**words)
        with contextlib.suppress(ConnectionClosed):
            while True:
                told = page.receive(timeout=WAIT_SECONDS)["type"] == "sent" or told
        server.wait()
    streamed = "".join(event.body["text"] for event in TurnEvent.objects.filter(kind="delta").order_by("number"))

    with web_server(later=django_settings.LEASE_SECONDS + 1) as server:
        if not told:
            say(server, thread, words["text"], words["key"])
        converse(server, thread, "Are you there?", "Here I am.")

    rows = list(Message.objects.filter(thread=thread).order_by("id"))
    said = [row.text for row in rows if row.role == "user"]
    assert said == [words["text"], "Are you there?"]
    kept = "".join(row.text for row in rows if row.role == "assistant")
    assert streamed in kept
    assert not InboxItem.objects.filter(state="waiting").exists()
    assert not ToolCall.objects.filter(result__isnull=True).exists()
    assert not TaskFrame.objects.exclude(state__in=["done", "failed"]).exists()
    assert not ModelCall.objects.filter(outcome="").exists()
    assert not Message.objects.filter(meta__state="streaming").exists()
    check_each_extends_the_one_before(emulator.requests(path="/v1/messages"))
    report = verify_thread(thread)
    assert report.calls == report.proved


@pytest.mark.parametrize("point", [*RENEWAL_POINTS, *THRESHOLD_POINTS])
def test_killed_while_the_context_is_renewed(point, emulator, alice, web_server):
    """The old generation stays live and whole, and the next message is answered in it."""
    thread = create_thread(alice)
    emulator.answer(text("First answer."), match={"contains": "First words"})
    emulator.answer(text("Here I am."), match={"contains": "Are you there?"})
    with web_server(point) as server:
        say(server, thread, "First words", "first")
        wait_until(lambda: Message.objects.filter(thread=thread, text="First answer.").exists())
        if point in RENEWAL_POINTS:
            wait_until(lambda: Thread.objects.get(pk=thread.pk).state == Thread.State.IDLE)
            renewal.request(alice, thread.channel)
        server.wait()
    with clock.moved(django_settings.LEASE_SECONDS + 1):
        assert taking.sweep(thread.pk)
    only = Generation.objects.get(thread=thread)
    assert (only.ended, only.summary) == (None, "")
    with web_server() as server:
        converse(server, thread, "Are you there?", "Here I am.")
    report = verify_thread(thread)
    assert report.calls == report.proved == 2
    assert not ModelCall.objects.filter(outcome="").exists()
    assert not TaskFrame.objects.exclude(state__in=["done", "failed"]).exists()


@pytest.mark.parametrize("point", IDLE_POINTS)
def test_killed_while_a_resting_context_is_renewed(point, emulator, alice, web_server, child):
    """One generation is live and whole, the old one until the commit, and the next message is answered in it."""
    thread = create_thread(alice)
    emulator.answer(text("First answer."), match={"contains": "First words"})
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("Here I am."), match={"contains": "Are you there?"})
    with web_server() as server:
        converse(server, thread, "First words", "First answer.")
    with child(point, resting=thread.pk) as worker:
        worker.wait()
    made = Generation.objects.filter(thread=thread).order_by("ordinal")
    ended = [(one.ended is not None, one.end_reason, "The garden" in one.summary) for one in made]
    if point == "after the resting context was renewed":
        assert ended == [(True, "idle", True), (False, "", False)]
        assert "The garden" in made[1].opening
    else:
        assert ended == [(False, "", False)]
        rows = Message.objects.filter(generation=made[0]).order_by("id")
        assert list(rows.values_list("text", "left_at_cut")) == [("First words", None), ("First answer.", None)]
    with web_server() as server:
        converse(server, thread, "Are you there?", "Here I am.")
    report = verify_thread(thread)
    assert report.calls == report.proved == 2
    assert not TaskFrame.objects.exclude(state__in=["done", "failed"]).exists()
    with clock.moved(summarizing.CALL_TIMEOUT_SECONDS + 1):
        jobs()["close abandoned calls for summaries"](clock.now())
    assert not ModelCall.objects.filter(outcome="").exists()
