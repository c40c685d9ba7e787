"""What each kind of evidence accepts and refuses: the one judge for every writer."""

import pytest
from django.db.models import QuerySet
from hypothesis import given
from hypothesis import strategies as st

from agent.models import ToolCall
from maxclaw import clock
from memory import evidence, standing
from memory.claims import Claim, parse
from memory.evidence import EvidenceRefused
from memory.models import Fact
from memory.writing import FactDraft, write_fact
from tests.memory.facts import fact_row, reading_tool, remember, tool_result
from tests.threads.records import exchange, live, say, thread_of
from threads.copying import fork, rewind, undo_rewind
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(alice):
    return thread_of(alice)


def check(owner, *claims, kind="about-user", aspect="fact", **options):
    return evidence.check(owner, [parse(claim) for claim in claims], kind=kind, aspect=aspect, **options)


def refuses(sentence, owner, *claims, **options):
    with pytest.raises(EvidenceRefused, match=sentence):
        check(owner, *claims, **options)


def stated(message, **more):
    return {"kind": "max-stated", "message_id": message.pk, **more}


def accepted(message, by):
    return {"kind": "max-accepted", "message_id": message.pk, "accepted_by": by.pk}


def verified(message):
    return {"kind": "tool-verified", "message_id": message.pk}


def observed(message):
    return {"kind": "observed-outcome", "message_id": message.pk}


def whole(generation):
    return {"kind": "observed-outcome", "generation_id": generation.pk}


def event(owner, *claims, **options):
    return check(owner, *claims, kind="event", aspect="", **options)


def refuses_event(sentence, owner, *claims):
    refuses(sentence, owner, *claims, kind="event", aspect="")


# How claims are written


def test_the_tag_of_rendered_rows_is_taken_off_message_ids_alone():
    assert parse({"kind": "max-stated", "message_id": "m:12"}) == Claim("max-stated", 12)
    both = parse({"kind": "max-accepted", "message_id": "12", "accepted_by": "m:13"})
    assert (both.message_id, both.accepted_by) == (12, 13)
    with pytest.raises(EvidenceRefused):
        parse({"kind": "observed-outcome", "generation_id": "m:12"})


@pytest.mark.parametrize(
    "wrong", ["m:", "", "m:m:1", "1.0", "-1", "０1", "²", "one", "9" * 30, 0, -1, 1.5, True, [1], {}]
)
@pytest.mark.parametrize("key", ["message_id", "accepted_by", "generation_id"])
def test_an_id_is_a_whole_number_or_its_digits(wrong, key):
    others = {"message_id": 1, "accepted_by": 2} if key != "generation_id" else {}
    kind = "max-accepted" if key != "generation_id" else "observed-outcome"
    with pytest.raises(EvidenceRefused):
        parse({"kind": kind, **others, key: wrong})


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers())))
def test_whatever_is_cited_is_a_claim_or_refused_with_a_sentence(raw):
    try:
        assert isinstance(parse(raw), Claim)
    except EvidenceRefused as refusal:
        assert str(refusal)


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "max-stated"},
        {"kind": "max-stated", "message_id": 1, "generation_id": 1},
        {"kind": "max-stated", "generation_id": 1},
        {"kind": "tool-verified", "generation_id": 1},
        {"kind": "max-stated", "message_id": 1, "accepted_by": 2},
        {"kind": "max-accepted", "message_id": 1},
        {"kind": "unknown", "message_id": 1},
        {"message_id": 1},
        {"kind": "max-stated", "message_id": 1, "sessionId": 1},
        "m:1",
        None,
    ],
)
def test_a_claim_names_one_row_and_nothing_else(raw):
    with pytest.raises(EvidenceRefused):
        parse(raw)


# max-stated


def test_the_persons_own_words_prove_what_they_said(alice, thread):
    said = say(thread, Message.Role.USER, "I live in Lisbon.")
    [proof] = check(alice, stated(said), stated(said))
    assert (proof.message, proof.thread, proof.said) == (said, thread, said.created)


def test_the_answer_to_a_question_card_is_the_persons_word(alice, thread):
    answer = tool_result(thread, tool="ask_user_question", text="Green tea.")
    assert check(alice, stated(answer))
    refuses_event("cite it as max-stated", alice, verified(answer))
    open_card = tool_result(thread, tool="ask_user_question", status="waiting", call_id="toolu_2")
    refuses("not the person's own words", alice, stated(open_card))


def test_no_other_row_is_the_persons_word(alice, thread):
    not_theirs = "not the person's own words"
    _said, answer = exchange(thread, "Where do I live?", "You live in Lisbon.")
    refuses(not_theirs, alice, stated(answer))
    refuses(not_theirs, alice, stated(tool_result(thread, text="The person lives in Lisbon.")))
    refuses(not_theirs, alice, stated(say(thread, Message.Role.EVENT, "Task done.", meta={"source": "task/x"})))
    own = "server's own"
    for source in ("framework", "kernel/overflow"):
        refuses(own, alice, stated(say(thread, Message.Role.USER, "Go on.", meta={"source": source})))
    refuses(own, alice, stated(say(thread, Message.Role.USER, "Hidden.", model_visible=False)))
    for text in ("", "   ", "> You live in Lisbon.", "```\nI live in Lisbon.\n```"):
        refuses(not_theirs, alice, stated(say(thread, Message.Role.USER, text)))


@pytest.mark.parametrize("aspect", ["preference", "decision", "identity"])
def test_questions_alone_decide_nothing(alice, thread, aspect):
    asked = say(thread, Message.Role.USER, "Should we use tabs?")
    asked_again = say(thread, Message.Role.USER, "你觉得用空格好吗？")
    refuses("Questions alone", alice, stated(asked), stated(asked_again), aspect=aspect)
    told = say(thread, Message.Role.USER, "Tabs, from now on.")
    assert len(check(alice, stated(asked), stated(told), aspect=aspect)) == 2


def test_a_question_may_prove_other_things_and_no_decided_tone(alice, thread):
    asked = say(thread, Message.Role.USER, "How do I renew a Portuguese passport?")
    assert check(alice, stated(asked))
    refuses("Questions alone", alice, stated(asked), tone="decision")


# max-accepted


def test_what_the_person_expressly_accepts_is_proved_by_both_rows(alice, thread):
    _said, conclusion = exchange(thread, "Which one?", "I propose PostgreSQL.")
    yes = say(thread, Message.Role.USER, "Agreed, let's do that.")
    [proof] = check(alice, accepted(conclusion, yes), aspect="decision")
    assert (proof.message, proof.accepted_by) == (conclusion, yes)
    _said, conclusion = exchange(thread, "And where?", "I propose the cellar.")
    card = tool_result(thread, tool="ask_user_question", text="Yes")
    assert check(alice, accepted(conclusion, card), aspect="decision")


def test_going_with_something_else_accepts_no_conclusion(alice, thread):
    _said, conclusion = exchange(thread, "Which one?", "I propose PostgreSQL.")
    other = say(thread, Message.Role.USER, "Let's go with MySQL.")
    refuses("names something", alice, accepted(conclusion, other))


def test_only_the_first_answer_to_a_conclusion_accepts_it(alice, thread):
    _said, conclusion = exchange(thread, "What do you know of me?", "You hate cats.")
    _denied, question = exchange(thread, "No, that is wrong.", "Shall I run the tests?")
    yes = say(thread, Message.Role.USER, "Yes.")
    refuses("first answer", alice, accepted(conclusion, yes))
    assert check(alice, accepted(question, yes))
    again = say(thread, Message.Role.USER, "Yes.")
    refuses("first answer", alice, accepted(question, again))
    two = [say(thread, Message.Role.ASSISTANT, words, model="emulator-main") for words in ("Tea.", "Or coffee.")]
    tool_result(thread, text="found", call_id="toolu_7")
    say(thread, Message.Role.USER, "> Tea.")
    agreed = say(thread, Message.Role.USER, "Agreed.")
    refuses("first answer", alice, accepted(two[0], agreed))
    assert check(alice, accepted(two[1], agreed)), "results and quotations are no words of theirs"


def test_what_was_rewound_stands_between_no_conclusion_and_its_answer(alice, thread):
    _said, conclusion = exchange(thread, "Which one?", "I propose PostgreSQL.")
    exchange(thread, "No.", "MySQL, then.")
    rewind(thread, conclusion, acting_user=alice)
    assert check(alice, accepted(conclusion, say(thread, Message.Role.USER, "Yes.")), aspect="decision")


@pytest.mark.parametrize(
    "words",
    ["", "And then?", "ok?", "No.", "Sounds good, but use MySQL.", "不行", "Write the tests.", "Maybe.", "好像不对"],
)
def test_anything_else_is_no_acceptance(alice, thread, words):
    _said, conclusion = exchange(thread, "Which one?", "I propose PostgreSQL.")
    refuses("accept", alice, accepted(conclusion, say(thread, Message.Role.USER, words or " ")), aspect="decision")


def test_an_acceptance_is_later_words_of_the_person_in_the_same_conversation(alice, bob, thread):
    before = say(thread, Message.Role.USER, "Yes.")
    _said, conclusion = exchange(thread, "Which one?", "I propose PostgreSQL.")
    refuses("before the conclusion", alice, accepted(conclusion, before))
    refuses("another conversation", alice, accepted(conclusion, say(thread_of(alice), Message.Role.USER, "Yes.")))
    refuses("no message", alice, accepted(conclusion, say(thread_of(bob), Message.Role.USER, "Yes.")))
    refuses("not the person's own", alice, accepted(conclusion, say(thread, Message.Role.ASSISTANT, "Yes.")))
    refuses("not the person's own", alice, accepted(conclusion, tool_result(thread, text="Yes.")))
    yes = say(thread, Message.Role.USER, "Yes.")
    refuses("no conclusion", alice, accepted(before, yes))
    refuses("no conclusion", alice, accepted(tool_result(thread, call_id="toolu_3"), yes))


# tool-verified and observed-outcome


def test_a_successful_result_proves_an_event(alice, thread):
    result = tool_result(thread)
    assert event(alice, verified(result))
    assert event(alice, observed(result))


def test_a_failed_or_unknown_call_proves_nothing(alice, thread):
    for prove in (verified, observed):
        refuses_event("failed", alice, prove(tool_result(thread, is_error=True, call_id=f"e{prove.__name__}")))
        for status in ("failed", "refused", "interrupted"):
            result = tool_result(thread, status=status, call_id=f"{status}{prove.__name__}")
            refuses_event("failed", alice, prove(result))
        refuses_event("not the result of a tool", alice, prove(say(thread, Message.Role.USER, "It works.")))
        orphan = say(thread, Message.Role.TOOL, "found", blocks=[], tool_call_id="toolu_9")
        refuses_event("no known call", alice, prove(orphan))


@pytest.mark.parametrize("tool", ["search_memory", "message_context_read", "message_history_read", "coldcontext_query"])
def test_recalled_words_prove_nothing(alice, thread, tool):
    recalled = tool_result(thread, tool=tool, text="The person likes tea.")
    refuses_event("repeats old words", alice, verified(recalled))
    refuses_event("repeats old words", alice, observed(recalled))
    refuses("not the person's own words", alice, stated(recalled))


def test_tools_and_outcomes_prove_nothing_about_the_person(alice, thread):
    said, _answer = exchange(thread, "I like tea.")
    result = tool_result(thread, text="The person prefers tea.")
    ended = ended_generation(thread)
    for claim in (verified(result), observed(result), whole(ended)):
        for aspect in Fact.Aspect.values:
            refuses("nothing about the person", alice, claim, aspect=aspect)
    refuses("nothing about the person", alice, stated(said), verified(result))


def test_no_tool_decides(alice, thread):
    ended = tool_result(thread, text="The person decided on tabs.")
    for claim in (verified(ended), observed(ended)):
        refuses("the person's own", alice, claim, kind="event", aspect="", tone="decision")
        assert event(alice, claim, tone="remark")
    told, asked = (say(thread, Message.Role.USER, words) for words in ("Tabs, from now on.", "Tabs or spaces?"))
    refuses("Questions alone", alice, stated(asked), verified(ended), kind="event", aspect="", tone="decision")
    assert event(alice, stated(told), verified(ended), tone="decision")


def test_a_pointer_needs_a_tool_that_only_reads(alice, thread):
    result = tool_result(thread)
    pointer = {"kind": "pointer", "aspect": ""}
    refuses("only reads", alice, verified(result), **pointer)
    with reading_tool():
        assert check(alice, verified(result), **pointer)
        refuses("only reads", alice, observed(result), **pointer)
        refuses("only reads", alice, stated(say(thread, Message.Role.USER, "It is in docs.")), **pointer)
        refuses("failed", alice, verified(tool_result(thread, status="failed", call_id="toolu_2")), **pointer)


def test_a_pointer_is_proved_by_what_holds_its_path(alice, thread):
    listing = tool_result(thread, text="/srv/notes/design.md\nREADME.md\nplans")
    ToolCall.objects.filter(result=listing).update(arguments={"under": ["docs/"]})
    with reading_tool():
        for text in ("The design stands in notes/design.md.", "设计在《docs/README.md》。", "See README.md"):
            assert check(alice, verified(listing), kind="pointer", aspect="", text=text)
        for text in (
            "It is in notes/other.md.",
            "See notes/design.md and notes/b.md",
            "other/README.md",
            "In a drawer",
        ):
            refuses("holds the path", alice, verified(listing), kind="pointer", aspect="", text=text)
    draft = FactDraft(text="The plan is in docs/absent.md.", kind="pointer", aspect="")
    with reading_tool(), pytest.raises(EvidenceRefused, match="holds the path"):
        write_fact(alice.pk, draft, [parse(verified(listing))], writer="steward", thread=thread)


def ended_generation(thread):
    generation = live(thread)
    Generation.objects.filter(pk=generation.pk).update(ended=clock.now(), end_reason="idle")
    Generation.objects.create(thread=thread, owner_id=thread.owner_id, ordinal=generation.ordinal + 1)
    return Generation.objects.get(pk=generation.pk)


def test_a_whole_generation_proves_an_outcome_when_it_has_ended(alice, bob, thread):
    exchange(thread)
    refuses_event("has not ended", alice, whole(live(thread)))
    ended = ended_generation(thread)
    [proof] = event(alice, whole(ended))
    assert (proof.generation, proof.said) == (ended, ended.ended)
    refuses_event("no generation", bob, whole(ended))
    Message.objects.filter(generation=ended).update(left_at_cut=1, left_because="superseded")
    refuses_event("Nothing of its own stands", alice, whole(ended))


def test_a_generation_of_copies_from_another_conversation_proves_no_outcome(alice, thread):
    _said, answer = exchange(thread)
    branch = fork(alice, thread, answer, acting_user=alice)
    alone = ended_generation(branch)
    refuses_event("Nothing of its own stands", alice, whole(alone))
    outcome = fact_row(alice, text="It worked.", kind="event", aspect="")
    outcome.evidence.create(owner=alice, kind="observed-outcome", generation=alone)
    assert standing.is_stale(outcome)
    exchange(branch)
    assert event(alice, whole(ended_generation(branch)))


# Whose rows, and whether they stand


def test_foreign_invented_and_deleted_rows_are_unknown_alike(alice, bob, thread):
    theirs = say(thread_of(bob), Message.Role.USER, "I like tea.")
    refuses("no message", alice, stated(theirs))
    refuses("no message", alice, {"kind": "max-stated", "message_id": theirs.pk + 1_000})
    refuses("no message", alice, {"kind": "max-stated", "message_id": 2**63 - 1})
    refuses_event("no generation", alice, {"kind": "observed-outcome", "generation_id": 2**63 - 1})
    gone = say(thread, Message.Role.USER, "I like tea.")
    Thread.objects.filter(pk=thread.pk).update(deleted=clock.now())
    refuses("no message", alice, stated(gone))


def test_of_one_conversation_means_every_row(alice, thread):
    here, there = (say(where, Message.Role.USER, "I like tea.") for where in (thread, thread_of(alice)))
    assert check(alice, stated(here), thread=thread)
    refuses("another conversation", alice, stated(here), stated(there), thread=thread)


def test_rewound_rows_prove_nothing_new_unless_a_copy_stands(alice, thread):
    first, answer = exchange(thread, "I like tea.", "Noted.")
    later, conclusion = exchange(thread, "I like coffee.", "Coffee it is.")
    yes = say(thread, Message.Role.USER, "Yes.")
    result = tool_result(thread)
    rewind(thread, answer, acting_user=alice)
    refuses("rewound", alice, stated(later))
    refuses("rewound", alice, accepted(conclusion, yes))
    refuses_event("rewound", alice, verified(result))
    assert check(alice, stated(first))
    undo_rewind(thread, acting_user=alice)
    [proof] = check(alice, stated(later))
    copy = Message.objects.get(copied_from=later, thread=thread)
    assert check(alice, stated(copy), stated(later)) == [proof], "a copy stands for its original"
    Message.objects.filter(pk=copy.pk).update(left_at_cut=1, left_because="cold")
    assert check(alice, stated(later)), "going cold takes nothing back"
    Message.objects.filter(pk=copy.pk).update(left_because="superseded")
    refuses("rewound", alice, stated(later))


def test_the_call_behind_a_result_stands_too(alice, thread):
    result = tool_result(thread)
    call = result.answers_call
    Message.objects.filter(pk=call.message_id).update(left_at_cut=1, left_because="superseded")
    refuses_event("call behind", alice, verified(result))


def test_a_branch_keeps_its_own_evidence(alice, thread):
    said, answer = exchange(thread, "I like tea.")
    branch = fork(alice, thread, answer, acting_user=alice)
    copy = Message.objects.get(thread=branch, copied_from=said)
    [proof] = check(alice, stated(copy))
    assert proof.message == copy


def test_a_fact_that_rests_on_rewound_words_alone_is_stale(alice, thread):
    _first, answer = exchange(thread, "Hello.", "Hello.")
    later, conclusion = exchange(thread, "I like tea.", "You like tea best.")
    yes = say(thread, Message.Role.USER, "Yes.")
    fact = remember(later).fact
    accepting = fact_row(alice, text="Accepted.")
    accepting.evidence.create(owner=alice, kind="max-accepted", message=answer, accepted_by=yes)
    both = fact_row(alice, later, "Both.")
    both.evidence.create(owner=alice, kind="observed-outcome", generation=later.generation)
    legacy = fact_row(alice, text="Old.", legacy=True)
    everything = {fact, accepting, both, legacy}
    assert conclusion
    assert fresh() == everything
    rewind(thread, answer, acting_user=alice)
    assert fresh() == {both, legacy}
    assert set(standing.stale_facts(Fact.objects.all())) == {fact, accepting}
    assert standing.is_stale(fact)
    assert not standing.is_stale(both)
    undo_rewind(thread, acting_user=alice)
    assert fresh() == everything


def test_an_outcome_stands_while_anything_of_its_generation_does(alice, thread):
    _said, answer = exchange(thread, "Hello.", "Hello.")
    ended = ended_generation(thread)
    exchange(thread, "Try it.", "It works.")
    later = ended_generation(thread)
    outcomes = []
    for generation in (ended, later):
        outcomes.append(fact_row(alice, text=f"It worked {generation.ordinal}.", kind="event", aspect=""))
        outcomes[-1].evidence.create(owner=alice, kind="observed-outcome", generation=generation)
    first, second = outcomes
    assert fresh() == {first, second}
    rewind(thread, answer, acting_user=alice)
    assert fresh() == {first}
    assert standing.is_stale(second)
    refuses_event("Nothing of its own stands", alice, whole(later))
    undo_rewind(thread, acting_user=alice)
    assert fresh() == {first, second}
    assert event(alice, whole(later))


def test_a_fact_of_a_deleted_conversation_is_stale_until_it_is_back(alice, thread):
    fact = remember(say(thread, Message.Role.USER, "I like tea.")).fact
    outcome = fact_row(alice, text="It worked.", kind="event", aspect="")
    outcome.evidence.create(owner=alice, kind="observed-outcome", generation=live(thread))
    Thread.objects.filter(pk=thread.pk).update(deleted=clock.now())
    assert fresh() == set()
    Thread.objects.filter(pk=thread.pk).update(deleted=None)
    assert fresh() == {fact, outcome}


def fresh():
    found: QuerySet[Fact] = standing.fresh_facts(Fact.objects.all())
    return set(found)
