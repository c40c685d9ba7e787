"""What becomes of what a shadow proposes: each item by itself, with three checks."""

import json

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts import erasing
from agent import registry
from agent.policy import SHADOW_TOOL
from llm.emulator.client import raw_tool_use
from llm.estimates import estimate_tokens
from llm.events import Answer
from memory import fact_embedding
from memory import known as known_facts
from memory.models import Fact
from shadow import admin_review, cursors, known, proposals, question, tools
from shadow.models import ShadowFactProposal
from tests.memory.facts import fact_row, remember
from tests.raw_sql import run as execute
from tests.shadow.playing import ASKED, item, proposes, shadow
from tests.shadow.records import proposal_row, run_row
from tests.threads.records import copied, exchange, say, thread_of
from threads import lifecycle
from threads.models import Message, Thread
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def said(alice):
    return say(thread_of(alice), "user", "I prefer tea to coffee.")


def stored(said, *items):
    """Errors of the items, in order, as stored for a run of the message's thread."""
    thread = said.thread
    with transaction.atomic():
        rows = proposals.store(run_row(thread), thread, proposals.candidates(items))
    return [row.validation_error for row in rows]


def test_a_malformed_item_rejects_none_of_its_siblings(said):
    wrong_kind = item(said.pk, kind="recipe")
    unknown = item(said.pk, colour="green")
    nothing = item(said.pk, evidence=[])
    errors = stored(said, item(said.pk), wrong_kind, unknown, nothing, "no object", {}, None)
    assert errors[0] == ""
    assert "kind" in errors[1]
    assert "colour" in errors[2]
    assert all(errors[3:])
    assert ShadowFactProposal.objects.get(position=1).raw == wrong_kind
    assert ShadowFactProposal.objects.get(position=6).raw is None
    assert ShadowFactProposal.objects.count() == 7


ODD = [
    None,
    True,
    0,
    1e308,
    "text",
    [],
    [[None]],
    {"text": None},
    {"text": "a\x00b", "kind": "event"},
    {"a": {"b": {"c": [[[[[[[[]]]]]]]]}}},
    *({"evidence": [{"kind": "max-stated", "message_id": odd}]} for odd in (10**30, -1, True, 1.5, "m:", "\u200b", [])),
    float("inf"),
    {"text": float("nan")},
]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_no_odd_item_takes_others_along(said, odd):
    good = item(said.pk)
    mixed = good | odd if isinstance(odd, dict) else odd
    errors = stored(said, good, mixed, item(said.pk, "Prefers tea in the morning."))
    assert [bool(error) for error in errors][::2] == [False, False]
    assert ShadowFactProposal.objects.count() == 3


def test_items_beyond_the_limit_are_told_as_one_that_is_rejected():
    call = {"type": "tool_use", "id": "toolu_1", "name": SHADOW_TOOL, "input": {"facts": [{}] * 53}}
    read = proposals.read(Answer("[]", [call], "", "", "tool_use", None, ""))
    assert len(read.items) == tools.ITEMS_MAX + 1
    assert registry.get(SHADOW_TOOL).parameters["properties"]["facts"]["maxItems"] == tools.ITEMS_MAX
    assert proposals.candidates(read.items)[-1].error.startswith("Not as the tool says: '3 more items")


def test_many_items_are_judged_and_written_by_as_many_statements_as_few(alice, said):
    """While they are, the conversation is held."""
    elsewhere = say(thread_of(alice), "user", "I prefer milk.")
    answer = say(said.thread, "assistant", "Tea it is?")
    yes = say(said.thread, "user", "Yes.")
    mine = fact_row(alice, said)
    accepted = {"kind": "max-accepted", "message_id": answer.pk, "accepted_by": yes.pk}

    def kinds(number):
        text = f"Prefers tea number {number}."
        return [
            item(said.pk, text),
            item(said.pk, text, evidence=[accepted]),
            item(said.pk, text, replaces=f"f:{mine.pk}"),
            item(elsewhere.pk, text),
            item(10**12, text),
            item(said.pk, text, colour="green"),
        ]

    def statements(items):
        run, found = run_row(said.thread), proposals.candidates(items)
        with CaptureQueriesContext(connection) as asked, transaction.atomic():
            proposals.store(run, said.thread, found)
        return len(asked)

    few = statements(kinds(1))
    assert statements([one for number in range(8) for one in kinds(number)]) <= few <= 20
    assert ShadowFactProposal.objects.filter(validation_error="").count() == 3 * 9


def test_what_the_database_alone_refuses_falls_alone(said):
    """A rule that the first two checks know nothing of."""
    execute(
        "ALTER TABLE shadow_shadowfactproposal ADD CONSTRAINT no_milk CHECK (validation_error <> '' OR text !~ 'milk')"
    )
    errors = stored(said, item(said.pk), item(said.pk, "Prefers milk."), item(said.pk, "Prefers water."))
    assert errors == ["", "The database refused it: IntegrityError.", ""]
    rows = ShadowFactProposal.objects.order_by("position")
    assert [row.evidence.get().message for row in rows] == [said] * 3


@pytest.mark.django_db(transaction=True)
def test_what_is_no_sound_json_in_an_item_rejects_none_of_its_siblings(emulator, alice):
    cursors.initialize()
    thread = thread_of(alice)
    good = json.dumps(item(exchange(thread, "I prefer tea.")[0].pk))
    doubtful = ['"tone": "decision"', '"text": 1e999', '"text": NaN', f'"text": {"9" * 5000}']
    doubtful += [f'"applies_to": {"[" * 200}{"]" * 200}', '"text": "a\\u0000b"', '"colour": "\\ud83d"']
    items = [good, *(f"{good[:-1]}, {field}}}" for field in doubtful)]
    whole = '{"facts": [' + ", ".join(items) + "]}"
    for raw in (whole, '{"facts": [' + good, '{"facts": [], "facts": [' + good + "]}"):
        emulator.answer(raw_tool_use(SHADOW_TOOL, [raw]), match=ASKED)
        exchange(thread, "I prefer tea.")
        run = shadow(thread)
        assert run.status == "completed", run.error
        errors = list(run.proposals.order_by("position").values_list("validation_error", flat=True))
        if raw is whole:
            assert len(errors) == len(items)
            assert errors[0] == ""
            assert all(errors[1:])
        else:
            assert len(errors) == 1
            assert errors[0]


@pytest.mark.django_db(transaction=True)
def test_no_odd_item_or_list_fails_a_run(emulator, alice):
    """As they arrive on the wire, each between two items that hold; what no parser takes in a call of its own."""
    cursors.initialize()
    thread = thread_of(alice)
    good = json.dumps(item(exchange(thread, "I prefer tea.")[0].pk))

    def saying(*texts):
        return [f'{good[:-1]}, "text": {text}}}' for text in texts]

    def citing(*ids):
        return [f'{{"text": "Tea.", "evidence": [{{"kind": "max-stated", "message_id": {one}}}]}}' for one in ids]

    odd = ["null", "true", "1e308", '"text"', "[" * 60 + "]" * 60, '"a\\u0000b"', *saying("null", "1.5")]
    odd += citing("true", "1.5", "null", '"\\u200b"', '"m:\\u200b"', '"\\u0000"', "9" * 30)
    unsound = ["9" * 4000, '"\\ud83d"', *saying('"a\\u0000b"', '"\\ud83d"'), *citing("9" * 4000, '"\\ud83d"')]
    wholes = []
    for listed in (odd, unsound):
        between = "".join(f", {one}, {good}" for one in listed)
        wholes.append((f'{{"facts": [{good}{between}]}}', [False, *[True, False] * len(listed)]))
    wholes += [(whole, [True]) for whole in ('{"facts": null}', '{"facts": "tea"}', "{}", f'{{"facts": {good}}}')]
    for raw, rejected in wholes:
        emulator.answer(raw_tool_use(SHADOW_TOOL, [raw]), match=ASKED)
        exchange(thread, "I prefer tea.")
        run = shadow(thread)
        assert run.status == "completed", (raw[:300], run.error)
        errors = run.proposals.order_by("position").values_list("validation_error", flat=True)
        assert [bool(error) for error in errors] == rejected, (raw[:300], errors)


def test_evidence_is_of_the_same_conversation_of_the_same_person_and_there(alice, bob, said):
    elsewhere = say(thread_of(alice), "user", "I prefer tea.")
    foreign = say(thread_of(bob), "user", "I prefer tea.")
    branched = copied(elsewhere, said.thread)
    answer = say(said.thread, "assistant", "You prefer tea.")
    deleted = say(thread_of(alice), "user", "I prefer tea.")
    Thread.objects.filter(pk=deleted.thread_id).update(deleted=deleted.created)
    erased = say(said.thread, "user", "I prefer tea.").pk
    Message.objects.filter(pk=erased).delete()
    rewound = say(said.thread, "user", "I prefer tea.")
    Message.objects.filter(pk=rewound.pk).update(left_at_cut=1, left_because="superseded")
    accepted = {"kind": "max-accepted", "message_id": answer.pk, "accepted_by": elsewhere.pk}
    outcome = {"kind": "observed-outcome", "generation_id": elsewhere.generation_id}
    errors = stored(
        said,
        item(elsewhere.pk),
        item(foreign.pk),
        item(branched.pk),
        item(answer.pk),
        item(deleted.pk),
        item(10**12),
        item(said.pk, evidence=[{"kind": "max-stated", "message_id": said.pk}, accepted]),
        item(said.pk, kind="event", evidence=[outcome]),
        item(erased),
        item(rewound.pk),
    )
    assert all(errors), errors
    assert "another conversation" in errors[0]
    assert "copied from another conversation" in errors[2]
    # What is another's, what was deleted, and what was invented or erased: none of them is there.
    for place, message in ((1, foreign.pk), (4, deleted.pk), (5, 10**12), (8, erased)):
        assert errors[place] == f"There is no message {message}."
        assert not ShadowFactProposal.objects.get(position=place).evidence.exists()
    assert "was rewound" in errors[9]
    kept = ShadowFactProposal.objects.get(position=0)
    assert [row.message for row in kept.evidence.all()] == [elsewhere]
    assert not Fact.objects.exists()
    # Of a conversation that was deleted since, nothing holds.
    Thread.objects.filter(pk=said.thread_id).update(deleted=said.created)
    assert stored(said, item(said.pk)) == [f"There is no message {said.pk}."]


def test_what_is_replaced_is_what_the_conversation_may_see(alice, bob, said):
    mine = fact_row(alice, said)
    labelled = fact_row(alice, said, category="work")
    foreign = fact_row(bob, say(thread_of(bob), "user", "Tea."))
    earlier = proposal_row(said, "Prefers coffee.")
    other = proposal_row(say(thread_of(alice), "user", "Coffee."), "Prefers coffee.")
    refused = [f"f:{labelled.pk}", f"f:{foreign.pk}", f"p:{other.pk}", "f:", str(mine.pk)]
    errors = stored(
        said,
        item(said.pk, replaces=f"f:{mine.pk}"),
        item(said.pk, replaces=f"p:{earlier.pk}"),
        *(item(said.pk, replaces=value) for value in refused),
    )
    assert errors[:2] == ["", ""]
    assert all(errors[2:])
    first, second = ShadowFactProposal.objects.exclude(pk__in=[earlier.pk, other.pk]).order_by("position")[:2]
    assert (first.replaces_fact, second.replaces_proposal) == (mine, earlier)
    assert known.standing_proposals(said.thread).filter(pk=earlier.pk).count() == 0


def test_a_secret_is_kept_in_no_column(said):
    key = "sk-ant-api03-" + "a1B2c3D4" * 8
    assert "Secrets are not remembered" in stored(said, item(said.pk, f"The key is {key}."))[0]
    row = ShadowFactProposal.objects.values().get()
    assert key not in str(row)


@pytest.mark.django_db(transaction=True)
def test_the_question_ends_with_what_is_known_to_this_conversation(emulator, alice):
    cursors.initialize()
    thread, elsewhere = thread_of(alice), thread_of(alice)
    labelled = thread_of(alice, category="work")
    said, _answer = exchange(thread, "I prefer green tea in the morning.")
    own = remember(said, "Prefers green tea.").fact
    near = remember(exchange(elsewhere, "I drink green tea.")[0], "Drinks green tea each morning.").fact
    hidden = remember(exchange(labelled, "Green tea at work.")[0], "Green tea in the morning at work.").fact
    fact_embedding.embed_facts()
    earlier = proposal_row(said, "Prefers sencha.", run=run_row(thread, through_seq=0))
    proposal_row(said, "Prefers milk.", run=earlier.run, position=1, validation_error="no evidence")
    proposes(emulator, item(said.pk, "Prefers green tea to coffee.", replaces=f"f:{own.pk}"))
    before = verify_thread(thread).proved
    run = shadow(thread)
    assert run.status == "completed", run.error
    asked = emulator.bodies()[-1]["messages"][-1]["content"][-1]["text"]
    _before, heading, after = asked.partition(known.HEADING)
    assert heading
    assert [line.partition(" ")[0] for line in after.strip().splitlines()] == [
        f"f:{own.pk}",
        f"f:{near.pk}",
        f"p:{earlier.pk}",
    ]
    assert f"f:{hidden.pk}" not in asked
    # Only where it stands keeps it away: where it is seen, it is among the facts nearest to these words.
    nearest = known_facts.nearest(labelled, said.text)
    assert {hit.fact_id for hit in nearest} == {own.pk, near.pk, hidden.pk}
    # Where the model's window has little room left, the first lines stay.
    size = estimate_tokens(known.HEADING + after.split("f:")[1]) + 5
    for most, lines in ((size, 1), (20, 0)):
        fitting = async_to_sync(known.rendered)(thread, said.text, most)
        assert fitting.count("\n") == lines and (f"\nf:{own.pk}" in fitting) is bool(lines)
    assert question.instruction() in asked
    proposal = ShadowFactProposal.objects.latest("pk")
    assert (proposal.validation_error, proposal.replaces_fact_id) == ("", own.pk)
    # A comparison is all that it is so far.
    assert Fact.objects.get(pk=own.pk).status == "active"
    assert Fact.objects.count() == 3
    assert verify_thread(thread).proved == before


def test_what_is_forgotten_is_proposed_no_more_and_a_conversation_takes_its_proposals_along(alice, said):
    fact = fact_row(alice, said, "Prefers tea.")
    kept = proposal_row(say(said.thread, "user", "Milk."), "Prefers milk.")
    proposal_row(said, "prefers TEA")
    proposal_row(said, "A friend of tea, in other words.")
    fact_row(alice, said, "Prefers cups.")
    too = proposal_row(said, "Prefers cups.")
    proposal_row(said, "Prefers sencha.", replaces_fact=fact)
    rejected = {"validation_error": "There is no message.", "names_fact": fact.pk}
    proposal_row(say(thread_of(alice), "user", "Coffee."), "No longer takes tea, drinks coffee.", **rejected)
    same = proposal_row(say(thread_of(alice), "user", "Tea, please."), "Prefers  tea.")
    proposal_row(say(same.thread, "user", "Cocoa."), "Prefers cocoa.", replaces_proposal=same)
    proposal_row(say(thread_of(alice), "user", "Tea."), "Prefers tea.", validation_error="no evidence")
    with transaction.atomic():
        erasing.forget_fact(fact)
    assert list(ShadowFactProposal.objects.order_by("pk")) == [kept, too], "another fact says the same as the last"
    lifecycle.narrow(said.thread, acting_user=alice, category="work")
    assert set(ShadowFactProposal.objects.values_list("category", flat=True)) == {"work"}
    exported = [record["record"] for record in erasing.export_user(alice)]
    assert {"shadow_proposal", "shadow_run"} <= set(exported)
    erasing.erase_thread(said.thread)
    assert not ShadowFactProposal.objects.exists()
    assert Message.objects.filter(thread=said.thread_id).count() == 0


@pytest.mark.parametrize(
    "spelled", ["f:{}", " f:{}", "f:{}\n", "\tf:{}\u3000", "f:0{}", "f:" + "0" * 30 + "{}", "full-width", "long"]
)
@pytest.mark.parametrize("tag", ["f", "p"])
def test_what_was_rejected_goes_with_what_it_says_it_replaces_however_that_is_spelled(alice, said, spelled, tag):
    fact = fact_row(alice, said, "Prefers tea.")
    pk = fact.pk if tag == "f" else proposal_row(said, "Prefers tea.").pk
    width = str.maketrans("0123456789", "０１２３４５６７８９")
    named = {"full-width": f"f:{pk}".translate(width), "long": f"f:{pk}"}.get(spelled, spelled.format(pk))
    elsewhere = say(thread_of(alice), "user", "Coffee.")
    invented, text = Message.objects.latest("pk").pk + 1_000, "No longer takes it, drinks coffee."
    if spelled == "long":
        text += " really" * proposals.RAW_MAX_CHARS
    wanted = item(invented, text, replaces=named.replace("f", tag))
    [error, _other] = stored(elsewhere, wanted, item(invented, "Likes rain.", replaces=f"{tag}:{pk}1"))
    assert error
    found = proposals.candidates([wanted])
    with transaction.atomic():
        erasing.forget_fact(fact)
    assert [row.text for row in ShadowFactProposal.objects.all()] == ["Likes rain."]
    # An answer that comes afterwards too.
    before = {fact.pk: fact.fingerprint}
    fact.delete()
    left = proposals.without_forgotten(found, alice.pk, before)
    assert len(left) == (tag == "p")


@pytest.mark.parametrize("level", [{"scope": "isolated"}, {"category": "work"}])
def test_what_was_rejected_shows_no_words_of_a_conversation_that_became_stricter(alice, charlie, said, level):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    elsewhere = say(thread_of(alice), "user", "I prefer milk.")
    assert stored(said, item(elsewhere.pk)) != [""]
    proposal = ShadowFactProposal.objects.get()
    assert len(admin_review.read_proposal(charlie, proposal.pk)["proofs"]) == 1
    evidence = proposal.evidence.get()
    lifecycle.narrow(elsewhere.thread, acting_user=alice, **level)
    assert not proposal.evidence.exists()
    evidence.pk = None
    evidence.save()
    assert admin_review.read_proposal(charlie, proposal.pk)["proofs"] == []
