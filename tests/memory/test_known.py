"""What is told of known facts to whoever is to write more."""

import numpy as np
import pytest
from asgiref.sync import async_to_sync

from memory import fact_embedding, known
from memory.known import NEAREST_MAX
from memory.query_vectors import PIECES_MAX
from tests.llm.test_embedding import Server
from tests.memory.facts import fact_row, remember
from tests.threads.records import exchange, thread_of
from threads.copying import rewind

pytestmark = pytest.mark.django_db(transaction=True)


def told(thread, words):
    return known.lines(async_to_sync(known.known)(thread, words))


def test_the_facts_of_the_conversation_come_first_then_the_nearest_of_the_same_level(alice, bob):
    here, elsewhere = thread_of(alice), thread_of(alice)
    isolated, foreign = thread_of(alice, scope="isolated"), thread_of(bob)
    first, _answer = exchange(here, "Hello.")
    own, _answer = exchange(here, "I walk to work.")
    remember(own, "Walks to work.", tone="decision", applies_to="in summer")
    for number in range(NEAREST_MAX + 2):
        remember(exchange(elsewhere)[0], f"Likes lemon tree number {number}.")
    near = remember(exchange(elsewhere)[0], "Prefers green tea to coffee.").fact
    for thread in (isolated, foreign):
        remember(exchange(thread)[0], "Prefers green tea, too.")
    fact_embedding.embed_facts()
    rows = told(here, "Good morning. " * 100 + "\n\nI prefer green tea to coffee.")
    assert len(rows) == 1 + NEAREST_MAX
    assert "; decision; preference; applies to: in summer] Walks to work." in rows[0]
    assert rows[1].startswith(f"f:{near.pk} ")
    assert "too" not in "".join(rows)
    rewind(here, first, acting_user=alice)
    assert "rewritten or taken back" in told(here, "Something else")[0]


def test_the_words_of_a_page_reach_no_embedding_server_that_may_not_read_them(alice, settings):
    server = Server()
    settings.EMBEDDING_URL, settings.EMBEDDING_MODEL = server.url, "embed-small"
    settings.EMBEDDING_RECALL_THRESHOLD, settings.EMBEDDING_BRIEFING_THRESHOLD = 0.6, 0.4
    settings.EMBEDDING_READS = []
    vector = np.ones(3) / np.sqrt(3)
    plain, labelled = thread_of(alice), thread_of(alice, category="work")
    for thread in (plain, labelled):
        said, _answer = exchange(thread_of(alice, category=thread.category), "I like lemons.")
        level = {"category": thread.category, "embedding": vector, "embedding_model": "embed-small"}
        fact_row(alice, said, "Likes lemons.", **level)
    try:
        assert told(labelled, "I like lemons.") == known.nearest(labelled, "I like lemons.") == []
        assert server.requests == []
        assert len(told(plain, "I like lemons. " * 2_000)) == 1
        assert sum(len(body["input"]) for _path, _key, body in server.requests) == PIECES_MAX
        [near] = known.nearest(plain, "I like lemons.")
        assert near.text == "Likes lemons."
    finally:
        server.server.shutdown()
        server.server.server_close()
