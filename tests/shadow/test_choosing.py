"""Hot or cold: a table over what is known of the prefix, and the same from real records."""

import json
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate

import pytest

from agent.conversations import choose_model
from agent.policy import SHADOW_TOOL
from agent.preparation import choose_models
from llm import catalog
from llm.emulator.client import text
from llm.estimates import estimate_tokens
from llm.models import ModelCall
from llm.wire import canonical, remember_header
from maxclaw import clock
from memory import backlog
from shadow import cursors, material, room, triggers
from shadow.choosing import PrefixFacts, Reason, why_cold
from shadow.models import ShadowRun
from tests.shadow.playing import LONG, play, shadow
from tests.threads.records import exchange, live, thread_of
from threads import lifecycle
from threads.models import Message, Thread

NOW = clock.now()
WARM = PrefixFacts(
    answer_complete=True,
    at_present_cut=True,
    expires=NOW + timedelta(seconds=1),
    cached_tokens=1_000,
    model_unchanged=True,
    model_may_read=True,
    has_tool=True,
    page_fits=True,
    digest_holds=True,
)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"answer_complete": False}, Reason.INCOMPLETE_ANSWER),
        ({"at_present_cut": False}, Reason.EARLIER_CUT),
        ({"expires": NOW}, Reason.EXPIRED),
        ({"cached_tokens": 0}, Reason.NOTHING_CACHED),
        ({"cached_tokens": None}, Reason.NOTHING_CACHED),
        ({"has_tool": False}, Reason.TOOL_MISSING),
        ({"model_unchanged": False}, Reason.MODEL_CHANGED),
        ({"model_may_read": False}, Reason.CATEGORY_CHANGED),
        ({"page_fits": False}, Reason.NO_ROOM),
        ({"digest_holds": False}, Reason.DIGEST_DIFFERS),
    ],
)
def test_hot_needs_everything_and_cold_says_what_was_missing(changed, reason):
    assert why_cold(replace(WARM, **changed), NOW) == reason


def test_without_a_request_there_is_nothing_to_follow():
    assert why_cold(None, NOW) == Reason.NO_PREFIX


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("which", "has"),
    [
        ({}, True),
        ({"category": "work"}, True),
        ({"kind": "main"}, False),
        ({"kind": "task"}, False),
        ({"scope": "isolated"}, False),
        ({"deleted": NOW}, False),
    ],
)
def test_only_open_web_conversations_have_shadows(alice, which, has):
    """Whatever the trigger, and whatever the tick finds."""
    cursors.initialize()
    thread = thread_of(alice, scope=which.get("scope", "open"), category=which.get("category", ""))
    if which.get("kind") == "main":
        thread = Thread.objects.get(owner=alice, kind="main")
    exchange(thread)
    Thread.objects.filter(pk=thread.pk).update(**{name: which[name] for name in which if name in ("kind", "deleted")})
    triggers.trigger(thread.pk, "waiting-max")
    assert thread.shadow_runs.exists() is has
    thread.shadow_runs.all().delete()
    with clock.moved(3600):
        cursors.initialize()
        assert triggers.queue_idle(clock.now(), thorough=True) == int(has)
        material_there = material.gather(thread.pk) is not None
    assert material_there is has


@pytest.fixture
def warm(emulator, alice, db):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        return thread

    return play(emulator, scenario)


@pytest.mark.django_db(transaction=True)
def test_the_records_say_the_same(warm, settings, tmp_path, caplog):
    def reason():
        made_of = material.gather(warm.pk)
        return made_of.why_cold

    generation = warm.generations.get()
    call = ModelCall.objects.get(generation_id=generation.pk)
    calls = ModelCall.objects.filter(pk=call.pk)
    assert reason() is None
    # A generation that ended keeps its own warm prefix.
    lifecycle.end(warm)
    assert warm.generations.get().ended
    assert reason() is None
    # A header of before the tool was there stays with its generation.
    said = json.loads(call.header.text)
    tools = [one for one in said["tools"] if one["name"] != SHADOW_TOOL]
    calls.update(header=remember_header(canonical(said | {"tools": tools})))
    assert reason() == Reason.TOOL_MISSING
    calls.update(header=call.header)
    # The user picked another model; the catalog thinks otherwise than the header.
    Thread.objects.filter(pk=warm.pk).update(model="emulator-light")
    assert reason() == Reason.MODEL_CHANGED
    Thread.objects.filter(pk=warm.pk).update(model="")
    for changed in ('thinking = "off"', 'effort = "high"'):
        file = tmp_path / f"{changed[:6]}.toml"
        file.write_text(f"[models.emulator-main]\n{changed}\n")
        settings.MAXCLAW_CATALOG = str(file)
        assert reason() == Reason.MODEL_CHANGED, changed
    settings.MAXCLAW_CATALOG = ""
    # And the other way round: what was sent was sent with another effort, or other thinking.
    for changed in ({"output_config": {"effort": "high"}}, {"thinking": {"type": "enabled", "budget_tokens": 2_000}}):
        calls.update(header=remember_header(canonical(said | changed)))
        assert reason() == Reason.MODEL_CHANGED, changed
    calls.update(header=call.header)
    # A category that the conversation's own model may not read, and one that it may.
    Thread.objects.filter(pk=warm.pk).update(category="personal")
    assert reason() is None
    file = tmp_path / "other.toml"
    file.write_text("[models.emulator-main]\nreads = []\n")
    settings.MAXCLAW_CATALOG = str(file)
    assert reason() == Reason.CATEGORY_CHANGED
    Thread.objects.filter(pk=warm.pk).update(category="")
    settings.MAXCLAW_CATALOG = ""
    calls.update(cut=-1)
    assert reason() == Reason.EARLIER_CUT
    calls.update(cut=call.cut, body_sha256="0" * 64)
    assert reason() == Reason.DIGEST_DIFFERS
    assert "cannot be proved" in caplog.text
    calls.update(body_sha256=call.body_sha256, answer_message_id=1)
    assert reason() == Reason.INCOMPLETE_ANSWER
    calls.delete()
    assert reason() == Reason.NO_PREFIX


@pytest.mark.django_db(transaction=True)
def test_prefix_page_and_answer_fit_into_the_models_window_or_it_is_asked_cold(warm, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "ratio", lambda _model: 1.0)
    for number in range(12):
        exchange(warm, f"Number {number}. {LONG}", "Noted.")
    call = ModelCall.objects.get(generation_id=live(warm).pk)
    answer = Message.objects.get(pk=call.answer_message_id)
    whole = material.gather(warm.pk)
    assert whole.why_cold is None and whole.page.tokens > 10_000
    sums = list(accumulate(estimate_tokens(backlog.rendered(row)) for row in whole.page.rows))
    assert whole.page.tokens == sums[-1]
    # What lies beside the page: the window less what is left of it.
    big = whole.model.context_window - room.behind(call, answer, whole.generation, whole.model)

    def gathered(left):
        file = tmp_path / f"{left}.toml"
        file.write_text(f"[models.emulator-main]\ncontext_window = {big + left}\ncontext_budget = 1_000\n")
        settings.MAXCLAW_CATALOG = str(file)
        return material.gather(warm.pk)

    table = [
        (sums[0] - 1, Reason.NO_ROOM, len(sums)),
        (sums[0], None, 1),
        (sums[9] - 1, None, 9),
        (sums[9], None, 10),
        (sums[-1], None, len(sums)),
    ]
    for page, reason, rows in table:
        made_of = gathered(page + room.KNOWN_TOKENS)
        assert (made_of.why_cold, len(made_of.page.rows)) == (reason, rows)
        if reason is None:
            assert made_of.known_tokens == page + room.KNOWN_TOKENS - made_of.page.tokens
    # A light model's window too, and what memory knows takes no more than what is left.
    file = tmp_path / "light.toml"
    window = "context_window = 12_000\noutput_limit = 6_000\ncontext_budget = 1_000\n"
    file.write_text(f"[models.emulator-light]\n{window}")
    settings.MAXCLAW_CATALOG = str(file)
    ModelCall.objects.all().delete()
    cold = material.gather(warm.pk)
    assert (cold.why_cold, cold.model.name) == (Reason.NO_PREFIX, "emulator-light")
    assert 0 < len(cold.page.rows) < len(whole.page.rows)
    assert cold.page.tokens + cold.known_tokens == room.alone(cold.generation, cold.model)


@pytest.mark.django_db(transaction=True)
def test_a_pick_that_was_taken_back_stays_hot_because_the_next_turn_keeps_its_model(emulator, alice):
    async def scenario(world):
        thread = await world.new_thread(alice, model="emulator-light")
        await world.ask(thread, LONG)
        return thread

    thread = play(emulator, scenario)
    choose_model(alice, thread.channel, "")
    made_of = material.gather(thread.pk)
    next_turn = choose_models(Thread.objects.get(pk=thread.pk), live(thread))[0]
    assert (made_of.why_cold, made_of.model.name, next_turn.name) == (None, "emulator-light", "emulator-light")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("lifetime", "seconds"), [("5m", 300), ("1h", 3600)])
def test_a_prefix_is_warm_for_its_lifetime_from_the_start_of_the_newest_request_that_read_it(
    emulator, alice, settings, tmp_path, lifetime, seconds
):
    file = tmp_path / "catalog.toml"
    file.write_text(f'[models.emulator-main]\nsystem_lifetime = "1h"\nmessage_lifetime = "{lifetime}"\n')
    settings.MAXCLAW_CATALOG = str(file)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        return thread

    thread = play(emulator, scenario)

    def reason(call, after):
        with clock.moved((call.started - clock.now()).total_seconds() + after):
            return material.gather(thread.pk).why_cold

    call = ModelCall.objects.get(generation_id=live(thread).pk)
    # However long its answer took.
    ModelCall.objects.filter(pk=call.pk).update(total_ms=100_000)
    assert (reason(call, seconds - 1), reason(call, seconds + 1)) == (None, Reason.EXPIRED)
    with clock.moved(200):
        emulator.move_clock(200)
        run = shadow(thread)
    assert run.path == "hot"
    run.delete()  # the same rows once more
    read = ModelCall.objects.get(pk=run.call)
    assert read.started >= call.started + timedelta(seconds=200)
    assert (reason(read, seconds - 1), reason(read, seconds + 1)) == (None, Reason.EXPIRED)


@pytest.mark.django_db(transaction=True)
def test_a_request_of_which_the_provider_cached_nothing_is_no_prefix(emulator, alice):
    emulator.register_model("emulator-main", cache_minimum_tokens=10**6, adaptive_thinking=True)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        return thread

    assert material.gather(play(emulator, scenario).pk).why_cold == Reason.NOTHING_CACHED


@pytest.mark.django_db(transaction=True)
def test_an_interrupted_turn_is_no_prefix(emulator, alice):
    emulator.answer(text("word " * 200), pace="20:20")

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, LONG)
        frame = await world.running_frame(thread)
        await world.until(lambda: ModelCall.objects.filter(thread_id=thread.pk).exists())
        await world.stop(thread, frame)
        await world.rest(thread)
        return thread

    thread = play(emulator, scenario)
    assert material.gather(thread.pk).why_cold == Reason.INCOMPLETE_ANSWER


@pytest.mark.django_db(transaction=True)
def test_an_interrupted_turn_leaves_the_prefix_of_the_one_before(emulator, alice):
    emulator.answer(text("Well."))
    emulator.answer(text("word " * 200), pace="20:20")

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        complete = await world.until(lambda: ModelCall.objects.filter(thread_id=thread.pk, outcome="complete").first())
        await world.say(thread, "And now?")
        frame = await world.running_frame(thread)
        await world.until(lambda: ModelCall.objects.filter(thread_id=thread.pk).count() == 2)
        await world.stop(thread, frame)
        await world.rest(thread)
        return thread, complete

    thread, complete = play(emulator, scenario)
    made_of = material.gather(thread.pk)
    assert (made_of.why_cold, made_of.call.pk) == (None, complete.pk)


@pytest.mark.django_db(transaction=True)
def test_a_category_goes_to_a_light_model_tagged_for_it_and_strict_threads_to_none(emulator, alice, settings, tmp_path):
    async def scenario(world):
        labelled = await world.new_thread(alice, category="personal")
        isolated = await world.new_thread(alice, scope="isolated")
        for thread in (labelled, isolated):
            await world.ask(thread, "I am allergic to nuts.")
        return labelled, isolated

    labelled, isolated = play(emulator, scenario)
    assert shadow(isolated) is None
    light = [model.name for model in catalog.palette(catalog.LIGHT)]
    assert light == ["emulator-light", "emulator-light-all"]  # one that may not read it stands first
    with clock.moved(3600):
        run = shadow(labelled)
    assert (run.status, run.path, run.model) == ("completed", "cold", "emulator-light-all")
    assert {call.model for call in ModelCall.objects.filter(purpose="shadow")} == {"emulator-light-all"}
    lifecycle.narrow(labelled, acting_user=alice, scope="isolated")
    assert not ShadowRun.objects.filter(status="queued").exists()
    assert cursors.readable_threads().filter(pk__in=[labelled.pk, isolated.pk]).count() == 0
