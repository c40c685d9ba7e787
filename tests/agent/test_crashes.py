"""The process that runs a turn is killed at any moment of it: no word is lost, no tool call is left without a result,
and the next message is answered."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from agent import renewal, sending, summarizing, taking
from agent.models import InboxItem, TaskFrame, ToolCall, TurnEvent
from agent.ticking import jobs
from llm.emulator.client import text, tool_use
from llm.models import ModelCall
from maxclaw import clock
from tests.agent.crashing_process import IDLE_POINTS, POINTS, RENEWAL_POINTS, THRESHOLD_POINTS
from tests.agent.renewing import ASKED, summary_text
from tests.agent.test_cached_prefix import LONG, check_each_extends_the_one_before
from tests.agent.world import database_url
from threads.lifecycle import create_thread
from threads.models import Generation, Message, Thread
from threads.verification import verify_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

ROOT = Path(django_settings.BASE_DIR)
WORDS = "Please read the history twice and count to six."
COUNTED = [f"{word} " for word in ["one", "two", "three", "four", "five", "six"]]


class TurnProcess:
    """One running child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self, seconds: float) -> None:
        """Wait for its end."""
        wait_until(lambda: not self.alive(), seconds)

    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True


@pytest.fixture(scope="module")
def nursery(emulator_process, django_db_setup):
    """The process that children are forked from: loading the project once, not for each of them."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "MAXCLAW_EMULATOR_URL": emulator_process.base_url,
        "MAXCLAW_POLL_SECONDS": "1",
        "MAXCLAW_DATA_DIR": str(django_settings.DATA_DIR),
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
    process.wait(10)
    process.stdout.close()


@pytest.fixture
def turn_process(nursery):
    """A context manager that runs a child which dies at a point, and kills it at the end in any case. With a
    `resting` thread the child renews that one's context and does nothing else."""

    @contextlib.contextmanager
    def start(point, resting=None):
        nursery.stdin.write(f"{point}\n" if resting is None else f"{point}\t{resting.pk}\n")
        nursery.stdin.flush()
        child = TurnProcess(int(nursery.stdout.readline().removeprefix("running ")))
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            child.wait(10)

    return start


def test_the_prefix_holds_after_the_process_is_killed_and_restarted(emulator, alice, turn_process):
    """Everything a request is made of stands in the records: a new process sends the same bytes and reads the cache."""
    thread = create_thread(alice)
    call = {"channel": thread.channel}
    emulator.answer(text("Looking."), tool_use("message_history_read", call), tool_use("message_history_read", call))
    emulator.answer(text("First answer."))
    emulator.answer(text("Second answer."))
    with turn_process("nowhere"):
        converse(thread, LONG, "First answer.")
    with turn_process("nowhere"):
        converse(thread, "And after the restart?", "Second answer.")
    requests = emulator.requests(path="/v1/messages")
    assert len(requests) == 3
    check_each_extends_the_one_before(requests)


def converse(thread, words, answer):
    """Say something where a child runs, and wait until it was answered with just that and the thread rests."""
    sending.send(thread.owner, thread.channel, words, client_key=words[:20])
    wait_until(lambda: Message.objects.filter(thread=thread, text=answer).exists())
    wait_until(lambda: Thread.objects.get(pk=thread.pk).state == Thread.State.IDLE)


def wait_until(look, seconds=15):
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
def test_killed(point, emulator, alice, turn_process):
    thread = create_thread(alice)
    script(emulator, thread)
    with turn_process(point) as process:
        sending.send(alice, thread.channel, WORDS, client_key="first")
        process.wait(20)
    streamed = "".join(event.body["text"] for event in TurnEvent.objects.filter(kind="delta").order_by("number"))
    with clock.moved(django_settings.LEASE_SECONDS + 1):
        for thread_id in list(taking.lapsed_threads().values_list("pk", flat=True)):
            taking.sweep(thread_id)
    thread.refresh_from_db()
    assert thread.state == Thread.State.IDLE

    with turn_process("nowhere"):
        converse(thread, "Are you there?", "Here I am.")

    rows = list(Message.objects.filter(thread=thread).order_by("id"))
    said = [row.text for row in rows if row.role == "user"]
    assert said == [WORDS, "Are you there?"]
    kept = "".join(row.text for row in rows if row.role == "assistant")
    assert streamed in kept
    assert not InboxItem.objects.filter(state="waiting").exists()
    assert not ToolCall.objects.filter(result__isnull=True).exists()
    assert not TaskFrame.objects.exclude(state__in=["done", "failed"]).exists()
    assert not ModelCall.objects.filter(outcome="").exists()
    assert not Message.objects.filter(meta__state="streaming").exists()
    report = verify_thread(thread)
    assert report.calls == report.proved


@pytest.mark.parametrize("point", [*RENEWAL_POINTS, *THRESHOLD_POINTS])
def test_killed_while_the_context_is_renewed(point, emulator, alice, turn_process):
    """The old generation stays live and whole, and the next message is answered in it."""
    thread = create_thread(alice)
    emulator.answer(text("First answer."), match={"contains": "First words"})
    emulator.answer(text("Here I am."), match={"contains": "Are you there?"})
    with turn_process(point) as process:
        sending.send(alice, thread.channel, "First words", client_key="first")
        wait_until(lambda: Message.objects.filter(thread=thread, text="First answer.").exists())
        if point in RENEWAL_POINTS:
            wait_until(lambda: Thread.objects.get(pk=thread.pk).state == Thread.State.IDLE)
            renewal.request(alice, thread.channel)
        process.wait(20)
    with clock.moved(django_settings.LEASE_SECONDS + 1):
        assert taking.sweep(thread.pk)
    only = Generation.objects.get(thread=thread)
    assert (only.ended, only.summary) == (None, "")
    with turn_process("nowhere"):
        converse(thread, "Are you there?", "Here I am.")
    report = verify_thread(thread)
    assert report.calls == report.proved == 2
    assert not ModelCall.objects.filter(outcome="").exists()
    assert not TaskFrame.objects.exclude(state__in=["done", "failed"]).exists()


@pytest.mark.parametrize("point", IDLE_POINTS)
def test_killed_while_a_resting_context_is_renewed(point, emulator, alice, turn_process):
    """One generation is live and whole, the old one until the commit, and the next message is answered in it."""
    thread = create_thread(alice)
    emulator.answer(text("First answer."), match={"contains": "First words"})
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("Here I am."), match={"contains": "Are you there?"})
    with turn_process("nowhere"):
        converse(thread, "First words", "First answer.")
    with turn_process(point, resting=thread) as process:
        process.wait(20)
    made = Generation.objects.filter(thread=thread).order_by("ordinal")
    ended = [(one.ended is not None, one.end_reason, "The garden" in one.summary) for one in made]
    if point == "after the resting context was renewed":
        assert ended == [(True, "idle", True), (False, "", False)]
        assert "The garden" in made[1].opening
    else:
        assert ended == [(False, "", False)]
        rows = Message.objects.filter(generation=made[0]).order_by("id")
        assert list(rows.values_list("text", "left_at_cut")) == [("First words", None), ("First answer.", None)]
    with turn_process("nowhere"):
        converse(thread, "Are you there?", "Here I am.")
    report = verify_thread(thread)
    assert report.calls == report.proved == 2
    assert not TaskFrame.objects.exclude(state__in=["done", "failed"]).exists()
    with clock.moved(summarizing.CALL_TIMEOUT_SECONDS + 1):
        jobs()["close abandoned calls for summaries"](clock.now())
    assert not ModelCall.objects.filter(outcome="").exists()
