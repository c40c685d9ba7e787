"""Each rule of runs and proposals, refused by the database to plain SQL."""

from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from maxclaw import clock
from shadow.models import ProposalReview, ShadowActivation, ShadowBaseline, ShadowCursor, ShadowFactProposal
from shadow.rules import RULES
from tests.memory.facts import fact_row, tool_result
from tests.raw_sql import change, copy_of, insert_copy, refused, run
from tests.shadow.records import next_generation_of, proposal_row, run_row
from tests.threads.records import copied, give_result, live, say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads import lifecycle
from threads.looking_back import LOOKING_BACK
from threads.models import Generation, Message, Thread
from threads.rules import refine

pytestmark = pytest.mark.django_db


NEVER_OF_AN_ISOLATED_ONE = {"proposal_never_of_an_isolated_thread", "isolated_thread_has_no_proposals"}


@pytest.fixture
def said(alice):
    return say(thread_of(alice), Message.Role.USER, "I like tea.")


@pytest.fixture
def elsewhere(alice):
    return say(thread_of(alice), Message.Role.USER, "I like milk.")


@pytest.fixture
def foreign(bob):
    return say(thread_of(bob), Message.Role.USER, "I like coffee.")


def test_shadows_begin_once(db):
    ShadowActivation.objects.create(through_seq=5)
    refused("shadowactivation_written_once", "UPDATE shadow_shadowactivation SET through_seq = 6")
    refused("shadowactivation_written_once", "DELETE FROM shadow_shadowactivation")
    refused(
        "shadowactivation_single_row",
        "INSERT INTO shadow_shadowactivation (id, through_seq, created) VALUES (2, 5, now())",
    )


def test_from_where_a_generation_is_read_is_settled_once_for_its_own_conversation(alice, bob, said, elsewhere):
    cursor = ShadowCursor.objects.create(thread=said.thread, owner=alice, initialization="enabled")
    refused(
        "shadowcursor_owner_is_the_threads",
        "UPDATE shadow_shadowcursor SET owner_id = %s WHERE thread_id = %s",
        bob.pk,
        cursor.pk,
    )
    refused(
        "shadowcursor_of_known_initialization",
        "UPDATE shadow_shadowcursor SET initialization = 'guessed' WHERE thread_id = %s",
        cursor.pk,
    )
    ShadowBaseline.objects.create(generation=said.generation, thread=said.thread, owner=alice, baseline=3)
    refused("shadowbaseline_written_once", "UPDATE shadow_shadowbaseline SET baseline = 4")
    insert = "INSERT INTO shadow_shadowbaseline (generation_id, thread_id, owner_id, baseline, created)"
    insert += " VALUES (%s, %s, %s, %s, now())"
    there = elsewhere.generation_id
    refused("shadowbaseline_not_negative", insert, there, elsewhere.thread_id, alice.pk, -1)
    refused("shadowbaseline_owner_is_the_threads", insert, there, elsewhere.thread_id, bob.pk, 0)
    refused("shadowbaseline_generation_of_its_thread", insert, there, said.thread_id, alice.pk, 0)


def test_one_run_waits_and_one_goes_on_and_what_is_over_stays(alice, bob, said, elsewhere):
    queued = run_row(said.thread, status="queued")
    running = run_row(said.thread, status="running")
    copy_of("shadowrun_one_queued_per_thread", queued)
    copy_of("shadowrun_one_running_per_thread", running)
    change("shadowrun_owner_is_the_threads", queued, "owner_id", bob.pk)
    change("shadowrun_generation_of_its_thread", queued, "generation_id", elsewhere.generation_id)
    change("shadowrun_end_has_time", queued, "status", "cancelled")
    change("shadowrun_end_has_time", queued, "ended", clock.now())
    change("shadowrun_cold_says_why", queued, "path_reason", "")
    change("shadowrun_cold_says_why", queued, "path", "hot")
    change("shadowrun_reads_something", running, "through_seq", None)
    change("shadowrun_waits_while_queued", running, "not_before", clock.now())
    over = run_row(said.thread, call=7)
    for odd in ({"status": "odd"}, {"reason": "odd"}, {"path": "odd", "path_reason": ""}, {"path_reason": "odd"}):
        copy_of("shadowrun_of_known_kinds", over, **odd)
    for column, value in (("status", "failed"), ("error", "words"), ("call", 8), ("output_tokens", 1)):
        change("shadowrun_finished_stays", over, column, value)
    run("UPDATE shadow_shadowrun SET call = NULL WHERE id = %s", over.pk)
    change("shadowrun_finished_stays", over, "call", 7)


def test_what_the_call_of_a_cancelled_run_used_is_written_once(said):
    over = run_row(said.thread, status="cancelled", call=7)
    run("UPDATE shadow_shadowrun SET input_tokens = 5, cost = 0.1, duration_ms = 3 WHERE id = %s", over.pk)
    for column, value in (("input_tokens", 6), ("output_tokens", 1), ("error", "words")):
        change("shadowrun_finished_stays", over, column, value)
    for status in ("failed", "completed"):
        change("shadowrun_finished_stays", run_row(said.thread, status=status, call=8), "input_tokens", 5)


def test_a_proposal_is_of_its_runs_conversation_and_whole_if_it_holds(alice, bob, said, elsewhere, foreign):
    proposal = proposal_row(said)
    theirs = fact_row(bob, foreign)
    copy_of("proposal_owner_is_the_threads", proposal, position=1, owner_id=bob.pk, validation_error="no evidence")
    change("proposal_run_of_its_thread", proposal, "run_id", run_row(elsewhere.thread).pk)
    change("proposal_replaces_fact_of_same_owner", proposal, "replaces_fact_id", theirs.pk)
    change("proposal_fact_of_same_owner", proposal, "fact_id", theirs.pk)
    change("proposal_replaces_proposal_of_its_thread", proposal, "replaces_proposal_id", proposal_row(elsewhere).pk)
    copy_of("proposal_that_holds_is_whole", proposal, position=1, text="")
    change("proposal_that_holds_is_whole", proposal, "kind", "event")
    change("proposal_that_holds_is_whole", proposal, "aspect", "")
    change("proposal_that_holds_is_whole", proposal, "tone", "")
    change("proposal_that_holds_is_of_known_kinds", proposal, "tone", "weird")
    change("proposal_that_holds_is_of_known_kinds", proposal, "aspect", "weird")
    copy_of("proposal_that_holds_is_of_known_kinds", proposal, position=1, kind="recipe", aspect="")
    copy_of("proposal_place_once", proposal, validation_error="no evidence")
    mine = fact_row(alice, said)
    refused(
        "proposal_replaces_one",
        "UPDATE shadow_shadowfactproposal SET replaces_fact_id = %s, replaces_proposal_id = id WHERE id = %s",
        mine.pk,
        proposal.pk,
    )
    rejected = proposal_row(said, validation_error="no evidence")
    change("proposal_becomes_a_fact_if_it_holds", rejected, "fact_id", mine.pk)


def test_a_proposal_that_holds_cites_its_own_conversation_whichever_row_is_written_last(
    alice, said, elsewhere, foreign
):
    proposal = proposal_row(said)
    row = proposal.evidence.get()
    invented = Message.objects.latest("pk").pk + 1000
    change("proposalevidence_of_its_own_thread", row, "message_id", elsewhere.pk)
    answer = say(said.thread, Message.Role.ASSISTANT, "Tea it is.")
    accepted = {"kind": "max-accepted", "message_id": answer.pk}
    yes = say(elsewhere.thread, Message.Role.USER, "Yes.")
    copy_of("proposalevidence_of_its_own_thread", row, **accepted, accepted_by_id=yes.pk)
    outcome = {"kind": "observed-outcome", "message_id": None}
    copy_of("proposalevidence_of_its_own_thread", row, **outcome, generation_id=elsewhere.generation_id)
    change("proposalevidence_of_what_is_there", row, "message_id", invented)
    copy_of("proposalevidence_of_what_is_there", row, kind="max-accepted", accepted_by_id=invented)
    copy_of("proposalevidence_of_what_is_there", row, **outcome, generation_id=invented)
    change("proposalevidence_message_of_same_owner", row, "message_id", foreign.pk)
    copy_of("proposalevidence_accepted_by_of_same_owner", row, **accepted, accepted_by_id=foreign.pk)
    copy_of("proposalevidence_generation_of_same_owner", row, **outcome, generation_id=foreign.generation_id)
    refused("proposalevidence_of_its_own_thread", "DELETE FROM shadow_shadowproposalevidence WHERE id = %s", row.pk)
    refused("proposalevidence_of_its_own_thread", "DELETE FROM threads_message WHERE id = %s", said.pk)
    copy_of("proposal_cites_its_own_thread", proposal, position=1)
    # What did not hold may name what there is, and cannot come to hold by dropping its error.
    rejected = proposal_row(said, validation_error="of another conversation")
    insert_copy(row, proposal_id=rejected.pk, message_id=elsewhere.pk)
    change("proposal_cites_its_own_thread", rejected, "validation_error", "")


def test_a_proposal_that_holds_cites_originals_of_the_role_that_the_kind_is_of(alice, said, elsewhere):
    proposal = proposal_row(said)
    row = proposal.evidence.get()
    answer = say(said.thread, Message.Role.ASSISTANT, "Tea it is.")
    yes = say(said.thread, Message.Role.USER, "Yes.")
    insert_copy(row, kind="max-accepted", message_id=answer.pk, accepted_by_id=yes.pk)
    for kind in ("tool-verified", "observed-outcome"):
        change("proposalevidence_fits_its_kind", row, "kind", kind)
    change("proposalevidence_fits_its_kind", row, "message_id", answer.pk)
    again = say(said.thread, Message.Role.ASSISTANT, "Indeed.")
    copy_of("proposalevidence_fits_its_kind", row, kind="max-accepted", accepted_by_id=yes.pk)
    copy_of("proposalevidence_fits_its_kind", row, kind="max-accepted", message_id=answer.pk, accepted_by_id=again.pk)
    whole = {"message_id": None, "generation_id": said.generation_id}
    copy_of("proposalevidence_fits_its_kind", row, **whole)
    change("proposalevidence_fits_its_kind", row, "message_id", copied(elsewhere, said.thread).pk)
    rejected = proposal_row(said, validation_error="no result of a tool")
    insert_copy(row, proposal_id=rejected.pk, kind="tool-verified")
    change("proposal_evidence_fits_its_kind", rejected, "validation_error", "")
    change("proposalevidence_stays", row, "proposal_id", rejected.pk)
    change("proposalevidence_of_known_kind", row, "kind", "rumour")


def test_a_proposal_that_holds_cites_results_of_calls_that_succeeded(said):
    """As the person's words those of question cards, as proof of the world those of other tools."""
    row = proposal_row(said, kind="event", aspect="").evidence.get()
    good = tool_result(said.thread)
    card = tool_result(said.thread, QUESTION_TOOL, "Tea.", call_id="toolu_2")
    failed = tool_result(said.thread, call_id="toolu_3", is_error=True)
    refusing = tool_result(said.thread, call_id="toolu_4", status="refused")
    unanswered = tool_result(said.thread, QUESTION_TOOL, call_id="toolu_5", status="interrupted")
    nobodys = give_result(said.thread, "toolu_6")  # of no known call
    for result in (good, failed, unanswered, nobodys):
        change("proposalevidence_result_holds", row, "message_id", result.pk)
    for kind in ("tool-verified", "observed-outcome"):
        for result in (card, failed, refusing, nobodys):
            copy_of("proposalevidence_result_holds", row, kind=kind, message_id=result.pk)
        for place, tool in enumerate(sorted(LOOKING_BACK)):
            shown = tool_result(said.thread, tool, call_id=f"toolu_{kind}_{place}")
            copy_of("proposalevidence_result_holds", row, kind=kind, message_id=shown.pk)
        insert_copy(row, kind=kind, message_id=good.pk)
    insert_copy(row, message_id=card.pk)
    answer = say(said.thread, Message.Role.ASSISTANT, "Tea it is?")
    later = tool_result(said.thread, call_id="toolu_7")
    copy_of("proposalevidence_result_holds", row, kind="max-accepted", message_id=answer.pk, accepted_by_id=later.pk)
    rejected = proposal_row(said, validation_error="of a call that failed")
    insert_copy(row, proposal_id=rejected.pk, message_id=failed.pk)
    change("proposal_cites_results_that_hold", rejected, "validation_error", "")


def test_a_proposal_that_holds_was_accepted_after_it_was_said(said):
    row = proposal_row(said).evidence.get()
    answer = say(said.thread, Message.Role.ASSISTANT, "Tea it is?")
    accepted = {"kind": "max-accepted", "message_id": answer.pk}
    copy_of("proposalevidence_accepted_afterwards", row, **accepted, accepted_by_id=said.pk)
    rejected = proposal_row(said, validation_error="accepted before")
    insert_copy(row, proposal_id=rejected.pk, **accepted, accepted_by_id=said.pk)
    change("proposal_accepted_afterwards", rejected, "validation_error", "")
    insert_copy(row, **accepted, accepted_by_id=say(said.thread, Message.Role.USER, "Yes.").pk)
    connection.check_constraints()


def test_a_proposal_that_holds_cites_no_outcome_of_a_generation_that_goes_on(said):
    row = proposal_row(said, kind="event", aspect="").evidence.get()
    whole = {"kind": "observed-outcome", "message_id": None, "generation_id": said.generation_id}
    copy_of("proposalevidence_outcome_is_there", row, **whole)
    rejected = proposal_row(said, validation_error="it goes on", kind="event", aspect="")
    insert_copy(row, proposal_id=rejected.pk, **whole)
    change("proposal_cites_outcomes_that_are_there", rejected, "validation_error", "")
    next_generation_of(said.thread)
    insert_copy(row, **whole)
    connection.check_constraints()


def test_a_proposal_that_holds_cites_no_outcome_of_what_was_said_elsewhere(said, elsewhere):
    """A branch in which nothing was said yet is a generation of copies, and so is its next one with copies of those."""
    branch = said.thread
    own = live(branch)
    next_generation_of(branch)
    copies = [copied(elsewhere, branch)]
    next_generation_of(branch)
    copies.append(copied(copies[0], branch))
    say(branch, Message.Role.EVENT, "Was copied.", model_visible=False, wire=None)
    note = say(branch, Message.Role.USER, "Interrupted.", meta={"source": "kernel/overflow"})
    unsent = say(branch, Message.Role.USER, "Never sent.", wire=None)
    next_generation_of(branch)
    assert note.generation == unsent.generation == copies[1].generation
    row = proposal_row(said, kind="event", aspect="").evidence.get()
    rejected = proposal_row(said, validation_error="copied", kind="event", aspect="")
    for copy in copies:
        whole = {"kind": "observed-outcome", "message_id": None, "generation_id": copy.generation_id}
        copy_of("proposalevidence_stands", row, **whole)
        insert_copy(row, proposal_id=rejected.pk, **whole)
    change("proposal_cites_what_stands", rejected, "validation_error", "")
    insert_copy(row, kind="observed-outcome", message_id=None, generation_id=own.pk)
    connection.check_constraints()
    # Said in the branch itself, or copied within it.
    there = copied(said, branch).generation_id
    next_generation_of(branch)
    insert_copy(row, kind="observed-outcome", message_id=None, generation_id=there)
    connection.check_constraints()


def test_evidence_of_proposals_that_hold_does_not_go_without_them(said):
    proposal_row(said)
    refused("proposalevidence_goes_with_its_proposals", "TRUNCATE shadow_shadowproposalevidence")
    run("TRUNCATE shadow_shadowfactproposal CASCADE")
    assert not ShadowFactProposal.objects.exists()


def test_the_words_of_a_proposal_stay(said):
    proposal = proposal_row(said)
    for column, value in (("text", "Likes it."), ("applies_to", "mornings"), ("fingerprint", "0"), ("raw", "{}")):
        change("proposal_words_stay", proposal, column, value)
    change("proposal_id_stays", proposal, "id", proposal.pk + 1_000)
    run("UPDATE shadow_shadowfactproposal SET category = 'work' WHERE id = %s", proposal.pk)


def test_a_proposal_that_holds_cites_nothing_that_no_model_was_told(said):
    proposal = proposal_row(said)
    row = proposal.evidence.get()
    hidden = say(said.thread, Message.Role.USER, "I like milk.", model_visible=False)
    unsent = say(said.thread, Message.Role.USER, "I like cocoa.", wire=None)
    notes = [
        say(said.thread, Message.Role.USER, "I like juice.", meta={"source": source})
        for source in ("framework", "kernel/overflow")
    ]
    for message in (hidden, unsent, *notes):
        change("proposalevidence_was_told", row, "message_id", message.pk)
    rejected = proposal_row(said, validation_error="the server's own")
    insert_copy(row, proposal_id=rejected.pk, message_id=notes[0].pk)
    change("proposal_cites_what_was_told", rejected, "validation_error", "")
    insert_copy(row, message_id=say(said.thread, Message.Role.USER, "Wine.", meta={"source": "user"}).pk)
    connection.check_constraints()


def test_what_holds_of_the_person_rests_on_their_words_and_a_pointer_on_a_tool(said):
    proposal = proposal_row(said)
    row = proposal.evidence.get()
    found = {"kind": "tool-verified", "message_id": tool_result(said.thread).pk}
    copy_of("proposalevidence_proves_its_kind", row, **found)
    event = proposal_row(said, kind="event", aspect="", tone="decision")
    insert_copy(row, proposal_id=event.pk, **found)
    mine = event.evidence.get(kind="max-stated")
    refused("proposalevidence_proves_its_kind", "DELETE FROM shadow_shadowproposalevidence WHERE id = %s", mine.pk)
    becoming = "UPDATE shadow_shadowfactproposal SET kind = %s, aspect = %s WHERE id = %s"
    refused("proposal_proved_as_its_kind_asks", becoming, "about-user", "fact", event.pk)
    refused("proposal_proved_as_its_kind_asks", becoming, "pointer", "", proposal.pk)
    pointer = proposal_row(said, validation_error="found by nobody", kind="pointer", aspect="")
    insert_copy(row, proposal_id=pointer.pk)
    change("proposal_proved_as_its_kind_asks", pointer, "validation_error", "")
    insert_copy(row, proposal_id=pointer.pk, **found)
    run("UPDATE shadow_shadowfactproposal SET validation_error = '' WHERE id = %s", pointer.pk)
    connection.check_constraints()


def test_a_proposal_that_holds_cites_nothing_that_was_rewound_or_deleted(alice, said):
    proposal = proposal_row(said, kind="event", aspect="")
    row = proposal.evidence.get()
    answer = say(said.thread, Message.Role.ASSISTANT, "Milk it is?")
    rewound = say(said.thread, Message.Role.USER, "I like milk, yes.")
    lost = next_generation_of(said.thread)
    there = say(said.thread, Message.Role.USER, "Only this was said there.")
    live_again = next_generation_of(said.thread)
    assert (there.generation_id, live(said.thread).pk) == (lost.pk, live_again.pk)
    rejected = proposal_row(said, validation_error="It was rewound.", kind="event", aspect="")
    insert_copy(row, proposal_id=rejected.pk, message_id=rewound.pk)
    Message.objects.filter(pk__in=[rewound.pk, there.pk]).update(left_at_cut=1, left_because="superseded")
    change("proposalevidence_stands", row, "message_id", rewound.pk)
    accepted = {"kind": "max-accepted", "message_id": answer.pk, "accepted_by_id": rewound.pk}
    copy_of("proposalevidence_stands", row, **accepted)
    whole = {"kind": "observed-outcome", "message_id": None, "generation_id": lost.pk}
    copy_of("proposalevidence_stands", row, **whole)
    change("proposal_cites_what_stands", rejected, "validation_error", "")
    # A copy that lives on in the conversation stands for what it was copied from.
    for message in (rewound, there):
        copied(message, said.thread)
    insert_copy(row, **accepted)
    insert_copy(row, **whole)
    run("UPDATE shadow_shadowfactproposal SET validation_error = '' WHERE id = %s", rejected.pk)
    connection.check_constraints()
    # What was deleted comes back whole or not at all: nothing is added meanwhile.
    Generation.objects.filter(pk=live_again.pk).update(ended=clock.now(), end_reason="manual")
    Thread.objects.filter(pk=said.thread_id).update(deleted=clock.now())
    copy_of("proposalevidence_stands", row, kind="observed-outcome", message_id=None, generation_id=live_again.pk)
    later = proposal_row(said, run=proposal.run, position=1, validation_error="It was deleted.")
    insert_copy(row, proposal_id=later.pk)
    change("proposal_cites_what_stands", later, "validation_error", "")


def test_evidence_of_a_proposal_is_one_row_once(alice, bob, said, foreign):
    row = proposal_row(said).evidence.get()
    copy_of("proposalevidence_one_source", row, generation_id=said.generation_id)
    copy_of("proposalevidence_one_source", row, message_id=None)
    copy_of("proposalevidence_once", row)
    copy_of("proposalevidence_accepted_says_where", row, accepted_by_id=said.pk)
    refused(
        "proposalevidence_owner_is_the_proposals",
        "UPDATE shadow_shadowproposalevidence SET owner_id = %s, message_id = %s WHERE id = %s",
        bob.pk,
        foreign.pk,
        row.pk,
    )
    verdict = ProposalReview.objects.create(proposal=row.proposal, owner=alice, reviewer=bob, verdict="correct")
    change("proposalreview_owner_is_the_proposals", verdict, "owner_id", bob.pk)
    change("proposalreview_known_verdict", verdict, "verdict", "maybe")


def test_nothing_is_proposed_of_an_isolated_conversation_whichever_row_is_written_last(alice, said):
    proposal = proposal_row(said)
    isolated = thread_of(alice, scope="isolated")
    there = run_row(isolated)
    moved = {"thread_id": isolated.pk, "run_id": there.pk, "validation_error": "no evidence"}
    copy_of("proposal_never_of_an_isolated_thread", proposal, **moved)
    refused(
        "isolated_thread_has_no_proposals",
        "UPDATE threads_thread SET scope = 'isolated', island_id = id WHERE id = %s",
        said.thread_id,
    )
    going_on = run_row(said.thread, status="running")
    lifecycle.narrow(said.thread, acting_user=alice, scope="isolated")
    connection.check_constraints()
    assert not ShadowFactProposal.objects.exists()
    going_on.refresh_from_db()
    assert (going_on.status, going_on.error) == ("cancelled", "isolated")


@pytest.mark.parametrize("error", ["", "no evidence"])
def test_nothing_is_proposed_of_a_conversation_that_is_isolated_when_it_comes_at_last(alice, said, error):
    """Foreign keys are asked at commit: a conversation may be written after what is proposed of it."""
    proposal = proposal_row(said)
    island = thread_of(alice, scope="isolated")
    connection.check_constraints()
    thread, generation, message, made, proposed = (10**9 + place for place in range(5))
    rows = [
        (proposal.run, {"id": made, "thread_id": thread, "generation_id": generation}),
        (proposal, {"id": proposed, "thread_id": thread, "run_id": made, "validation_error": error}),
        (said, {"id": message, "thread_id": thread, "generation_id": generation}),
        (proposal.evidence.get(), {"id": message, "proposal_id": proposed, "message_id": message}),
        (said.generation, {"id": generation, "thread_id": thread}),
    ]
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        for row, changed in rows:
            insert_copy(row, **changed)
        insert_copy(island, id=thread, island_id=thread, channel="another")
        connection.check_constraints()
    assert refine(caught.value, RULES).name in NEVER_OF_AN_ISOLATED_ONE
    # As the number of a conversation that is there already, too.
    bare = run_row(said.thread, status="queued", generation_id=None)
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        insert_copy(bare, id=made, thread_id=thread, generation_id=None)
        insert_copy(proposal, id=proposed, thread_id=thread, run_id=made, validation_error="no evidence")
        run("SET CONSTRAINTS proposal_never_of_an_isolated_thread IMMEDIATE")
        run("DELETE FROM threads_generation WHERE thread_id = %s", island.pk)
        run("UPDATE threads_thread SET id = %s, island_id = %s WHERE id = %s", thread, thread, island.pk)
        connection.check_constraints()
    assert refine(caught.value, RULES).name == "isolated_thread_has_no_proposals"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["proposal", "isolating"])
def test_of_a_proposal_and_an_isolation_at_once_the_later_one_is_refused(alice, first):
    said = say(thread_of(alice), Message.Role.USER, "I like tea.")

    def propose():
        proposal_row(said)
        connection.check_constraints()  # which waits for who isolates the conversation

    def isolate():
        run("UPDATE threads_thread SET scope = 'isolated', island_id = id WHERE id = %s", said.thread_id)

    works = (propose, isolate) if first == "proposal" else (isolate, propose)
    earlier = Elsewhere(works[0])
    earlier.began.wait(20)
    later = Elsewhere(works[1])
    wait_until_blocked()
    earlier.finish()
    later.finish()
    assert earlier.error is None
    rule = "isolated_thread_has_no_proposals" if first == "proposal" else "proposal_never_of_an_isolated_thread"
    assert refine(later.error, RULES).name == rule


def test_what_a_proposal_that_holds_cites_stays_what_it_is(alice, said, elsewhere):
    """By rules of messages, generations and tool calls, of which this is to be true whatever they are for."""
    event = proposal_row(said, kind="event", aspect="")
    row = event.evidence.get()
    found = tool_result(said.thread)
    insert_copy(row, kind="tool-verified", message_id=found.pk)
    ended = said.generation_id
    next_generation_of(said.thread)
    insert_copy(row, kind="observed-outcome", message_id=None, generation_id=ended)
    island = say(thread_of(alice, scope="isolated"), Message.Role.USER, "A secret.")
    moved = "UPDATE threads_message SET thread_id = %s, generation_id = %s WHERE id = %s"
    for place in (elsewhere, island):
        refused("message_stays_where_it_was_said", moved, place.thread_id, place.generation_id, said.pk)
    refused("message_stays_where_it_was_said", "UPDATE threads_message SET id = -id WHERE id IN (%s, %s)", said.pk, 0)
    for column, value in (("role", "assistant"), ("model_visible", False), ("meta", '{"source": "framework"}')):
        change("message_stays_as_it_was_said", said, column, value)
    change("message_stays_as_it_was_said", found, "is_error", True)
    change("message_copied_from_frozen", said, "copied_from_id", elsewhere.pk)
    change("generation_stays_in_its_thread", said.generation, "id", 10**9)
    change("generation_ordinals_without_gaps", said.generation, "ordinal", 9)
    call = ToolCall.objects.get(result=found)
    for column, value in (("status", "refused"), ("status", "interrupted"), ("result_id", None)):
        change("toolcall_ends_once", call, column, value)
    for column, value in (("tool", QUESTION_TOOL), ("thread_id", elsewhere.thread_id)):
        change("toolcall_stays_as_it_was_made", call, column, value)
    refused("toolcall_goes_with_its_result", "DELETE FROM agent_toolcall WHERE id = %s", call.pk)


def test_every_rule_is_driven_by_a_test():
    source = Path(__file__).read_text()
    assert [name for name in RULES if f'"{name}"' not in source] == []
