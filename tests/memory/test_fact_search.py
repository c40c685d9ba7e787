"""Facts that answer a query: exactly those that an exact scan finds, within what the viewer may see."""

import numpy as np
import pytest
from asgiref.sync import async_to_sync
from django.db import connection

from accounts.models import User
from llm import embedding
from llm.embedding import EmbeddingError, Thresholds
from llm.embedding_local import LocalBackend
from llm.error_table import ErrorKind
from maxclaw import clock
from memory import fact_embedding, fact_search, searching, writing
from memory.fact_drafts import FactDraft
from memory.fact_search import DECISION_HEAD_START, FOUND_MAX, UNCOMPARED_PLACES
from memory.models import Fact, FactEvidence, MessageChunk
from memory.query_vectors import Compared, QueryVectors, compared
from tests.memory.facts import stated
from tests.memory.remembered import remember
from tests.threads.records import exchange, say, thread_of
from threads.copying import rewind
from threads.history import SEARCH_RESULT_MAX_CHARS
from threads.models import Message, Thread
from threads.visibility import Viewer

pytestmark = pytest.mark.django_db
by_several_threads = pytest.mark.django_db(transaction=True)

search = async_to_sync(searching.search)
OWNERS, FACTS_EACH = 50, 2_000
DIMENSIONS = 512


def find(viewer, query):
    """As `fact_search.find`, in the test's own transaction."""
    models = fact_search.models_of(viewer.owner_id)
    by_model = {model: one for model in models if model and (one := compared([query], model, viewer.level.category))}
    return fact_search.found(viewer, query, by_model, everything=by_model.keys() == set(models))


def ids(found):
    return [hit.fact_id for hit in found.hits]


def fill(model, smallest):
    """50 owners with 2,000 facts each, those of every owner among those of the others, who have one more than the
    smallest. Every owner has every vector, so that each is as near to a query as 50 facts are."""
    owners = User.objects.bulk_create(User(username=f"owner-{number}") for number in range(OWNERS))
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.25)")
        cursor.execute(
            """
            CREATE TEMPORARY TABLE made_vector ON COMMIT DROP AS
            SELECT place, array_agg(random() - 0.5)::vector AS vector
            FROM generate_series(0, %s) AS place CROSS JOIN generate_series(1, %s) AS number GROUP BY place
            """,
            [FACTS_EACH, DIMENSIONS],
        )
        cursor.execute(
            """
            INSERT INTO memory_fact (owner_id, text, kind, aspect, applies_to, tone, project, scope, category, status,
                                     writer, legacy, graduated_rule, graduated_commit, why, fingerprint, embedding,
                                     embedding_model, created, changed)
            SELECT owner.id, 'fact ' || turn, 'about-user', 'fact', '',
                   CASE WHEN random() < 0.3 THEN 'decision' ELSE 'remark' END, '', 'open',
                   CASE WHEN random() < 0.1 THEN 'work' ELSE '' END,
                   CASE WHEN random() < 0.1 THEN 'retired' ELSE 'active' END,
                   'import', true, '', '', '', 'f', made_vector.vector, %(model)s, now(), now()
            FROM generate_series(0, %(most)s) AS turn
            CROSS JOIN unnest(%(owners)s::bigint[]) WITH ORDINALITY AS owner(id, number)
            JOIN made_vector ON made_vector.place = (turn + 37 * owner.number) %% (%(most)s + 1)
            WHERE NOT (owner.id = %(smallest)s AND turn = 0)
            """,
            {
                "model": model,
                "most": FACTS_EACH,
                "owners": [owner.pk for owner in owners],
                "smallest": owners[smallest].pk,
            },
        )
        cursor.execute("ANALYZE memory_fact")
    return owners[smallest]


def test_search_finds_exactly_what_an_exact_scan_finds_for_the_smallest_of_50_owners():
    smallest = fill("made", 17)
    viewer = Viewer.of_thread(thread_of(smallest))
    assert Fact.objects.filter(owner=smallest).count() == FACTS_EACH
    facts = list(Fact.objects.filter(owner=smallest, status="active", category=""))
    assert len(facts) > 1_400
    matrix = np.stack([np.asarray(fact.embedding, dtype=np.float64) for fact in facts])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    assert matrix.shape[1] == DIMENSIONS == embedding.configured().dimensions
    # Vectors of so many dimensions are all about as far from each other: a query is one of theirs, moved a little.
    for seed, least, is_few in ((1, 0.05, False), (2, 0.5, True), (3, -0.9, False)):
        near = matrix[seed * 400] + np.random.default_rng(seed).normal(size=DIMENSIONS) * 0.02
        vector = near / np.linalg.norm(near)
        cosines = matrix @ vector
        above = [
            (-(cosine - least) / (1 - least) - DECISION_HEAD_START * (fact.tone == "decision"), -fact.pk)
            for fact, cosine in zip(facts, cosines, strict=True)
            if cosine >= least
        ]
        asked = Compared(vector[np.newaxis].astype(np.float32), Thresholds(least, 0.0))
        found = fact_search.found(viewer, "nothing", {"made": asked}, everything=True)
        assert ids(found) == [-number for _standing, number in sorted(above)[:FOUND_MAX]]
        assert len(found.hits) == min(len(above), FOUND_MAX)
        assert (len(above) < FOUND_MAX) == is_few


def test_what_the_viewer_may_not_see_is_not_found(alice, bob):
    main, work = thread_of(alice), thread_of(alice, category="confidential")
    island, other = thread_of(alice, scope="isolated"), thread_of(alice, scope="isolated")
    text = "Alice keeps bees on the roof."
    open_fact = remember(alice, text)
    at_work = remember(alice, text, category="confidential")
    apart = remember(alice, text, scope="isolated", island=island)
    remember(bob, text)
    remember(alice, text, status="retired")
    remember(alice, text, status="superseded")
    seen = {
        "main": {open_fact.pk},
        "work": {open_fact.pk, at_work.pk},
        "island": {open_fact.pk, apart.pk},
        "other": {open_fact.pk},
    }
    threads = {"main": main, "work": work, "island": island, "other": other}
    for name, thread in threads.items():
        assert set(ids(find(Viewer.of_thread(thread), "Does Alice keep bees?"))) == seen[name], name
    assert find(Viewer.of_thread(thread_of(User.objects.create_user("dave"))), "bees").nothing_stored


def test_of_a_corrected_or_superseded_fact_only_the_new_one_is_found(alice):
    """At once by its words, and by its vector when it has one."""
    thread = thread_of(alice)
    said = say(thread, Message.Role.USER, "I keep bees on the roof.")
    about = {"kind": "about-user", "aspect": "fact"}
    written = {"writer": "steward", "thread": thread}
    old = writing.write_fact(alice.pk, FactDraft("Alice keeps bees on the roof.", **about), [stated(said)], **written)
    fact_embedding.embed_facts()
    mended = FactDraft("Alice keeps bees in the garden.", **about)
    new = writing.correct(old.fact, mended, reason="", writer="person", actor=alice)
    viewer, asked = Viewer.of_thread(thread), "Does Alice keep bees?"
    assert ids(find(viewer, "bees")) == [new.pk], "by its words"
    fact_embedding.embed_facts()
    assert ids(find(viewer, asked)) == [new.pk]
    later = say(thread, Message.Role.USER, "They are in the cellar now.")
    moved = FactDraft("Alice keeps bees in the cellar.", **about)
    newest = writing.write_fact(alice.pk, moved, [stated(later)], replaces=new.pk, **written)
    fact_embedding.embed_facts()
    assert ids(find(viewer, asked)) == [newest.fact.pk]


def test_what_only_deleted_conversations_prove_is_found_again_when_one_comes_back(alice):
    words = "Alice keeps bees on the roof."
    told = [say(thread_of(alice), Message.Role.USER, words) for _number in range(2)]
    fact = remember(alice, words)
    for row in told:
        FactEvidence.objects.create(fact=fact, owner=alice, kind="max-stated", message=row)
    viewer = Viewer.of_thread(thread_of(alice))
    gone = Thread.objects.filter(pk__in=[row.thread_id for row in told])
    gone.filter(pk=told[0].thread_id).update(deleted=clock.now())
    assert ids(find(viewer, "Does Alice keep bees?")) == [fact.pk], "another one says so"
    gone.update(deleted=clock.now())
    assert find(viewer, "Does Alice keep bees?").nothing_stored
    gone.filter(pk=told[1].thread_id).update(deleted=None)
    assert ids(find(viewer, "Does Alice keep bees?")) == [fact.pk]


def test_a_decision_outranks_a_remark_that_is_about_as_near_and_no_other(alice):
    decided = remember(alice, "Alice takes the train to work.", tone="decision", aspect="decision")
    remark = remember(alice, "Alice takes a train to her work.")
    viewer = Viewer.of_thread(thread_of(alice))
    assert ids(find(viewer, "Alice takes a train to her work."))[:1] == [decided.pk]
    far = remember(alice, "Alice travels by rail in the mornings.", tone="decision", aspect="decision")
    assert ids(find(viewer, "Alice takes a train to her work.")) == [decided.pk, remark.pk, far.pk]


def test_only_near_facts_are_found_and_others_that_have_every_word(alice):
    remember(alice, "Alice plays the cello in an orchestra.")
    named = remember(alice, "The zlorpification happened while the whole house was asleep.")
    viewer = Viewer.of_thread(thread_of(alice))
    assert ids(find(viewer, "zlorpification")) == [named.pk]
    far = find(viewer, "quarterly tax declaration")
    assert (far.hits, far.nothing_stored) == ([], False)


def test_a_fact_without_a_vector_is_found_by_words_and_never_crowded_out(alice):
    for number in range(FOUND_MAX + 2):
        remember(alice, f"Alice lives in Lisbon, in flat {number}.")
    corrected = remember(alice, "Alice lives in Porto now.", embedded=False)
    viewer = Viewer.of_thread(thread_of(alice))
    found = find(viewer, "Where does Alice live?")
    assert len(found.hits) == FOUND_MAX
    assert corrected.pk in ids(found)
    for number in range(4):
        remember(alice, f"Alice lives with a parrot, number {number}.", embedded=False)
    hits = find(viewer, "Where does Alice live?").hits
    assert sum(hit.standing is None for hit in hits) == UNCOMPARED_PLACES


def test_vectors_of_two_models_answer_side_by_side_each_at_its_own_threshold(alice, monkeypatch):
    class Other(LocalBackend):
        name = "other"
        thresholds = Thresholds(recall=0.99, briefing=0.98)

        def embed(self, texts):
            return super().embed(texts)[:, :100]

    other, local = Other(), embedding.configured()
    monkeypatch.setattr(embedding, "able_to_embed", lambda name: {"other": other, local.name: local}.get(name))
    old = remember(alice, "Alice keeps bees.", embedding=other.embed(["Alice keeps bees."])[0], embedding_model="other")
    remember(alice, "Bees are kept by Alice.", embedding=other.embed(["A roof."])[0], embedding_model="other")
    new = remember(alice, "Alice keeps bees on her roof.")
    lost = remember(alice, "Alice sold her bees.", embedding=[1.0, 2.0], embedding_model="gone")
    found = find(Viewer.of_thread(thread_of(alice)), "Alice keeps bees.")
    assert [(hit.fact_id, hit.standing is None) for hit in found.hits] == [
        (old.pk, False),
        (new.pk, False),
        (lost.pk, True),
    ]


@by_several_threads
def test_a_backend_that_fails_leaves_words(alice, monkeypatch):
    fact = remember(alice, "Alice keeps bees.")

    def fail(_self, _texts):
        raise EmbeddingError(ErrorKind.TRANSIENT, "no answer")

    monkeypatch.setattr(LocalBackend, "embed", fail)
    found = async_to_sync(fact_search.find)(Viewer.of_thread(thread_of(alice)), QueryVectors("bees", ""))
    assert ids(found) == [fact.pk]


@by_several_threads
def test_a_result_shows_facts_with_what_they_apply_to_and_their_tone_and_marks_the_stale(alice):
    thread = thread_of(alice)
    _hello, before = exchange(thread, "Hello.", "Hello!")
    said, _answer = exchange(thread, "I want short reports at work.", "I will keep them short.")
    fact = Fact.objects.create(
        owner=alice,
        text="Alice wants short reports.",
        kind="about-user",
        aspect="preference",
        tone="decision",
        applies_to="reports at work",
        writer="steward",
        legacy=True,
        fingerprint="short",
    )
    FactEvidence.objects.create(fact=fact, owner=alice, kind="max-stated", message=said)
    for channel in (None, thread.channel):
        text = search(Viewer.of_thread(thread), "short reports", channel).text
        assert f"f:{fact.pk} [{said.created:%Y-%m-%d}; decision; preference; applies to: reports at work] Alice" in text
        assert text.index("Alice wants") < text.index(searching.SAID_HEADING)
        assert "rewritten or taken back" not in text
    rewind(thread, before, acting_user=alice)
    assert "rewritten or taken back" in search(Viewer.of_thread(thread), "short reports").text
    assert searching.NO_FACTS in search(Viewer.of_thread(thread_of(User.objects.create_user("dave"))), "reports").text


@by_several_threads
def test_the_longest_facts_leave_the_result_within_its_bound_and_the_literal_part_whole(alice):
    thread = thread_of(alice)
    for number in range(FOUND_MAX + 3):
        remember(alice, f"bicycle {number} 👩‍👩‍👧 " * 400, applies_to="bicycle " * 300, embedded=number % 2)
        say(thread, Message.Role.USER, f"bicycle {number} " * 400)
    for channel in (None, thread.channel):
        text = search(Viewer.of_thread(thread), "bicycle", channel).text
        assert len(text) <= SEARCH_RESULT_MAX_CHARS
        assert "more facts were cut" in text
        assert searching.SAID_HEADING in text
    assert not MessageChunk.objects.exists()


def test_what_is_asked_reaches_no_model_with_a_secret_in_it(monkeypatch):
    asked = []
    monkeypatch.setattr(LocalBackend, "embed", lambda _self, texts: asked.extend(texts) or np.zeros((len(texts), 512)))
    key = "sk-ant-api03-abcdefghijklmnop1234567890"
    compared([f"Who gave me {key}?", f"{'x' * 980} {key} and more"], LocalBackend.name, "")
    assert len(asked) == 2
    assert not any("sk-ant" in text for text in asked)
