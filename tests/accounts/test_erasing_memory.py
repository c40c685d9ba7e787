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
KEPT = "I prefer quiet mornings."
MAIN = {"model": "emulator-main"}


def remembered_everywhere(server, emulator, settings, owner, page):
    """A conversation whose words went into memory in every way there is. Returns it."""
    settings.MODEL_RETRIES = 0
    thread = create_thread(owner, title="Dogs")
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
    kept = thread_of(owner, title="kept")
    exchange(kept, KEPT)
    rests(kept)
    assert drain() == 2
    assert outcomes() == ["failed", "done", "done"]
    end_generation(thread, "manual")  # it goes on with a summary, and briefed
    fact_embedding.embed_facts()
    for each in (thread, kept):
        embedding_work.embed_some(each.pk)
    first = Message.objects.filter(thread=thread, role="user").order_by("pk")[0]
    proposal_row(first, f"{CANARY} proposed", run_row(thread, first.generation, "completed"))
    for address in ("memory", "search", "api-search", "api-facts"):
        assert page.http.get(reverse(address), params={"q": CANARY}).status_code == 200
    old = Fact.objects.get(writer="steward", text__contains=CANARY)
    address = reverse("memory-correct", args=[old.pk])
    assert page.post(address, "memory", text=f"Loves {CANARY}.", applies_to="", tone="remark").status_code == 302
    return thread


MEMORY_PLACES = {
    "agent_toolcall.arguments",
    "llm_modelcall.error",
    "memory_fact.applies_to",
    "memory_fact.text",
    "shadow_shadowfactproposal.text",
    "threads_generation.opening",
    "threads_generation.summary",
    "threads_message.text",
    "threads_message.wire",
}


def rows_of_memory(thread):
    """How many rows of each table of memory speak of a conversation."""
    tables = {
        Digest: {"message__thread": thread},
        Episode: {"thread": thread},
        MessageChunk: {"thread": thread},
        EmbeddedThread: {"thread": thread},
        FactUse: {"message__thread": thread},
        FactEvidence: {"message__thread": thread},
    }
    return {table: table.objects.filter(**where).count() for table, where in tables.items()}


def erase_conversation(page, thread):
    token = page.http.cookies["csrftoken"]
    headers = {"X-CSRFToken": token, "Referer": str(page.http.base_url)}
    assert page.http.delete(reverse("api-thread", args=[thread.channel]), headers=headers).status_code == 200
    with clock.moved(601):
        assert conversations.erase_deleted() == 1


def erase_person(page, thread):
    answer = page.post("account-erase", "account-erase", username=thread.owner.username, password=PASSWORD)
    assert answer.status_code == 302, answer.text


@pytest.mark.parametrize("erase", [erase_conversation, erase_person])
def test_what_was_remembered_is_in_no_table_log_file_or_export_afterwards(
    server, emulator, settings, alice, log_file, caplog, erase
):
    caplog.set_level("INFO")  # as much as is written in use
    caplog.set_level("WARNING", logger="httpx2")  # of this test's own requests
    page = Browser(server, alice)
    thread = remembered_everywhere(server, emulator, settings, alice, page)
    assert set(places_with(CANARY)) >= MEMORY_PLACES, "else this proves nothing"
    assert 0 not in rows_of_memory(thread).values()
    assert not Fact.objects.filter(status="active", embedding=None, writer="remember").exists()

    def exported():
        answers = [page.post(name, "account") for name in ("account-export", "memory-export")]
        return [(answer.status_code, answer.text) for answer in answers]

    assert all(status == 200 and CANARY in text and KEPT in text for status, text in exported())
    erase(page, thread)
    assert places_with(CANARY) == []
    assert files_with(CANARY) == []
    assert "was not read: ModelError" in log_file.read_text(), "else this proves nothing"
    assert set(rows_of_memory(thread.pk).values()) == {0}
    if erase is erase_person:
        assert not User.objects.filter(pk=alice.pk).exists()
        assert not (Fact.objects.exists() or MessageChunk.objects.exists() or Digest.objects.exists())
        return
    assert not Thread.objects.filter(pk=thread.pk).exists()
    assert all(status == 200 and CANARY not in text and KEPT in text for status, text in exported())
    assert Fact.objects.get().text == f"The user said: {KEPT}", "what other conversations prove stays"
    assert MessageChunk.objects.exists()
