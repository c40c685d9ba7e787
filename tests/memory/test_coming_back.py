"""What was taken back or forgotten does not come back: from older words, a job in flight, a context that was told."""

import threading
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from agent.registry import ToolContext
from llm.catalog_entries import ALL
from llm.emulator.client import text
from maxclaw import clock
from maxclaw.database_threads import in_database
from memory import changing, fact_embedding, steward_tools
from memory.forgetting import forget
from memory.models import Fact, FactUse
from memory.refusals import FactRefused
from tests.accounts.test_erasing import places_with
from tests.agent.world import running_world
from tests.memory.facts import about_user, remember
from tests.threads.records import exchange, live, thread_of
from threads.models import Generation, Message

CANARY = "canary-77aa"


def said_days_ago(owner, words, days):
    """In a conversation of its own."""
    message, _answer = exchange(thread_of(owner), words)
    Message.objects.filter(pk=message.pk).update(created=clock.now() - timedelta(days=days))
    return Message.objects.get(pk=message.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("writer", ["steward", "shadow"])
def test_what_a_model_retired_comes_back_by_words_alone_that_are_newer_than_those_for_which_it_did(alice, writer):
    tea = said_days_ago(alice, "I like tea.", 30)
    older, newer = said_days_ago(alice, "Tea is best.", 20), said_days_ago(alice, "Tea again!", 5)
    over = said_days_ago(alice, "No tea any more.", 10)
    fact = remember(tea).fact
    steward_tools.retire_fact(
        ToolContext(over.thread_id, alice.pk, 0, 0),
        {"fact_id": fact.pk, "reason": "They said so.", "evidence": [{"kind": "max-stated", "message_id": over.pk}]},
    )
    with pytest.raises(FactRefused, match="was taken back or forgotten after this was said"):
        remember(older, "prefers TEA", writer=writer)
    with pytest.raises(FactRefused, match="taken back"):
        remember(tea, writer=writer)
    assert remember(older, applies_to="breakfast", writer=writer).outcome == "new", "another thing"
    assert remember(newer, writer=writer).outcome == "new", "said before the steward came, and after what it read"


@pytest.mark.django_db
@pytest.mark.parametrize("writer", ["steward", "shadow"])
def test_what_was_forgotten_comes_back_from_no_older_words_of_another_conversation(alice, bob, writer):
    tea, elsewhere = said_days_ago(alice, "I like tea.", 30), said_days_ago(alice, "Tea is best.", 20)
    corrected = changing.correct(remember(tea).fact, about_user("Prefers rain."), reason="", writer="person")
    forget(corrected, writer="person")
    for words in ("Prefers tea.", "prefers  RAIN"):
        for applies_to in ("", "mornings"):
            with pytest.raises(FactRefused, match="forgotten"):
                remember(elsewhere, words, applies_to=applies_to, writer=writer)
    assert remember(said_days_ago(bob, "Tea!", 20), writer=writer).outcome == "new"
    assert remember(exchange(thread_of(alice), "Tea, I say!")[0], writer=writer).outcome == "new"


class Slow:
    """An embedding model that is asked, and answers when it is told to."""

    name, max_chars, categories = "slow", 1_000, ALL

    def __init__(self):
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def embed(self, texts):
        self.asked.set()
        assert self.may_answer.wait(60)
        return [[1.0, 0.0] for _text in texts]


@pytest.mark.django_db(transaction=True)
def test_forgetting_while_an_embedding_job_is_in_flight_takes_the_fact_from_everywhere_and_from_what_is_to_come(
    emulator, alice
):
    """Gone from facts, embeddings and briefings to come; the report lists where the words stay; the live generation
    that was briefed with it ends at the next boundary."""
    asks = "How do I look after the bees on my roof?"
    said, _answer = exchange(thread_of(alice), "I keep bees on the roof.")
    fact = remember(said, f"Alice keeps bees on the roof of her house, called {CANARY}.", aspect="fact").fact
    assert fact_embedding.embed_facts() == 1
    emulator.answer(text("Gently."), times=-1)
    slow, given = Slow(), []

    def job():
        given.append(fact_embedding.embed_facts(backend=slow))
        connection.close()

    async def scenario(world):
        told = await world.new_thread(alice)
        await world.ask(told, asks)
        briefed = await in_database(live, told)
        assert CANARY in briefed.opening
        working = threading.Thread(target=job)
        working.start()
        assert slow.asked.wait(60)
        report = await in_database(lambda: forget(fact, writer="person", actor=alice))
        slow.may_answer.set()
        working.join()
        await world.until(lambda: Generation.objects.filter(thread=told, ordinal=2).exists())
        await world.ask(told, asks)
        later = await world.new_thread(alice)
        await world.ask(later, asks)
        return briefed, report, later

    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    briefed, report, later = async_to_sync(run)()
    assert given == [0]
    assert not Fact.objects.exists() and not FactUse.objects.exists()
    assert (report.facts, report.messages) == ([fact.pk], [said.pk])
    assert report.generations == report.ending == [briefed.pk]
    first, second = Generation.objects.filter(thread=briefed.thread).order_by("ordinal")
    assert (first.pk, first.end_reason, second.ended) == (briefed.pk, "forgotten", None)
    assert (CANARY in second.opening, CANARY in live(later).opening) == (False, False)
    # What was sent is frozen: it stays in the generation that the report names, and nowhere else.
    assert {place.split(".")[0] for place in places_with(CANARY)} <= {"threads_generation"}
