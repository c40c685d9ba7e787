"""Forgetting one fact, deleting a conversation, making one stricter, leaving for good: what goes and what stays."""

import contextlib
import json
import threading

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from accounts import erasing
from agent import ending, renewal, taking
from agent.models import TaskFrame
from llm import embedding
from llm.emulator.client import text
from maxclaw import clock
from maxclaw.database_threads import in_database
from memory import erasure, evidence, fact_embedding, fact_rows, forgetting, told, writing
from memory.claims import parse
from memory.fact_drafts import FactDraft
from memory.forgetting import forget
from memory.models import Digest, Episode, Fact, FactLog, FactUse
from memory.refusals import FactRefused
from memory.using import use_facts
from tests.accounts.test_erasing import places_with
from tests.agent.world import running_world
from tests.memory.facts import about_user, many_facts, remember, tool_result
from tests.threads.records import exchange, live, say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads import lifecycle
from threads.copying import fork
from threads.models import Generation, Message, Thread
from threads.transcript import lock_thread
from threads.visibility import Viewer

pytestmark = pytest.mark.django_db
CANARY = "canary-77aa"


@pytest.fixture
def thread(alice):
    return thread_of(alice)


def standing():
    connection.check_constraints()
    return set(Fact.objects.values_list("pk", flat=True))


def tell(fact, generation):
    """As a briefing does."""
    with transaction.atomic():
        return use_facts(fact.owner_id, [fact.pk], FactUse.How.BRIEFED, generation=generation)


def test_a_forgotten_fact_is_in_no_table_of_memory_and_the_report_says_where_its_words_stay(alice, thread):
    said, answer = exchange(thread, "My dog is called Rex.", f"So your dog is called {CANARY}.")
    yes = say(thread, Message.Role.USER, "Yes.")
    old = remember(said, f"The dog of before was {CANARY}.", aspect="fact").fact
    fact = remember(said, f"The dog is called {CANARY}.", aspect="fact", replaces=old.pk).fact
    writing.retire(fact, reason=f"{CANARY} died", writer="person", actor=alice)
    fact = writing.restore(fact, reason=f"{CANARY} lives", writer="person", actor=alice)
    other = remember(yes, "Says yes.", aspect="fact").fact
    fact_embedding.embed_facts()
    quoting = say(thread, Message.Role.ASSISTANT, f"I know: the dog is called {CANARY}.", model="emulator-main")
    found = tool_result(thread, tool="search_memory", text="nothing")
    use_facts(alice.pk, [fact.pk], FactUse.How.FOUND, message=found)
    tell(fact, live(thread))
    report = forget(fact, writer="person", actor=alice)
    assert standing() == {other.pk}
    assert len(report.facts) == 3
    assert report.messages == [said.pk, quoting.pk, found.pk]
    assert report.generations == report.ending == [live(thread).pk]
    assert {place.split(".")[0] for place in places_with(CANARY)} == {"threads_message"}
    assert answer.pk not in report.messages, "it says the name, not the fact"
    entry = FactLog.objects.latest("pk")
    assert (entry.action, entry.before, entry.reason) == ("forget", report.facts, "")
    with pytest.raises(FactRefused, match="no fact"):
        forget(fact, writer="person")


def test_a_report_that_is_too_long_lists_the_newest_and_counts_the_others(alice, thread, monkeypatch):
    monkeypatch.setattr(forgetting, "LISTED_MAX", 2)
    words = f"The dog is called {CANARY}."
    said = say(thread, Message.Role.USER, "That is my dog.")
    repeated = [say(thread, Message.Role.USER, f"{words} {number}") for number in range(5)]
    gone = say(thread_of(alice), Message.Role.USER, words)
    Thread.objects.filter(pk=gone.thread_id).update(deleted=clock.now())
    fact = remember(said, words, aspect="fact").fact
    told = []
    for place in (thread, *(thread_of(alice) for _number in range(3))):
        Generation.objects.filter(thread=place).update(summary=words)
        told.append(live(place).pk)
    for report in (forgetting.foresee(fact), forget(fact, writer="person", actor=alice)):
        assert set(report.messages) >= {said.pk, repeated[3].pk, repeated[4].pk}, "its proofs, and the newest"
        assert report.generations == told[-2:]
        assert report.ending == told, "each of them ends, listed or not"
        assert report.more == 3 + 2, "those of a deleted conversation go with it"


def test_only_a_fact_that_the_viewer_may_see_is_forgotten(alice, bob):
    hidden = remember(say(thread_of(alice, scope="isolated"), Message.Role.USER, "I am ill."), "Is ill.").fact
    for viewer in (Viewer.of_thread(thread_of(alice)), Viewer.of_thread(thread_of(bob))):
        with pytest.raises(FactRefused):
            forget(hidden, writer="person", viewer=viewer)
    assert standing() == {hidden.pk}


def test_a_fact_forgotten_while_it_is_embedded_stays_forgotten(alice, thread):
    fact = remember(say(thread, Message.Role.USER, "Tea!")).fact

    class Forgetting:
        name, max_chars, categories = "test", 1_000, embedding.configured().categories

        def embed(self, texts):
            forget(Fact.objects.get(pk=fact.pk), writer="person")
            return [[1.0, 0.0] for _text in texts]

    assert fact_embedding.embed_facts(backend=Forgetting()) == 0
    assert standing() == set()


def test_what_taught_a_forgotten_fact_proves_nothing_more_in_whatever_words(alice, bob, thread):
    said, conclusion = exchange(thread, "I live in Lisbon, near the river.", "You live by the Tagus.")
    yes = say(thread, Message.Role.USER, "Yes.")
    repeated = say(thread, Message.Role.USER, "Note this: Alice lives in Lisbon.")
    branch = fork(alice, thread, yes, acting_user=alice)
    other = say(thread_of(alice), Message.Role.USER, "I prefer tea.")
    theirs = say(thread_of(bob), Message.Role.USER, "I live in Lisbon.")
    fact = remember(said, "Alice lives in Lisbon.", aspect="fact").fact
    claim = {"kind": "max-accepted", "message_id": conclusion.pk, "accepted_by": yes.pk}
    accepted = about_user("Alice lives by the river.", aspect="fact")
    old = writing.write_fact(alice.pk, accepted, [parse(claim)], writer="steward", thread=thread).fact
    writing.correct(old, about_user("Alice lives far away.", aspect="fact"), reason="", writer="person")
    for known in (fact, Fact.objects.get(text="Alice lives far away.")):
        forget(known, writer="person", actor=alice)
    copies = Message.objects.filter(thread=branch, copied_from__in=[said, conclusion, yes]).order_by("pk")
    its, conclusions, yeses = copies
    for message in (said, repeated, its):
        with pytest.raises(FactRefused, match="forgotten"):
            remember(message, "Her home is Lisbon.", aspect="fact")
    for pair in ((conclusion, yes), (conclusions, yeses)):
        claim = {"kind": "max-accepted", "message_id": pair[0].pk, "accepted_by": pair[1].pk}
        with pytest.raises(FactRefused, match="forgotten"):
            evidence.check(alice, [parse(claim)], kind="about-user", aspect="fact")
    whole = {"kind": "observed-outcome", "generation_id": said.generation_id}
    Generation.objects.filter(pk=said.generation_id).update(ended=clock.now(), end_reason="idle")
    with pytest.raises(FactRefused, match="forgotten"):
        evidence.check(alice, [parse(whole)], kind="event")
    assert not Fact.objects.exists()
    again = say(thread_of(alice), Message.Role.USER, "I do live in Lisbon.")
    assert [remember(message, "Her home is Lisbon.").outcome for message in (again, theirs)] == ["new", "new"]
    assert remember(other).outcome == "new"


def test_copies_teach_a_forgotten_fact_no_more_when_their_original_is_erased(alice, thread):
    said, answer = exchange(thread, "I live in Lisbon, near the river.", "Noted.")
    branch = fork(alice, thread, answer, acting_user=alice)
    again = fork(alice, branch, Message.objects.get(thread=branch, copied_from=answer), acting_user=alice)
    forget(remember(said, "Alice has her home by the Tagus.", aspect="fact").fact, writer="person")
    later = fork(alice, thread, answer, acting_user=alice)
    erasing.erase_thread(thread)
    for place in (branch, again, later):
        copy = Message.objects.get(thread=place, role="user")
        with pytest.raises(FactRefused, match="forgotten"):
            remember(copy, "Her home is Lisbon.", aspect="fact")


def test_a_generation_that_proved_a_forgotten_fact_proves_none_again(alice, thread):
    said, _answer = exchange(thread, "Try it.", "It works.")
    Generation.objects.filter(pk=said.generation_id).update(ended=clock.now(), end_reason="idle")
    claims = [parse({"kind": "observed-outcome", "generation_id": said.generation_id})]
    event = FactDraft(text="The plan worked.", kind="event")
    fact = writing.write_fact(alice.pk, event, claims, writer="steward", thread=thread).fact
    forget(fact, writer="person")
    with pytest.raises(FactRefused, match="forgotten"):
        writing.write_fact(alice.pk, event, claims, writer="steward", thread=thread)


def test_short_words_of_a_forgotten_fact_are_taken_for_nobodys(alice, thread):
    """Else the words "so" would keep half of what was said out of memory."""
    fact = remember(say(thread, Message.Role.USER, "It is so."), "So.", aspect="fact").fact
    other = say(thread, Message.Role.USER, "I moved, and so I live in Porto.")
    forget(fact, writer="person")
    assert remember(other, "Lives in Porto.").outcome == "new"


@pytest.mark.django_db(transaction=True)
def test_forgetting_waits_for_a_generation_that_is_just_being_told(alice):
    said, _answer = exchange(thread_of(alice), "Tea!")
    fact = remember(said).fact
    telling = Elsewhere(lambda: tell(fact, said.generation))
    telling.began.wait(20)
    forgetting = Elsewhere(lambda: forget(fact, writer="person"))
    wait_until_blocked()
    telling.finish()
    forgetting.began.wait(20)
    report = forgetting.finish()
    assert (telling.error, forgetting.error) == (None, None)
    assert report.ending == [said.generation_id]
    assert tell(fact, said.generation) == set()
    assert use_facts(alice.pk, [], FactUse.How.BRIEFED, generation=said.generation) == set()


@pytest.mark.django_db(transaction=True)
def test_a_live_generation_that_was_told_ends_at_the_turn_boundary_and_what_follows_does_not_know(emulator, alice):
    """Asked for while a turn runs; the summary is made without the opening."""
    emulator.answer(text("A long answer."), hold="turn", match={"contains": "Hello"})
    emulator.answer(text("No sections."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        opening = json.dumps([{"type": "text", "text": f"Known: {CANARY}."}])
        await in_database(lambda: Generation.objects.filter(thread=thread).update(opening=opening))
        fact = (await in_database(remember, await in_database(say, thread, "user", "Hm."), f"Is {CANARY}.")).fact
        await in_database(lambda: tell(fact, live(thread)))
        await world.say(thread, "Hello")
        running = await world.running_frame(thread)
        report = await in_database(lambda: forget(fact, writer="person"))
        assert (await in_database(live, thread)).pk == report.ending[0], "not within a turn"
        emulator.release("turn")
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)
        return thread, running

    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    thread, running = async_to_sync(run)()
    first, second = Generation.objects.filter(thread=thread).order_by("ordinal")
    assert first.end_reason == "forgotten"
    assert CANARY not in first.summary + second.opening
    asked = [json.dumps(body) for body in emulator.bodies()]
    assert [CANARY in body for body in asked if "ten numbered" not in body] == [True]
    assert {CANARY in body for body in asked if "ten numbered" in body} == {False}
    assert "Hm." in first.summary
    assert TaskFrame.objects.filter(thread=thread).exclude(state="done").count() == 0
    assert running.pk < TaskFrame.objects.latest("pk").pk


def test_a_renewal_that_forgets_is_taken_up_again_until_it_is_done(alice, thread):
    renewal.request_forgetting(live(thread))
    renewal.request_forgetting(live(thread))
    frame = TaskFrame.objects.get(thread=thread)
    for reason in (TaskFrame.EndReason.INTERRUPTED, TaskFrame.EndReason.STOPPED):
        assert taking.take(thread.pk, "a server").frame_id == frame.pk
        ending.interrupt_and_settle(lock_thread(thread.pk), reason)
        frame.refresh_from_db()
        assert frame.state == "suspended"
    taking.take(thread.pk, "a server")
    ending.interrupt_and_settle(lock_thread(thread.pk), TaskFrame.EndReason.ERROR)
    frame.refresh_from_db()
    assert frame.state == "failed", "else an error would repeat for ever"


def test_a_conversation_takes_along_its_evidence_and_what_it_alone_proves(alice, thread):
    here, conclusion = exchange(thread, "Tea!", "You like tea.")
    yes = say(thread, Message.Role.USER, "Yes.")
    elsewhere = say(thread_of(alice), Message.Role.USER, "Tea, please.")
    alone, both = remember(here, "Likes tea.").fact, remember(here, "Drinks tea.").fact
    remember(elsewhere, "Drinks tea.")
    claims = [{"kind": "max-accepted", "message_id": conclusion.pk, "accepted_by": yes.pk}]
    claims = [parse(claim) for claim in claims]
    accepted = writing.write_fact(alice.pk, about_user("Tea it is."), claims, writer="shadow", thread=thread).fact
    episode = Episode.objects.create(owner=alice, thread=thread, generation=live(thread), through_seq=here.pk)
    Digest.objects.create(owner=alice, message=here, episode=episode)
    writing.correct(alone, about_user(f"Likes {CANARY}."), reason=f"{CANARY}", writer="person", actor=alice)
    assert accepted.pk in standing()
    erasing.erase_thread(thread)
    assert standing() == {both.pk}
    assert list(both.evidence.values_list("message_id", flat=True)) == [elsewhere.pk]
    assert not Episode.objects.exists()
    assert not Digest.objects.exists()
    assert places_with(CANARY) == []
    assert CANARY not in json.dumps(list(erasing.export_user(alice)), default=str)


def test_a_live_generation_that_was_told_what_an_erased_conversation_alone_proved_ends_too(alice, thread):
    said, elsewhere = say(thread, Message.Role.USER, "Tea!"), say(thread_of(alice), Message.Role.USER, "Tea, please.")
    alone, both = remember(said, f"Likes {CANARY}.").fact, remember(said, "Drinks tea.").fact
    remember(elsewhere, "Drinks tea.")
    told, untouched = thread_of(alice), thread_of(alice)
    tell(alone, live(told))
    tell(both, live(untouched))
    tell(alone, live(thread))
    erasing.erase_thread(thread)
    connection.check_constraints()
    assert list(TaskFrame.objects.values_list("thread", "source")) == [(told.pk, "compaction/forgotten")]


def test_reasons_that_quote_a_conversation_go_with_it_though_the_facts_stay(alice, thread):
    """A model that read there took back, and replaced, what other conversations prove."""
    said = say(thread_of(alice), Message.Role.USER, "Tea!")
    retired, replaced, closed = (remember(said, text).fact for text in ("Likes tea.", "Drinks tea.", "Buys tea."))
    writing.retire(retired, reason=f"They said: {CANARY}.", writer="steward")
    claims = [parse({"kind": "max-stated", "message_id": said.pk})]
    draft = about_user("Drinks coffee.")
    written = {"writer": "steward", "thread": said.thread, "replaces": replaced.pk}
    writing.write_fact(alice.pk, draft, claims, reason=f"Now {CANARY}.", **written)
    writing.retire(closed, reason="My own reason.", writer="person", actor=alice)
    assert {place.split(".")[0] for place in places_with(CANARY)} == {"memory_fact", "memory_factlog"}
    erasing.erase_thread(thread)
    assert places_with(CANARY) == []
    assert Fact.objects.count() == 4
    assert Fact.objects.get(pk=closed.pk).why == FactLog.objects.get(writer="person").reason == "My own reason."


def test_an_island_hands_its_facts_over_or_takes_them_along(alice):
    root = thread_of(alice, scope="isolated")
    said, answer = exchange(root, "I am ill.", "Get well.")
    branch = thread_of(alice, copied_from=answer)
    opened = say(thread_of(alice), Message.Role.USER, "Tea!")
    gone = remember(said, "Is ill.").fact
    kept = remember(opened, "Likes tea.", thread=branch).fact
    erasing.erase_thread(root)
    kept.refresh_from_db()
    assert standing() == {kept.pk}
    assert gone.pk != kept.pk
    assert kept.island_id == branch.pk
    erasing.erase_thread(Thread.objects.get(pk=branch.pk))
    assert standing() == set(), "nobody could see it any more"


def test_a_person_takes_every_fact_along(alice, bob, thread):
    remember(say(thread, Message.Role.USER, "Tea!"), f"Is {CANARY}.")
    theirs = remember(say(thread_of(bob), Message.Role.USER, "Tea!")).fact
    writing.retire(theirs, reason="by alice, who is staff", writer="staff", actor=alice)
    erasing.erase_user(alice)
    assert standing() == {theirs.pk}
    assert places_with(CANARY) == []
    assert FactLog.objects.get().actor is None


def test_an_export_has_facts_with_their_evidence_and_no_secret(alice, bob, thread):
    said = say(thread, Message.Role.USER, "Tea!")
    fact = remember(said, applies_to="mornings").fact
    Fact.objects.filter(pk=fact.pk).update(text="Uses sk-ant-api03-abcdefghijklmnop1.")
    writing.retire(fact, reason="sk-ant-api03-abcdefghijklmnop1 is no fact", writer="staff", actor=bob)
    exported = list(erasing.export_user(alice))
    [record] = [record for record in exported if record["record"] == "fact"]
    assert (record["text"], record["applies_to"]) == ("Uses [redacted].", "mornings")
    assert record["evidence"] == [{"kind": "max-stated", "message": said.pk, "generation": None, "accepted_by": None}]
    [entry] = [record for record in exported if record["record"] == "memory_log"]
    assert (entry["by"], entry["reason"], entry["before"]) == ("bob", "[redacted] is no fact", [f"f:{fact.pk}"])
    assert "1 fact" in erasing.holdings(alice)


def test_narrowing_takes_facts_along_that_are_proved_only_there(alice, thread):
    here, answer = exchange(thread, "Tea!", "Noted.")
    branch = thread_of(alice, copied_from=answer)
    there = say(branch, Message.Role.USER, "Tea, as ever.")
    elsewhere = say(thread_of(alice), Message.Role.USER, "Tea, please.")
    alone, family, both = (remember(here, words).fact for words in ("Likes tea.", "Loves tea.", "Drinks tea."))
    remember(there, "Loves tea.")
    remember(elsewhere, "Drinks tea.")
    on_island = remember(here, "Is ill.", thread=thread_of(alice, scope="isolated")).fact
    lifecycle.narrow(thread, acting_user=alice, scope="isolated")
    assert standing() == {alone.pk, family.pk, both.pk}, "what nobody may see any more is gone"
    for fact in (alone, family, both):
        fact.refresh_from_db()
    assert (alone.scope, alone.island_id, family.island_id) == ("isolated", thread.pk, thread.pk)
    assert family.evidence.count() == 2
    assert both.scope == "open"
    assert list(both.evidence.values_list("message_id", flat=True)) == [elsewhere.pk]
    assert on_island.pk not in standing()


def test_narrowing_into_a_category_keeps_what_was_stricter_already(alice, thread):
    here = say(thread, Message.Role.USER, "Tea!")
    island = thread_of(alice, scope="isolated")
    fact, isolated = remember(here, "Likes tea.").fact, remember(here, "Likes tea.", thread=island).fact
    labelled = remember(here, "Likes tea.", thread=thread_of(alice, category="personal")).fact
    other = remember(here, "Likes tea.", thread=thread_of(alice, category="work")).fact
    lifecycle.narrow(thread, acting_user=alice, category="personal")
    assert standing() == {fact.pk, isolated.pk, labelled.pk}
    assert other.pk not in standing()
    levels = {
        pk: (scope, island, category)
        for pk, scope, island, category in Fact.objects.values_list("pk", "scope", "island_id", "category")
    }
    assert levels == {
        fact.pk: ("open", None, "personal"),
        isolated.pk: ("isolated", island.pk, "personal"),
        labelled.pk: ("open", None, "personal"),
    }


@pytest.mark.django_db(transaction=True)
def test_erasing_waits_for_a_fact_that_is_being_written(alice):
    said, _answer = exchange(thread_of(alice), "Tea!")
    writer = Elsewhere(lambda: remember(said))
    writer.began.wait(20)
    erasing_it = Elsewhere(lambda: erasing.erase_thread(Thread.objects.get(pk=said.thread_id)))
    wait_until_blocked()
    writer.finish()
    erasing_it.began.wait(20)
    erasing_it.finish()
    assert (writer.error, erasing_it.error) == (None, None)
    assert not Fact.objects.exists()


def test_whoever_was_told_is_found_alike_among_few_facts_and_many_in_as_many_statements(
    alice, bob, thread, django_assert_num_queries
):
    """20,000 facts of an owner's go at once when the conversation that proved them goes."""
    many_facts(alice, 20_000)
    words = ["Fact number 17", 'Says "never" and \\o/', "茶", "Fact number 19999"]
    pks = list(Fact.objects.order_by("pk").values_list("pk", flat=True)[:4])
    for pk, text_ in zip(pks, words, strict=True):
        Fact.objects.filter(pk=pk).update(text=text_)
    places = [thread, *(thread_of(alice) for _number in range(5))]
    briefed, opening, summary, before, other, _none = (live(place) for place in places)
    tell(Fact.objects.get(pk=pks[0]), briefed)
    Generation.objects.filter(pk=opening.pk).update(opening=json.dumps([{"text": f"- {words[1]}."}]))
    Generation.objects.filter(pk=summary.pk).update(summary=f"喝{words[2]}。")
    Generation.objects.filter(pk=before.pk).update(summary_before=f"x {words[3]}")
    Generation.objects.filter(pk=other.pk).update(summary="Fact numbe and nothing else of it")
    Generation.objects.filter(thread=thread_of(bob)).update(summary=words[3])
    owned = Generation.objects.filter(owner=alice)
    expected = {one.pk for one in (briefed, opening, summary, before)}
    few = list(Fact.objects.filter(pk__in=pks))
    many = list(Fact.objects.only("pk", "text"))
    for facts in (few, many):
        with django_assert_num_queries(2):
            assert told.of(facts, owned) == expected


@pytest.mark.django_db(transaction=True)
def test_two_erasures_at_once_wait_for_each_other_in_one_order(alice, monkeypatch):
    """Each of two conversations proves what the other was told: erasing one ends the context of the other."""
    told_threads = []
    for number in (1, 2):
        said, _answer = exchange(thread_of(alice), f"I like tea number {number}.")
        told_threads.append((said.thread, remember(said, f"Likes tea number {number}.").fact))
    (first, first_fact), (second, second_fact) = told_threads
    tell(first_fact, live(second))
    tell(second_fact, live(first))
    both = threading.Barrier(2)

    def meet(owner_id):
        # As far as two can come who wait for each other in a circle; who waits in a line comes one by one.
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(1)
        fact_rows.lock_facts(owner_id)

    monkeypatch.setattr(erasure, "lock_facts", meet)
    erasing_them = [
        Elsewhere(lambda pk=each.pk: erasing.erase_thread(Thread.objects.get(pk=pk))) for each in (second, first)
    ]
    # Whoever comes first holds up the other until it commits.
    for one in erasing_them:
        one.may_commit.set()
    for one in erasing_them:
        one.finish()
    assert [one.error for one in erasing_them] == [None, None]
    assert not Fact.objects.exists()
    assert not Thread.objects.filter(pk__in=[first.pk, second.pk]).exists()
