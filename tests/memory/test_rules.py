"""Each rule of facts, refused by the database to plain SQL."""

import threading
from pathlib import Path

import pytest
from django.db import connection, transaction

from memory.models import Digest, EmbeddedThread, Episode, Fact, FactEvidence, FactUse, MessageChunk
from memory.rules import RULES
from tests.memory.facts import fact_row
from tests.raw_sql import change, copy_of, refused, run
from tests.threads.records import exchange, live, say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads import lifecycle
from threads.models import Message, Thread
from threads.rules import refine

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(alice):
    return say(thread_of(alice), Message.Role.USER, "I like tea.")


@pytest.fixture
def foreign(bob):
    return say(thread_of(bob), Message.Role.USER, "I like coffee.")


def test_a_fact_has_words_an_aspect_if_about_the_person_and_an_island_if_isolated(alice, bob, said, foreign):
    fact = fact_row(alice, said)
    change("fact_has_text", fact, "text", "")
    change("fact_about_user_has_aspect", fact, "aspect", "")
    change("fact_about_user_has_aspect", fact, "kind", "event")
    change("fact_isolated_has_island", fact, "scope", "isolated")
    change("fact_isolated_has_island", fact, "island_id", said.thread_id)
    run("UPDATE memory_fact SET scope = 'isolated', island_id = %s WHERE id = %s", said.thread_id, fact.pk)
    change("fact_island_of_same_owner", fact, "island_id", foreign.thread_id)
    change("fact_embedding_names_its_model", fact, "embedding_model", "some model")


def test_a_fact_has_evidence_when_its_transaction_commits_unless_it_is_legacy(alice, said):
    fact = fact_row(alice, said)
    copy_of("fact_has_evidence", fact)
    legacy = fact_row(alice, legacy=True)
    connection.check_constraints()
    change("fact_has_evidence", legacy, "legacy", False)


def test_a_fact_goes_with_its_last_evidence(alice, said):
    fact = fact_row(alice, said)
    refused("fact_keeps_evidence", "DELETE FROM memory_factevidence WHERE fact_id = %s", fact.pk)
    refused("fact_keeps_evidence", "DELETE FROM threads_message WHERE id = %s", said.pk)
    other = fact_row(alice, said)
    change("fact_keeps_evidence", fact.evidence.get(), "fact_id", fact_row(alice, legacy=True).pk)
    with transaction.atomic():
        run("DELETE FROM memory_factevidence WHERE fact_id = %s", fact.pk)
        run("DELETE FROM memory_factuse WHERE fact_id = %s", fact.pk)
        run("DELETE FROM memory_fact WHERE id = %s", fact.pk)
        connection.check_constraints()
    assert Fact.objects.filter(pk=other.pk).exists()


def test_what_supersedes_is_newer_and_of_the_same_owner(alice, bob, said, foreign):
    old, new = fact_row(alice, said), fact_row(alice, said)
    theirs = fact_row(bob, foreign)
    refused(
        "fact_superseded_by_newer",
        "UPDATE memory_fact SET status = 'superseded', superseded_by_id = %s WHERE id = %s",
        old.pk,
        new.pk,
    )
    refused(
        "fact_superseded_by_newer",
        "UPDATE memory_fact SET status = 'superseded', superseded_by_id = id WHERE id = %s",
        new.pk,
    )
    refused(
        "fact_superseded_by_same_owner",
        "UPDATE memory_fact SET status = 'superseded', superseded_by_id = %s WHERE id = %s",
        theirs.pk,
        old.pk,
    )
    change("fact_superseded_says_so", old, "superseded_by_id", new.pk)
    for column, unknown in (("aspect", "rumour"), ("tone", "shout"), ("status", "lost")):
        change("fact_of_known_kind", old, column, unknown)


@pytest.mark.parametrize("status", ["superseded", "retired"])
def test_what_was_closed_is_never_active_again(alice, said, status):
    fact = fact_row(alice, said)
    run("UPDATE memory_fact SET status = %s WHERE id = %s", status, fact.pk)
    change("fact_never_active_again", fact, "status", "active")


def test_evidence_is_one_row_of_the_owners_once(alice, bob, said, foreign):
    fact = fact_row(alice, said)
    row = fact.evidence.get()
    change("factevidence_of_known_kind", row, "kind", "rumour")
    copy_of("factevidence_one_source", row, generation_id=said.generation_id)
    copy_of("factevidence_one_source", row, message_id=None)
    copy_of("factevidence_once", row)
    copy_of("factevidence_accepted_says_where", row, accepted_by_id=said.pk)
    copy_of("factevidence_accepted_says_where", row, kind="max-accepted")
    change("factevidence_message_of_same_owner", row, "message_id", foreign.pk)
    accepted = {"kind": "max-accepted", "accepted_by_id": foreign.pk}
    copy_of("factevidence_accepted_by_of_same_owner", row, **accepted)
    outcome = {"kind": "observed-outcome", "message_id": None, "generation_id": foreign.generation_id}
    copy_of("factevidence_generation_of_same_owner", row, **outcome)
    refused(
        "factevidence_owner_is_the_facts",
        "UPDATE memory_factevidence SET owner_id = %s, message_id = %s WHERE id = %s",
        bob.pk,
        foreign.pk,
        row.pk,
    )


def test_uses_are_one_row_of_the_owners_once(alice, bob, said, foreign):
    fact = fact_row(alice, said)
    use = FactUse.objects.create(fact=fact, owner=alice, how="found", message=said)
    copy_of("factuse_one_source", use, generation_id=said.generation_id)
    copy_of("factuse_once", use)
    change("factuse_message_of_same_owner", use, "message_id", foreign.pk)
    copy_of("factuse_generation_of_same_owner", use, message_id=None, generation_id=foreign.generation_id)
    refused(
        "factuse_owner_is_the_facts",
        "UPDATE memory_factuse SET owner_id = %s, message_id = %s WHERE id = %s",
        bob.pk,
        foreign.pk,
        use.pk,
    )


def test_what_was_read_is_of_one_owner_and_conversation_and_read_once(alice, bob, said, foreign):
    episode = Episode.objects.create(
        owner=alice, thread=said.thread, generation=said.generation, through_seq=said.pk, call=1
    )
    theirs = Episode.objects.create(
        owner=bob, thread=foreign.thread, generation=foreign.generation, through_seq=foreign.pk
    )
    change("episode_owner_is_the_threads", episode, "owner_id", bob.pk)
    change("episode_generation_of_its_thread", episode, "generation_id", live(thread_of(alice)).pk)
    digest = Digest.objects.create(message=said, owner=alice, episode=episode)
    copy_of("memory_digest_message_id_key", digest)
    change("digest_message_of_same_owner", digest, "message_id", foreign.pk)
    change("digest_episode_of_same_owner", digest, "episode_id", theirs.pk)


def test_a_fact_proved_on_an_island_stays_on_it_whichever_row_is_written_last(alice):
    open_words = say(thread_of(alice), Message.Role.USER, "I like tea.")
    isolated = say(thread_of(alice, scope="isolated"), Message.Role.USER, "I am ill.")
    elsewhere = thread_of(alice, scope="isolated")
    island = isolated.thread_id
    fact = fact_row(alice, isolated, scope="isolated", island_id=island)
    connection.check_constraints()
    refused(
        "fact_stays_on_its_island",
        "UPDATE memory_fact SET scope = 'open', island_id = NULL WHERE id = %s",
        fact.pk,
    )
    change("fact_stays_on_its_island", fact, "island_id", elsewhere.pk)
    known = fact_row(alice, open_words)
    copy_of("factevidence_stays_on_its_island", known.evidence.get(), message_id=isolated.pk)
    accepted = {"kind": "max-accepted", "accepted_by_id": isolated.pk}
    copy_of("factevidence_stays_on_its_island", known.evidence.get(), **accepted)
    outcome = {"kind": "observed-outcome", "message_id": None, "generation_id": isolated.generation_id}
    copy_of("factevidence_stays_on_its_island", known.evidence.get(), **outcome)
    refused(
        "thread_takes_its_facts_along",
        "UPDATE threads_thread SET scope = 'isolated', island_id = id WHERE id = %s",
        open_words.thread_id,
    )


def test_what_is_kept_beside_messages_is_of_their_owner(alice, bob, said):
    chunk = MessageChunk.objects.create(
        message=said, thread=said.thread, owner=alice, offset=0, length=3, model="m", embedding=[1.0, 0.0]
    )
    change("messagechunk_owner_is_the_threads", chunk, "owner_id", bob.pk)
    change("messagechunk_has_text", chunk, "length", 0)
    copy_of("messagechunk_once_per_model", chunk)
    done = EmbeddedThread.objects.create(thread=said.thread, owner=alice, model="m")
    change("embeddedthread_owner_is_the_threads", done, "owner_id", bob.pk)
    copy_of("embeddedthread_once_per_model", done)
    change("embeddedthread_claim_ends", done, "claim", "12345678-1234-5678-1234-567812345678")


def test_a_conversation_is_read_by_one_reader_at_a_time(alice, said):
    values = {"owner": alice, "thread": said.thread, "generation": said.generation, "through_seq": said.pk}
    Episode.objects.create(outcome="failed", **values)
    reading = Episode.objects.create(outcome="running", **values)
    copy_of("episode_one_running_per_thread", reading)


def test_every_rule_is_driven_by_a_test():
    source = Path(__file__).read_text()
    assert [name for name in RULES if f'"{name}"' not in source] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("length", [2, 3])
def test_of_connections_that_close_a_circle_at_the_same_time_one_is_refused(alice, length):
    """No matter which: none has committed when the last one writes, so none of them sees what the others did."""
    said, _answer = exchange(thread_of(alice), "I like tea.")
    with transaction.atomic():
        facts = [fact_row(alice, said) for _number in range(length)]
    ready = threading.Barrier(length, timeout=20)

    def supersede(old, new):
        run("SET LOCAL lock_timeout = '15s'")
        assert Fact.objects.filter(status="active").count() == length
        ready.wait()
        run("UPDATE memory_fact SET status = 'superseded', superseded_by_id = %s WHERE id = %s", new.pk, old.pk)

    pairs = zip(facts, [*facts[1:], facts[0]], strict=True)
    each = [Elsewhere(lambda pair=pair: supersede(*pair)) for pair in pairs]
    for one in each:
        assert one.began.wait(20)
    # Every statement is done, and nobody else sees one: all the transactions are open, or refused.
    assert not Fact.objects.exclude(status="active").exists()
    for one in each:
        one.finish()
    *forth, back = each
    assert [one.error for one in forth] == [None] * (length - 1)
    assert refine(back.error, RULES).name == "fact_superseded_by_newer"
    assert [fact.superseded_by for fact in Fact.objects.order_by("pk")] == [*facts[1:], None]


@pytest.mark.django_db(transaction=True)
def test_of_two_that_take_the_last_two_pieces_of_evidence_one_is_refused(alice):
    said, _answer = exchange(thread_of(alice), "I like tea.")
    again, _answer = exchange(thread_of(alice), "Tea, please.")
    with transaction.atomic():
        fact = fact_row(alice, said)
        FactEvidence.objects.create(fact=fact, owner=alice, kind="max-stated", message=again)
    both = [
        Elsewhere(lambda pk=pk: run("DELETE FROM memory_factevidence WHERE message_id = %s", pk))
        for pk in (said.pk, again.pk)
    ]
    for one in both:
        one.began.wait(20)
    for one in both:
        one.may_commit.set()
    for one in both:
        one.finish()
    assert sorted(refine(one.error, RULES).name if one.error else "" for one in both) == ["", "fact_keeps_evidence"]


@pytest.mark.django_db(transaction=True)
def test_isolating_a_conversation_waits_for_evidence_that_is_being_written(alice):
    said, _answer = exchange(thread_of(alice), "I like tea.")
    with transaction.atomic():
        fact = fact_row(alice, say(thread_of(alice), Message.Role.USER, "Tea!"))

    def add():
        FactEvidence.objects.create(fact=fact, owner=alice, kind="max-stated", message=said)
        connection.check_constraints()

    adding = Elsewhere(add)
    adding.began.wait(20)
    isolating = Elsewhere(
        lambda: run("UPDATE threads_thread SET scope = 'isolated', island_id = id WHERE id = %s", said.thread_id)
    )
    wait_until_blocked()
    adding.finish()
    isolating.began.wait(20)
    isolating.finish()
    assert refine(isolating.error, RULES).name == "thread_takes_its_facts_along"
    lifecycle.narrow(said.thread, acting_user=alice, scope="isolated")
    assert Thread.objects.get(pk=said.thread_id).scope == "isolated"
    assert list(fact.evidence.exclude(message=said)) == list(fact.evidence.all())
