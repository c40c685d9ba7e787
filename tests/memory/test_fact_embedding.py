"""Facts get their vectors in the background, and none is lost to a crash in between."""

import io

import pytest
from django.core.management import call_command
from django.db import connection
from django_q.models import OrmQ

from agent.ticking import run_tick
from llm import embedding
from llm.catalog_entries import ALL
from maxclaw import clock
from memory import fact_embedding, reembedding, tasks, writing
from memory.models import Fact
from tests.memory.facts import remember
from tests.memory.test_fact_search import find, ids
from tests.threads.records import say, thread_of
from threads.models import Message
from threads.visibility import Viewer

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(alice):
    return say(thread_of(alice), Message.Role.USER, "Tea!")


def waiting():
    return [(task.task["func"], task.task["args"]) for task in OrmQ.objects.order_by("id")]


class Backend:
    max_chars, categories = 1_000, ALL

    def __init__(self, name="test", categories=ALL):
        self.name, self.categories, self.seen = name, categories, []

    def embed(self, texts):
        self.seen += texts
        return [[1.0, 0.0] for _text in texts]


def test_a_written_fact_is_embedded_soon_after(alice, said, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        fact = remember(said, applies_to="mornings").fact
    assert waiting() == [("memory.tasks.embed_facts", (alice.pk,))]
    assert tasks.embed_facts(alice.pk) == 1
    fact.refresh_from_db()
    assert fact.embedding_model == embedding.configured().name
    assert len(fact.embedding) == 512
    assert tasks.embed_facts(alice.pk) == 0


def test_a_crash_between_supersession_and_embedding_costs_a_minute_and_hides_no_fact(alice, said):
    old = remember(said, "Prefers tea in the morning.").fact
    fact_embedding.embed_facts()
    new = remember(said, "Prefers coffee in the morning.", replaces=old.pk).fact  # and nothing that was to follow
    old.refresh_from_db()
    assert (old.embedding, old.embedding_model) == (None, "")
    OrmQ.objects.all().delete()
    viewer, asked = Viewer.of_thread(said.thread), "Does she prefer coffee in the morning?"
    assert find(viewer, asked).hits[0].standing is None, "in the gap it is found by its words"
    assert ids(find(viewer, asked)) == ids(find(viewer, "coffee")) == [new.pk]
    run_tick(clock.now())
    assert ("memory.tasks.embed_facts", ()) in waiting()
    assert tasks.embed_facts() == 1
    new.refresh_from_db()
    assert new.embedding_model
    hits = find(viewer, asked).hits
    assert [hit.fact_id for hit in hits] == [new.pk]
    assert hits[0].standing is not None, "and then by its meaning"
    OrmQ.objects.all().delete()
    run_tick(clock.now())
    assert ("memory.tasks.embed_facts", ()) not in waiting()


def test_what_is_embedded_says_what_a_fact_applies_to_and_no_secret(said):
    remember(said, "Likes it.", applies_to="the editor")
    fact = remember(said, "Uses it.").fact
    Fact.objects.filter(pk=fact.pk).update(text="Uses sk-ant-api03-abcdefghijklmnop1.")
    backend = Backend()
    fact_embedding.embed_facts(backend=backend)
    assert backend.seen == ["Likes it. (the editor)", "Uses [redacted]."]


def test_a_fact_that_is_superseded_while_it_is_embedded_gets_no_vector(said):
    fact = remember(said).fact

    class Retiring(Backend):
        def embed(self, texts):
            writing.retire(fact, reason="", writer="person")
            return super().embed(texts)

    assert fact_embedding.embed_facts(backend=Retiring()) == 0
    assert Fact.objects.get().embedding is None
    connection.check_constraints()


def test_a_failing_backend_is_tried_again_and_a_slow_one_stopped_in_time(said):
    remember(said)

    class Failing(Backend):
        def embed(self, texts):
            raise embedding.EmbeddingError(embedding.ErrorKind.TRANSIENT, "no answer")

    assert fact_embedding.embed_facts(backend=Failing()) == 0
    assert fact_embedding.embed_facts(backend=Backend(), seconds=0) == 0
    assert fact_embedding.embed_facts(backend=Backend()) == 1


def test_words_that_a_backend_refuses_keep_no_others_from_their_vectors(alice, bob, said):
    """A server refuses the whole request for one text in it."""
    kept = [remember(said, f"Likes tea number {number}.").fact.pk for number in range(3)]
    refused = remember(said, "Unspeakable.").fact.pk
    kept.append(remember(say(thread_of(bob), Message.Role.USER, "Tea!")).fact.pk)

    class Refusing(Backend):
        kind = embedding.ErrorKind.UNKNOWN

        def embed(self, texts):
            self.seen.append(len(texts))
            if "Unspeakable." in texts:
                raise embedding.EmbeddingError(self.kind, "refused")
            return [[1.0, 0.0] for _text in texts]

    down = Refusing()
    down.kind = embedding.ErrorKind.TRANSIENT
    assert fact_embedding.embed_facts(backend=down) == 0
    assert down.seen == [5], "a backend that is down is not asked in halves"

    class Broken(Refusing):
        def embed(self, texts):
            self.seen.append(len(texts))
            raise embedding.EmbeddingError(self.kind, "no such model")

    broken = Broken()
    assert fact_embedding.embed_facts(backend=broken) == 0
    assert broken.seen == [5, 1], "nor is one that refuses everything"
    assert fact_embedding.embed_facts(backend=Refusing()) == 4
    assert sorted(Fact.objects.exclude(embedding_model="").values_list("pk", flat=True)) == sorted(kept)
    assert [fact.pk for fact in fact_embedding.pending_facts(Refusing())] == [refused]


def test_no_words_of_a_category_reach_a_backend_that_may_not_read_it(alice, said):
    remember(said)
    labelled = remember(say(thread_of(alice, category="personal"), Message.Role.USER, "Ill."), "Is ill.").fact
    backend = Backend(categories=frozenset({"work"}))
    assert fact_embedding.embed_facts(backend=backend) == 1
    assert backend.seen == ["Prefers tea."]
    assert not fact_embedding.pending_facts(backend).exists()
    backend.categories = frozenset({"personal"})
    assert list(fact_embedding.pending_facts(backend)) == [labelled]


def test_another_model_embeds_facts_anew_while_the_old_vectors_stand(said):
    fact = remember(said).fact
    fact_embedding.embed_facts(backend=Backend("a"))
    other = Backend("b")
    assert list(fact_embedding.pending_facts(other)) == [fact]
    assert Fact.objects.get().embedding is not None
    assert reembedding.progress().pending_facts == 1
    call_command("reembed", stdout=(told := io.StringIO()))
    assert Fact.objects.get().embedding_model == embedding.configured().name
    assert "0 conversations to look at" in told.getvalue()
    assert reembedding.progress().is_done
