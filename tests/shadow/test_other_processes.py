"""A shadow is no matter of one process: it follows what others sent, after all of them are gone, and the person ends it
from elsewhere."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from django.conf import settings as project

from agent import sending
from llm.emulator.client import text, thinking, tool_use
from llm.models import ModelCall
from memory.fact_rows import lock_facts
from shadow import cursors, triggers
from shadow.models import ShadowFactProposal, ShadowRun
from tests.agent.test_cached_prefix import check_each_extends_the_one_before
from tests.agent.test_crashes import child, nursery, say, web_server  # noqa: F401  # fixtures
from tests.agent.world import database_url
from tests.maxclaw.running import ROOT, wait_until
from tests.shadow.playing import LONG, item, proposes
from tests.shadow.test_wire import check_follows
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads.lifecycle import create_thread
from threads.models import Message, Thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@contextmanager
def queue_worker(emulator):
    """A queue's worker in processes of its own, which polls once an hour: only a ring can have told it anything."""
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "MAXCLAW_EMULATOR_URL": emulator.base_url,
        "MAXCLAW_POLL_SECONDS": "3600",
        "MAXCLAW_ROLE": "worker",
        "MAXCLAW_DATA_DIR": str(project.DATA_DIR),
        "DJANGO_SETTINGS_MODULE": "maxclaw.settings",
    }
    command = [sys.executable, "-m", "django", "qcluster", "--skip-checks"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def said_in_another_process(web_server, *said):  # noqa: F811
    """Words to conversations whose turns a process of their own runs, which is then killed."""
    with web_server() as server:
        for number, (thread, words, state) in enumerate(said):
            before = Message.objects.filter(thread=thread).count()
            say(server, thread, words, f"{before}-{number}")

            def rests(thread=thread, state=state, before=before):
                rows = Message.objects.filter(thread=thread).count()
                return rows > before + 1 and Thread.objects.get(pk=thread.pk).state == state

            wait_until(rests, seconds=60.0, what="the turn's end")


def test_a_question_follows_turns_of_processes_that_are_gone_and_words_elsewhere_end_it(
    emulator,
    alice,
    web_server,  # noqa: F811
):
    cursors.initialize()
    first, second, third = (create_thread(alice) for _number in range(3))
    look = tool_use("message_history_read", {"channel": first.channel})
    emulator.answer(thinking("Two looks."), text("Looking."), look, look)
    emulator.answer(thinking("Seen."), text("Seen both."))
    said_in_another_process(web_server, (first, f"I prefer tea. {LONG}", "idle"))
    emulator.answer(thinking("Green or black?"), tool_use("ask_user_question", {"question": "Which?"}), look)
    others = [(second, LONG, "idle"), (third, f"I prefer tea. {LONG}", "idle")]
    said_in_another_process(web_server, (first, "Which tea is it?", "waiting"), *others)
    *earlier, _second, _third = emulator.requests(path="/v1/messages")
    check_each_extends_the_one_before(earlier)
    # The card made it due, and nobody is there who could ask.
    assert [(run.thread, run.status, run.reason) for run in ShadowRun.objects.all()] == [
        (first, "queued", "waiting-max")
    ]
    said = Message.objects.filter(thread=first, role="user").earliest("pk")
    proposes(emulator, item(said.pk))
    with queue_worker(emulator):
        wait_until(ShadowRun.objects.filter(ended__isnull=False).exists, seconds=60.0, what="the run in the worker")
        run = ShadowRun.objects.get()
        assert (run.status, run.path, run.error, run.proposals.count()) == ("completed", "hot", "", 1)
        answer = Message.objects.filter(thread=first, role="assistant").latest("pk")
        later = emulator.requests(path="/v1/messages")[-1]
        last = check_follows(earlier[-1], later, answer.wire)
        thought = [block["thinking"] for block in blocks_of(later, "thinking")]
        assert thought == ["Two looks.", "Seen.", "Green or black?"]
        assert len(blocks_of(later, "tool_result")) == 4
        assert [block["type"] for block in last["content"]] == ["tool_result", "tool_result", "text"]

        proposes(emulator, item(Message.objects.get(thread=second, role="user").pk), hold="asked")
        triggers.trigger(second.pk, "waiting-max")
        emulator.wait_for_held(seconds=60.0)
        run = ShadowRun.objects.get(thread=second)
        assert (run.status, run.path) == ("running", "hot")
        sending.send(alice, second.channel, "One thing more.", client_key="more")
        run.refresh_from_db()
        assert (run.status, run.error) == ("cancelled", "interrupted-by-max")
        # Nobody releases the held answer: the request itself is aborted.
        wait_until(ModelCall.objects.filter(pk=run.call, outcome="interrupted").exists, what="the request's end")
        assert emulator.state()["held"] == []

        # Words between the answer and the commit, which waits for facts that somebody else writes.
        proposes(emulator, item(Message.objects.get(thread=third, role="user").pk))
        writing = Elsewhere(lambda: lock_facts(alice.pk))
        writing.began.wait(20)
        triggers.trigger(third.pk, "waiting-max")
        wait_until_blocked()
        run = ShadowRun.objects.get(thread=third)
        assert (run.status, ModelCall.objects.get(pk=run.call).outcome) == ("running", "complete")
        sending.send(alice, third.channel, "One thing more.", client_key="late")
        run.refresh_from_db()
        assert (run.status, run.error) == ("cancelled", "interrupted-by-max")
        writing.finish()
    run.refresh_from_db()
    assert (run.status, run.error) == ("cancelled", "interrupted-by-max")
    assert not ShadowFactProposal.objects.filter(thread__in=[second, third]).exists()


def blocks_of(request, kind):
    """The blocks of a kind in a request's messages, in order."""
    messages = json.loads(request["body"])["messages"]
    return [block for message in messages for block in message["content"] if block["type"] == kind]
