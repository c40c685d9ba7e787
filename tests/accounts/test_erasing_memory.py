"""What was remembered goes with the conversation that proved it, and with the person: out of every table, log, file and
export, whichever way it went in."""

import pytest
from django.urls import reverse

from accounts.models import User
from agent import conversations
from llm.emulator import client as say
from maxclaw import clock
from memory import embedding_work, fact_embedding
from memory.models import Digest, EmbeddedThread, Episode, Fact, FactEvidence, FactUse, MessageChunk
from tests.accounts.test_erasing import places_with
from tests.accounts.test_erasing_everywhere import Browser, files_with, log_file, wait_for_rest
from tests.chat.sockets import open_socket
from tests.conftest import PASSWORD
from tests.memory.steward_world import drain, end_generation, outcomes, rests
from tests.shadow.records import proposal_row, run_row
from tests.threads.records import exchange, thread_of
from threads.lifecycle import create_thread
from threads.models import Message, Thread

__all__ = ["log_file"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-3c57"
OTHER = "canary-81e0"  # in the conversation that stays
MAIN = {"model": "emulator-main"}


def remembered_everywhere(server, emulator, settings, owner, page):
    """Two conversations, each with a canary of its own, whose words went into memory in every way there is."""
    settings.MODEL_RETRIES = 0
    thread, other = create_thread(owner, title="Dogs"), thread_of(owner, title="Mornings")
    fact = {"text": f"The dog is called {CANARY}.", "kind": "about-user", "aspect": "fact", "tone": "remark"}
    emulator.answer(say.tool_use("remember", {**fact, "applies_to": f"{CANARY} dogs"}), match=MAIN)
    emulator.answer(say.text("Noted."), match=MAIN)
    emulator.answer(say.tool_use("search_memory", {"query": f"What is {CANARY}?"}), match=MAIN)
    emulator.answer(say.text(f"It is {CANARY}."), match=MAIN)
    with open_socket(server, owner) as socket:
        socket.open(thread.channel)
        for number, words in enumerate(("Remember: I prefer my dog {}.", "What is {}?"), 1):
            socket.send(type="send", channel=thread.channel, key=str(number), text=words.format(CANARY))
            wait_for_rest(thread, number)
    rests(thread)
    emulator.fault("status", status=400, message=f"{CANARY} in an error", times=2)  # both models of the palette
    assert drain() == 0
    exchange(other, f"I prefer {OTHER} in the morning.", f"{OTHER} it is.")
    rests(other)
    assert drain() == 2
    assert outcomes() == ["failed", "done", "done"]
    for each, canary in ((thread, CANARY), (other, OTHER)):
        end_generation(each, "manual")  # it goes on with a summary, and briefed
        embedding_work.embed_some(each.pk)
        first = Message.objects.filter(thread=each, role="user").order_by("pk")[0]
        proposal_row(first, f"{canary} proposed", run_row(each, first.generation, "completed"))
        for address in ("memory", "search", "api-search", "api-facts"):
            assert page.http.get(reverse(address), params={"q": canary}).status_code == 200
        old = Fact.objects.get(writer="steward", text__contains=canary)
        address = reverse("memory-correct", args=[old.pk])
        assert page.post(address, "memory", text=f"Loves {canary}.", applies_to="", tone="remark").status_code == 302
    fact_embedding.embed_facts()
    return thread, other


REMEMBERED = {
    "memory_fact.text",
    "shadow_shadowfactproposal.text",
    "threads_generation.opening",
    "threads_generation.summary",
    "threads_message.text",
    "threads_message.wire",
}
OF_TURNS = {"agent_toolcall.arguments", "llm_modelcall.error", "memory_fact.applies_to"}


def rows_of_memory(thread):
    """How many rows of each table of memory speak of a conversation."""
    tables = {
        Digest: {"message__thread": thread},
        Episode: {"thread": thread},
        MessageChunk: {"thread": thread},
        EmbeddedThread: {"thread": thread},
        FactEvidence: {"message__thread": thread},
    }
    return [table.objects.filter(**where).count() for table, where in tables.items()]


def test_what_was_remembered_is_in_no_table_log_file_or_export_afterwards(
    server, emulator, settings, alice, log_file, caplog
):
    """Gone with the conversation that proved it, what others prove untouched; then gone with the person."""
    caplog.set_level("INFO")  # as much as is written in use
    caplog.set_level("WARNING", logger="httpx2")  # of this test's own requests
    page = Browser(server, alice)
    thread, other = remembered_everywhere(server, emulator, settings, alice, page)
    assert set(places_with(CANARY)) >= REMEMBERED | OF_TURNS, "else this proves nothing"
    assert set(places_with(OTHER)) >= REMEMBERED
    assert 0 not in rows_of_memory(thread) + rows_of_memory(other)
    assert FactUse.objects.filter(message__thread=thread).exists()
    assert not Fact.objects.filter(status="active", embedding=None).exists()

    def exported():
        answers = [page.post(name, "account") for name in ("account-export", "memory-export")]
        assert [answer.status_code for answer in answers] == [200, 200]
        return [(CANARY in answer.text, OTHER in answer.text) for answer in answers]

    assert exported() == [(True, True)] * 2
    headers = {"X-CSRFToken": page.http.cookies["csrftoken"], "Referer": str(page.http.base_url)}
    assert page.http.delete(reverse("api-thread", args=[thread.channel]), headers=headers).status_code == 200
    with clock.moved(601):
        assert conversations.erase_deleted() == 1
    assert not Thread.objects.filter(pk=thread.pk).exists()
    assert (places_with(CANARY), files_with(CANARY)) == ([], [])
    assert set(rows_of_memory(thread.pk)) == {0}
    assert exported() == [(False, True)] * 2
    assert set(places_with(OTHER)) >= REMEMBERED, "what others prove stays"
    assert 0 not in rows_of_memory(other)
    answer = page.post("account-erase", "account-erase", username=alice.username, password=PASSWORD)
    assert answer.status_code == 302, answer.text
    assert not User.objects.filter(pk=alice.pk).exists()
    assert (places_with(OTHER), files_with(OTHER)) == ([], [])
    for table in (Fact, FactEvidence, FactUse, MessageChunk, EmbeddedThread, Digest, Episode):
        assert not table.objects.exists(), table
    assert "was not read: ModelError" in log_file.read_text(), "else this proves nothing"
