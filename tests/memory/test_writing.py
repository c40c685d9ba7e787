"""Writing facts: what becomes one row, what stands side by side, what supersedes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from agent.registry import ToolContext
from maxclaw import clock
from memory import evidence, remembering, steward, steward_work, triage, writing
from memory.claims import parse
from memory.fact_rows import lock_facts
from memory.forgetting import forget
from memory.models import Fact, FactEvidence, FactLog
from memory.refusals import FactRefused
from memory.writing import FactDraft, Outcome
from tests.memory.facts import about_user, fact_row, remember, stated, tool_result
from tests.threads.records import exchange, say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads import lifecycle
from threads.models import Message, Thread
from threads.transcript import lock_thread
from threads.visibility import Viewer

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(alice):
    return thread_of(alice)


@pytest.fixture
def said(thread):
    return say(thread, Message.Role.USER, "I like tea.")


def active():
    return list(Fact.objects.filter(status="active").order_by("pk").values_list("text", flat=True))


def test_a_fact_is_written_with_its_evidence_at_the_level_of_its_thread(alice):
    thread = thread_of(alice, scope="isolated")
    said = say(thread, Message.Role.USER, "I like tea.")
    written = remember(said, applies_to="breakfast", tone="decision", project="kitchen")
    connection.check_constraints()
    fact = Fact.objects.get(pk=written.fact.pk)
    assert written.outcome == Outcome.NEW
    assert (fact.text, fact.applies_to, fact.tone, fact.project) == ("Prefers tea.", "breakfast", "decision", "kitchen")
    assert (fact.scope, fact.island_id, fact.status, fact.writer) == ("isolated", thread.pk, "active", "steward")
    assert list(fact.evidence.values_list("kind", "message_id")) == [("max-stated", said.pk)]


def test_the_same_fact_again_adds_evidence_and_no_row(thread, said):
    first = remember(said, "Prefers tea.", applies_to="Breakfast")
    again = say(thread, Message.Role.USER, "Tea, as I said.")
    second = remember(again, "prefers  Tea", applies_to="breakfast", tone="decision")
    third = remember(again, "Ｐrefers tea!", applies_to="breakfast")
    assert second.outcome == third.outcome == Outcome.MORE_EVIDENCE
    assert first.fact.pk == second.fact.pk == third.fact.pk
    assert second.fact.tone == "decision"
    assert list(first.fact.evidence.order_by("pk").values_list("message_id", flat=True)) == [said.pk, again.pk]


def test_views_that_apply_to_different_things_stand_side_by_side(said):
    old = remember(said, "Finds it the best of its kind.", applies_to="the editor's interface").fact
    with pytest.raises(FactRefused, match="stand side by side"):
        remember(said, "Cannot bear it.", applies_to="the editor's plugins", replaces=old.pk)
    remember(said, "Cannot bear it.", applies_to="the editor's plugins", tone="decision")
    assert len(active()) == 2


def test_the_same_thing_with_the_same_applies_to_supersedes(said):
    old = remember(said, "Likes it.", applies_to="The editor").fact
    written = remember(said, "Left it.", applies_to="the editor", replaces=old.pk)
    old.refresh_from_db()
    assert written.outcome == Outcome.SUPERSEDED
    assert (old.status, old.superseded_by_id) == ("superseded", written.fact.pk)
    assert active() == ["Left it."]
    assert FactLog.objects.get().after == [written.fact.pk]
    with pytest.raises(FactRefused, match="superseded already"):
        remember(said, "Came back.", applies_to="the editor", replaces=old.pk)


def test_an_older_view_supersedes_no_later_one_whenever_it_is_read(alice, thread):
    """An old history is imported after the person said where they live now."""
    now = say(thread, Message.Role.USER, "I live in Porto.")
    old = say(thread_of(alice), Message.Role.USER, "I live in Lisbon.")
    Message.objects.filter(pk=old.pk).update(created="2023-05-08T09:00:00Z")
    porto = remember(now, "Lives in Porto.").fact
    with pytest.raises(FactRefused, match="said or seen later than this"):
        remember(old, "Lives in Lisbon.", replaces=porto.pk)
    assert active() == ["Lives in Porto."]
    later = say(thread, Message.Role.USER, "I moved to Braga.")
    assert remember(later, "Lives in Braga.", replaces=porto.pk).outcome == Outcome.SUPERSEDED


def test_an_older_view_does_not_become_current_beside_a_later_one_on_the_same_thing(alice, thread):
    old = say(thread_of(alice), Message.Role.USER, "The editor is the best. I live in Lisbon, and like bread.")
    Message.objects.filter(pk=old.pk).update(created="2023-05-08T09:00:00Z")
    now = say(thread, Message.Role.USER, "I cannot bear the editor. I live in Porto.")
    beside = remember(now, "Cannot bear it.", applies_to="The editor").fact
    with pytest.raises(FactRefused, match=f"Fact {beside.pk} applies to “The editor” too.*no news"):
        remember(old, "Finds it the best.", applies_to="the editor")
    remember(old, "Finds it the best.", applies_to="the editor's interface")
    remember(old, "Opened it every morning.", applies_to="the editor", aspect="fact")
    remember(old, "Likes bread."), remember(now, "Likes tea.")
    lisbon = remember(old, "Lives in Lisbon.", aspect="fact").fact
    porto = remember(now, "Lives in Porto.", aspect="fact", replaces=lisbon.pk).fact
    braga = remember(now, "Lives in Braga.", aspect="fact", replaces=porto.pk).fact
    again = say(thread_of(alice), Message.Role.USER, "Lisbon is where I live.")
    Message.objects.filter(pk=again.pk).update(created="2024-05-08T09:00:00Z")
    with pytest.raises(FactRefused, match=f"superseded since by fact {braga.pk}"):
        remember(again, "Lives in LISBON", aspect="fact")
    later = say(thread, Message.Role.USER, "Back in Lisbon, and the editor is good again.")
    assert remember(later, "Lives in Lisbon.", aspect="fact", replaces=braga.pk).outcome == Outcome.SUPERSEDED
    assert remember(later, "Finds it good.", applies_to="the editor").outcome == Outcome.NEW


def test_what_replaces_one_fact_and_says_what_another_says_becomes_both(said, thread):
    again = say(thread, Message.Role.USER, "Coffee is fine.")
    tea, coffee = remember(said, "Drinks tea.").fact, remember(again, "Drinks coffee.").fact
    written = remember(again, "Drinks tea!", replaces=coffee.pk)
    assert active() == ["Drinks tea!"]
    assert set(Fact.objects.filter(superseded_by=written.fact).values_list("pk", flat=True)) == {
        tea.pk,
        coffee.pk,
    }


def test_a_fact_is_replaced_at_its_own_visibility_alone(alice, bob, said):
    old = remember(said).fact
    isolated = say(thread_of(alice, scope="isolated"), Message.Role.USER, "Coffee from now on.")
    with pytest.raises(FactRefused, match="other places"):
        remember(isolated, "Prefers coffee.", replaces=old.pk)
    hidden = remember(isolated, "Is ill.").fact
    with pytest.raises(FactRefused, match="no fact"):
        remember(said, "Is well.", replaces=hidden.pk)
    theirs = remember(say(thread_of(bob), Message.Role.USER, "Water."), "Prefers water.").fact
    with pytest.raises(FactRefused, match="no fact"):
        remember(said, "Prefers coffee.", replaces=theirs.pk)
    same_words = remember(isolated, "Prefers tea.")
    assert same_words.outcome == Outcome.NEW, "the same words at another visibility are another fact"


def test_words_of_an_island_prove_nothing_outside_it(alice, said):
    isolated = say(thread_of(alice, scope="isolated"), Message.Role.USER, "I am ill.")
    with pytest.raises(FactRefused, match="may not be seen here"):
        remember(isolated, "Is ill.", thread=said.thread)
    assert remember(said, thread=isolated.thread).fact.scope == "isolated"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"text": " … "}, "needs words"),
        ({"text": "word " * 300}, "at most"),
        ({"applies_to": "x" * 201}, "at most"),
        ({"kind": "recipe"}, "kind of a fact"),
        ({"tone": "shout"}, "tone of a fact"),
        ({"aspect": ""}, "has an aspect"),
        ({"kind": "event"}, "Only a fact about the person"),
        ({"text": "The key is sk-ant-api03-abcdefghijklmnop1."}, "Secrets are not remembered"),
        ({"applies_to": "postgres://me:hunter22@host/db"}, "Secrets are not remembered"),
    ],
)
def test_a_draft_that_is_no_fact_is_refused(said, changed, sentence):
    draft = FactDraft(**({"text": "Prefers tea.", "kind": "about-user", "aspect": "preference"} | changed))
    with pytest.raises(FactRefused, match=sentence):
        writing.write_fact(said.owner_id, draft, [stated(said)], writer="steward", thread=said.thread)
    assert not Fact.objects.exists()


def test_relative_times_become_dates_of_when_it_was_said(alice, thread):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    said = say(thread, Message.Role.USER, "I moved yesterday.")
    Message.objects.filter(pk=said.pk).update(created="2023-05-08T20:30:00Z")
    assert remember(said, "Moved yesterday.", aspect="fact").fact.text == "Moved 2023-05-08."


def test_a_relative_time_is_seen_from_the_message_that_says_it_whichever_proof_comes_first(alice, thread):
    spoken = [
        ("I keep bees.", "2023-05-02T09:00:00Z"),
        ("I moved  Yesterday to Porto.", "2023-05-08T09:00:00Z"),
        ("Porto it is, since last month.", "2023-06-20T09:00:00Z"),
    ]
    rows = [say(thread, Message.Role.USER, words) for words, _when in spoken]
    for row, (_words, when) in zip(rows, spoken, strict=True):
        Message.objects.filter(pk=row.pk).update(created=when)

    def write(text, *proofs):
        draft = FactDraft(text, kind="about-user", aspect="fact")
        claims = [stated(row) for row in proofs]
        return writing.write_fact(alice.pk, draft, claims, writer="steward", thread=thread).fact.text

    bees, moved, later = rows
    for proofs in (rows, [later, moved, bees]):
        assert (
            write("Moved yesterday, in Porto since last month.", *proofs) == "Moved 2023-05-07, in Porto since 2023-05."
        )
    # Nobody says it: one month of both, but not one day.
    assert write("Thought of it this month.", bees, moved) == "Thought of it 2023-05."
    with pytest.raises(FactRefused, match=r"“today” may be 2023-05-02 or 2023-05-08.*write the date"):
        write("Thought of it today.", bees, moved)


def test_a_time_that_the_acceptance_names_is_seen_from_it(alice, thread):
    asked = say(thread, Message.Role.ASSISTANT, "You will paint the fence.", model="emulator-main")
    yes = say(thread, Message.Role.USER, "Yes, do it tomorrow.")
    Message.objects.filter(pk=asked.pk).update(created="2023-05-08T09:00:00Z")
    Message.objects.filter(pk=yes.pk).update(created="2023-05-10T09:00:00Z")
    claim = parse({"kind": "max-accepted", "message_id": asked.pk, "accepted_by": yes.pk})
    draft = FactDraft("Paints the fence tomorrow.", kind="about-user", aspect="decision", tone="decision")
    written = writing.write_fact(alice.pk, draft, [claim], writer="steward", thread=thread)
    assert written.fact.text == "Paints the fence 2023-05-11."


def test_what_somebody_took_back_by_hand_comes_back_only_by_words_said_later(alice, said, thread):
    """A steward that comes late would undo what the person did on their page."""
    tea, cups = (remember(said, words, writer="remember").fact for words in ("Prefers tea.", "Needs two cups."))
    writing.retire(tea, reason="", writer="person", actor=alice)
    mended = writing.correct(cups, about_user("Needs three cups."), reason="", writer="person", actor=alice)
    for words in ("Prefers TEA", "Needs two cups."):
        with pytest.raises(FactRefused, match="taken back"):
            remember(said, words)
    with pytest.raises(FactRefused, match="put right by hand"):
        remember(said, "Needs two cups of tea.", replaces=mended.pk)
    assert remember(said, "Prefers tea.", applies_to="breakfast").outcome == Outcome.NEW
    assert remember(said, "Needs three cups.").outcome == Outcome.MORE_EVIDENCE
    later = say(thread, Message.Role.USER, "Tea again, two cups of it.")
    assert remember(later, "Prefers tea.").outcome == Outcome.NEW
    assert remember(later, "Needs two cups.", replaces=mended.pk).outcome == Outcome.SUPERSEDED


def test_retired_and_superseded_facts_come_back_as_new_ones_with_the_evidence(alice, said):
    fact = remember(said).fact
    writing.retire(fact, reason="no longer", writer="person", actor=alice)
    with pytest.raises(FactRefused, match="retired"):
        writing.retire(fact, reason="again", writer="person", actor=alice)
    restored = writing.restore(fact, reason="after all", writer="staff", actor=alice)
    connection.check_constraints()
    fact.refresh_from_db()
    assert (fact.status, fact.why) == ("retired", "no longer")
    assert restored.pk != fact.pk
    assert active() == ["Prefers tea."]
    assert list(restored.evidence.values_list("message_id", flat=True)) == [said.pk]
    assert [entry.action for entry in FactLog.objects.order_by("pk")] == ["retire", "restore"]
    with pytest.raises(FactRefused, match="is active"):
        writing.restore(restored, reason="", writer="staff")


def test_facts_that_say_the_same_are_merged_into_a_new_one(alice, thread, said):
    again = say(thread, Message.Role.USER, "Green tea.")
    one, other = remember(said).fact, remember(again, "Likes tea best.", tone="decision").fact
    elsewhere = remember(again, "Likes tea.", applies_to="mornings").fact
    with pytest.raises(FactRefused, match="side by side"):
        writing.merge([one, elsewhere], "Likes tea.", reason="", writer="staff")
    merged = writing.merge([one, other], "Prefers tea, green.", reason="the same", writer="staff", actor=alice)
    connection.check_constraints()
    assert active() == ["Likes tea.", "Prefers tea, green."]
    assert merged.tone == "decision"
    assert set(merged.evidence.values_list("message_id", flat=True)) == {said.pk, again.pk}


def test_a_correction_leaves_the_new_words_alone(alice, said):
    fact = remember(said).fact
    new = writing.correct(fact, about_user("Prefers green tea."), reason="green", writer="person", actor=alice)
    connection.check_constraints()
    assert active() == ["Prefers green tea."]
    assert (new.writer, list(new.supersedes.all())) == ("person", [fact])
    viewer = Viewer.of_thread(thread_of(fact.owner, scope="isolated"))
    hidden = remember(say(thread_of(alice, scope="isolated"), Message.Role.USER, "I am ill."), "Is ill.").fact
    with pytest.raises(FactRefused, match="no fact"):
        writing.correct(hidden, about_user("Is well."), reason="", writer="person", viewer=viewer)


def test_what_a_correction_says_of_time_is_seen_from_now_unless_the_old_words_said_it(alice, said):
    fact = remember(said).fact
    with clock.moved((datetime(2023, 5, 8, 12, tzinfo=UTC) - clock.now()).total_seconds()):
        new = writing.correct(fact, about_user("Moved house yesterday."), reason="", writer="person")
        assert new.text == "Moved house 2023-05-07."
        old = fact_row(alice, said, "Left home yesterday.")
        kept = writing.correct(old, about_user("Left Rome yesterday."), reason="", writer="person")
    assert kept.text == "Left Rome yesterday."


@pytest.mark.django_db(transaction=True)
def test_two_writers_of_the_same_fact_write_it_once(alice):
    said, _answer = exchange(thread_of(alice), "I like tea.")
    again, _answer = exchange(thread_of(alice), "Tea!")
    first = Elsewhere(lambda: remember(said))
    first.began.wait(20)
    second = Elsewhere(lambda: remember(again))
    wait_until_blocked()
    first.finish()
    second.began.wait(20)
    second.finish()
    assert (first.error, second.error) == (None, None)
    assert (first.result.outcome, second.result.outcome) == (Outcome.NEW, Outcome.MORE_EVIDENCE)
    assert FactEvidence.objects.filter(fact=first.result.fact).count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_thread_that_is_isolated_while_a_fact_is_written_keeps_it(alice):
    said, _answer = exchange(thread_of(alice), "I like tea.")
    writer = Elsewhere(lambda: remember(said))
    writer.began.wait(20)

    def isolate():
        lifecycle.narrow(Thread.objects.get(pk=said.thread_id), acting_user=alice, scope="isolated")

    isolating = Elsewhere(isolate)
    wait_until_blocked()
    writer.finish()
    isolating.began.wait(20)
    isolating.finish()
    assert (writer.error, isolating.error) == (None, None)
    assert Fact.objects.get().island_id == said.thread_id


@pytest.mark.django_db(transaction=True)
def test_nobody_who_waits_for_the_owners_facts_holds_a_conversation(alice):
    """So that what is said in it waits for no writer of facts of other conversations."""
    thread = thread_of(alice)
    words = "I like green tea in the morning."
    said, _answer = exchange(thread, words)
    asked = tool_result(thread, "remember").answers_call
    mine, going = remember(said, "Likes tea.").fact, remember(said, "Likes cups.").fact
    imported = fact_row(alice, None, words, legacy=True)
    Thread.objects.filter(pk=thread.pk).update(updated=clock.now() - steward_work.QUIET)
    reading = steward_work.claim(thread.pk)
    context = ToolContext(thread.pk, alice.pk, frame_id=0, call_id=asked.pk)
    draft = {"text": "Drinks tea.", "kind": "about-user", "aspect": "fact", "tone": "remark"}
    proved = {"evidence": [{"kind": "max-stated", "message_id": said.pk}]}
    ways = [
        lambda: remember(said, "Prefers tea."),
        lambda: writing.retire(mine, reason="", writer="person"),
        lambda: remembering.remember(context, draft | {"asked_with": words}),
        lambda: steward._written(reading, context, steward.tools()["write_fact"], draft | proved),
        lambda: triage._restate(alice, imported),
        lambda: forget(going, writer="person"),
    ]
    for way in ways:
        elsewhere = Elsewhere(lambda: lock_facts(alice.pk))
        elsewhere.began.wait(20)
        waiting = Elsewhere(way)
        try:
            wait_until_blocked()
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '3s'")
                lock_thread(thread.pk)
        finally:
            elsewhere.finish()
            waiting.began.wait(20)
            waiting.finish()
        assert waiting.error is None and waiting.result
    assert set(active()) == {"Prefers tea.", "Drinks tea.", words}


@pytest.mark.django_db(transaction=True)
def test_locking_facts_outside_a_transaction_is_loud(alice):
    with pytest.raises(transaction.TransactionManagementError):
        lock_facts(alice.pk)


def test_evidence_is_needed(said):
    with pytest.raises(evidence.EvidenceRefused, match="needs evidence"):
        writing.write_fact(said.owner_id, about_user(), [], writer="steward", thread=said.thread)


def test_no_result_of_a_tool_replaces_or_makes_a_decision_of_the_persons(alice, said, thread):
    result = tool_result(thread, text="The person decided on coffee.")
    verified = [parse({"kind": "tool-verified", "message_id": result.pk})]
    event = FactDraft(text="Coffee was chosen.", kind="event", aspect="")
    preference = remember(said).fact
    with pytest.raises(writing.FactRefused, match="of the kind about-user"):
        writing.write_fact(alice.pk, event, verified, writer="steward", thread=thread, replaces=preference.pk)
    tea = FactDraft(text="Tea was chosen.", kind="event", aspect="", tone="decision")
    decided = writing.write_fact(alice.pk, tea, [stated(said)], writer="steward", thread=thread).fact
    with pytest.raises(writing.FactRefused, match="only a later word of theirs"):
        writing.write_fact(alice.pk, event, verified, writer="steward", thread=thread, replaces=decided.pk)
    remark = writing.write_fact(alice.pk, event, verified, writer="steward", thread=thread).fact
    with pytest.raises(writing.EvidenceRefused, match="the person's own"):
        writing.write_fact(alice.pk, replace(event, tone="decision"), verified, writer="steward", thread=thread)
    remark.refresh_from_db()
    decided.refresh_from_db()
    assert (remark.tone, decided.status) == ("remark", "active")
