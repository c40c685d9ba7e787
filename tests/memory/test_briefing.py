"""What a generation that opens is told of what is remembered: near facts, bounded, frozen, counted as used."""

import json

import pytest
from asgiref.sync import async_to_sync

from agent import opening, renewal
from agent.models import TaskFrame
from llm import embedding
from llm.embedding import EmbeddingError
from llm.embedding_local import LocalBackend
from llm.emulator.client import text, tool_use
from llm.error_table import ErrorKind
from maxclaw.database_threads import in_database
from memory import briefing
from memory.briefing import BRIEFING_MAX_CHARS, HEADING
from memory.models import Fact, FactEvidence, FactUse
from tests.agent.test_summary import ten_sections
from tests.agent.world import running_world
from tests.memory.remembered import remember
from tests.memory.steward_world import import_lines
from tests.threads.records import exchange, live, say, thread_of
from threads import lifecycle
from threads.copying import fork, rewind
from threads.models import Generation, Message

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = {"contains": "ten numbered\nsections"}
BEES = "Alice keeps bees on the roof of her house."


def play(emulator, scenario):
    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    return async_to_sync(run)()


def briefed_with(generation):
    """The briefing's own text in an opening, and the ids of the facts in it."""
    shown = json.loads(Generation.objects.get(pk=generation.pk).opening)[0]["text"]
    _before, heading, after = shown.partition(HEADING)
    lines = after.removesuffix("</framework>").strip().splitlines()
    return heading + "\n" + "\n".join(lines), [int(line.split()[0].removeprefix("f:")) for line in lines]


def open_for(thread, summary=None):
    """Render the opening of a thread's live generation as a turn does; returns the briefing's facts."""
    generation = live(thread)
    found = async_to_sync(briefing.look)(thread.pk, summary)
    return briefing.write(thread, generation, found) if found is not None else None


def test_the_first_message_is_briefed_and_the_next_generation_by_its_summary(emulator, alice, bob):
    bees, skis = remember(alice, BEES), remember(alice, "Alice goes skiing in the Alps every winter.")
    for owner, fields in (
        (bob, {}),
        (alice, {"category": "confidential"}),
        (alice, {"scope": "isolated", "island": thread_of(alice, scope="isolated")}),
        (alice, {"status": "retired"}),
    ):
        remember(owner, f"CANARY {BEES}", **fields)
    waiting = remember(alice, BEES, embedded=False)
    emulator.answer(text(ten_sections(s1="Plan a skiing holiday in the Alps.", s10="- Alps: m:1")), match=ASKED)
    emulator.answer(text("Bees, then."))
    emulator.answer(tool_use("search_memory", {"query": "Does Alice keep bees?"}))
    emulator.answer(text("She does."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "How do I look after the bees on my roof?")
        first = await in_database(live, thread)
        frozen = (await in_database(Generation.objects.get, pk=first.pk)).opening
        late = await in_database(remember, alice, "Alice has three hives of bees.")
        await world.ask(thread, "And do I keep some?")
        assert (await in_database(Generation.objects.get, pk=first.pk)).opening == frozen
        await in_database(renewal.request, alice, thread.channel)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2, opening__isnull=False).exists())
        await world.rest(thread)
        return thread, late

    thread, late = play(emulator, scenario)
    first, second = Generation.objects.filter(thread=thread).order_by("ordinal")
    words, ids = briefed_with(first)
    assert ids == [bees.pk]
    assert f"; remark; fact; in general] {BEES}" in words
    assert skis.pk in briefed_with(second)[1]
    used = set(FactUse.objects.values_list("fact_id", "how", "generation", "message__role"))
    assert {(bees.pk, "briefed", first.pk, None), (skis.pk, "briefed", second.pk, None)} <= used
    assert {(bees.pk, "found", None, "assistant"), (late.pk, "found", None, "assistant")} <= used
    assert waiting.pk in {fact_id for fact_id, how, *_where in used if how == "found"}
    assert "CANARY" not in json.dumps(emulator.bodies())


def test_a_briefing_holds_whole_facts_that_fit_and_nothing_of_what_is_stale(alice):
    thread = thread_of(alice)
    _hello, before = exchange(thread, "Hello.", "Hello!")
    said, _answer = exchange(thread, BEES, "How nice.")
    stale = remember(alice, f"Rewound: {BEES}")
    FactEvidence.objects.create(fact=stale, owner=alice, kind="max-stated", message=said)
    rewind(thread, before, acting_user=alice)
    for number in range(30):
        remember(alice, f"{BEES} {'She keeps bees there. ' * (number % 7)}({number})")
    longest = remember(alice, f"{BEES} " * 60)
    say(thread, Message.Role.USER, "Later words do not count.")
    written = open_for(thread, "Alice's bees on the roof")
    assert BRIEFING_MAX_CHARS * 0.9 < len(written) <= BRIEFING_MAX_CHARS
    lines = written.splitlines()[1:]
    texts = {f"f:{fact.pk}": fact.text for fact in Fact.objects.all()}
    assert all(line.endswith(texts[line.split()[0]]) for line in lines)
    assert not {f"f:{stale.pk}", f"f:{longest.pk}"} & {line.split()[0] for line in lines}
    assert FactUse.objects.filter(how="briefed", generation=live(thread)).count() == len(lines)


def test_what_changed_before_the_lock_is_not_written(alice):
    thread = thread_of(alice)
    say(thread, Message.Role.USER, "How do I look after the bees on my roof?")
    facts = [remember(alice, f"{BEES} ({number})") for number in range(4)]
    found = async_to_sync(briefing.look)(thread.pk, None)
    assert len(found) == 4
    Fact.objects.filter(pk=facts[0].pk).update(status="retired")
    Fact.objects.filter(pk=facts[1].pk).delete()
    Fact.objects.filter(pk=facts[2].pk).update(category="confidential")
    _heading, only = briefing.write(thread, live(thread), found).splitlines()
    assert only.startswith(f"f:{facts[3].pk} ")
    assert list(FactUse.objects.values_list("fact_id", flat=True)) == [facts[3].pk]


@pytest.mark.parametrize("level", [{"scope": "isolated"}, {"category": "confidential"}])
def test_narrowing_a_conversation_leaves_what_was_briefed_elsewhere_and_briefs_no_later_opening(alice, level):
    told, elsewhere = thread_of(alice), thread_of(alice)
    said, _answer = exchange(told, BEES)
    fact = remember(alice, BEES)
    FactEvidence.objects.create(fact=fact, owner=alice, kind="max-stated", message=said)
    say(elsewhere, Message.Role.USER, "How do I look after the bees on my roof?")
    assert f"f:{fact.pk}" in open_for(elsewhere)
    lifecycle.narrow(told, acting_user=alice, **level)
    # What was sent stays where it is, and whoever narrows was told so; forgetting is another wish.
    assert live(elsewhere).ended is None
    assert not TaskFrame.objects.filter(thread=elsewhere).exists()
    assert open_for(elsewhere, "Alice's bees on the roof") is None
    assert f"f:{fact.pk}" in open_for(told, "Alice's bees on the roof")


@pytest.mark.parametrize("how", ["fails", "is slow"])
def test_a_model_that_gives_no_vector_holds_up_no_turn(emulator, alice, monkeypatch, how):
    remember(alice, BEES)
    emulator.answer(text("Well."), times=-1)

    def fail(_self, _texts):
        raise EmbeddingError(ErrorKind.TRANSIENT, "no answer")

    if how == "fails":
        monkeypatch.setattr(LocalBackend, "embed", fail)
    else:
        monkeypatch.setattr(opening, "AHEAD_SECONDS", 0.0)

    async def scenario(world):
        thread = await world.new_thread(alice)
        return await world.ask(thread, "How do I look after the bees on my roof?")

    rows = play(emulator, scenario)
    assert rows[-1].text == "Well."
    assert HEADING not in Generation.objects.get(thread=rows[0].thread_id).opening
    assert not FactUse.objects.exists()


def test_who_has_no_facts_pays_one_statement_and_no_model(alice, monkeypatch, django_assert_num_queries):
    thread = thread_of(alice)
    monkeypatch.setattr(embedding, "able_to_embed", None)
    with django_assert_num_queries(1):
        assert briefing._opens(thread.pk, None) is None


def test_an_imported_history_is_briefed_when_it_goes_on_and_so_is_a_branch_of_it(emulator, alice, settings, tmp_path):
    catalog = tmp_path / "catalog.toml"
    catalog.write_text("[models.emulator-main]\ncontext_budget = 16_000\n")
    settings.MAXCLAW_CATALOG = str(catalog)
    bees = remember(alice, BEES)
    told = [("How do I look after the bees on my roof? " * 40, f"{number}. Gently.") for number in range(100)]
    thread = import_lines(alice, "bees", told)
    assert live(thread).ordinal > 2
    branch = fork(alice, thread, live(thread).messages.order_by("-pk")[0], acting_user=alice)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        for one in (thread, branch):
            await world.ask(one, "And in winter?")

    play(emulator, scenario)
    for one in (thread, branch):
        assert briefed_with(live(one))[1] == [bees.pk]
        assert f'search_memory, channel "{thread.channel}"' in json.loads(live(one).opening)[0]["text"]
