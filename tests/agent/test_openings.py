"""An opening that would leave no room for a conversation."""

import pytest

from agent import compaction, meter
from agent.context import STANDING_MAX_CHARS, standing_instructions
from agent.models import TaskFrame
from llm.emulator.client import text
from llm.models import ModelCall
from maxclaw.database_threads import in_database
from tests.agent.renewing import LONG, play
from threads.models import Generation, Thread

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_opening_larger_than_the_budget_gives_one_clear_error_and_no_call(emulator, alice, small_budget):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await in_database(Generation.objects.filter(thread=thread).update, summary_before=LONG * 3)
        await world.ask(thread, "Hello")
        return await world.rows(thread)

    rows = play(emulator, scenario)
    assert [row.role for row in rows] == ["user", "event"]
    assert "larger than the model's budget" in rows[1].text
    assert TaskFrame.objects.get().end_reason == "context-full"
    assert not emulator.requests(path="/v1/messages")
    assert not ModelCall.objects.exists()


def test_an_opening_that_fills_most_of_the_budget_is_not_renewed_after_each_turn(emulator, alice, small_budget):
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        before = LONG[: len(LONG) * 2 // 3]
        await in_database(Generation.objects.filter(thread=thread).update, summary_before=before)
        for number in range(3):
            await world.ask(thread, f"Short {number}. " + "Some words. " * 50)
        return thread

    thread = play(emulator, scenario)
    calls = ModelCall.objects.filter(thread_id=thread.pk)
    assert all(meter.live_tokens(call) > compaction.THRESHOLD_SHARE * 16_000 for call in calls)
    assert calls.count() == 3
    assert Generation.objects.get(thread=thread).ended is None


@pytest.mark.parametrize("counts", [True, False])
def test_where_an_opening_seems_too_large_the_providers_own_count_decides(emulator, alice, settings, tmp_path, counts):
    catalog = tmp_path / "catalog.toml"
    wrong = "token_ratio = 4.0\n"  # the estimate is four times what the provider counts
    catalog.write_text(
        f"[models.emulator-main]\ncontext_budget = 16_000\n{wrong}counts_tokens = {str(counts).lower()}\n"
    )
    settings.MAXCLAW_CATALOG = str(catalog)
    emulator.answer(text("It fits."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await in_database(Generation.objects.filter(thread=thread).update, summary_before="word " * 5_000)
        await world.ask(thread, "Hello")
        return await world.rows(thread)

    rows = play(emulator, scenario)
    assert rows[-1].text == "It fits." if counts else "larger than the model's budget" in rows[-1].text
    assert len(emulator.requests(path="/v1/messages/count_tokens")) == counts
    assert TaskFrame.objects.get().steps == 1
    assert len(rows) == 2


def test_standing_instructions_have_a_bound_and_what_has_no_room_is_named():
    texts = [f"Instruction {number}: " + "use metres " * (400 if number == 7 else 9) for number in range(200)]
    standing = [{"text": text, "message_id": 1_000 + number} for number, text in enumerate(texts)]
    said = standing_instructions(Thread(), Generation(standing=standing))
    *shown, last = said.splitlines()[1:]
    assert len("\n".join(shown)) <= STANDING_MAX_CHARS < len("\n".join([*shown, *shown[:1]]))
    assert shown[-1] == f'- "{texts[-1]}" (m:1199)'
    assert last.startswith(f"({200 - len(shown)} more hold that have no room here, the newest in m:1")
    assert len(last) < 1_000
    few = standing[5:8]
    assert standing_instructions(Thread(), Generation(standing=few)).count("- ") == 3
    assert standing_instructions(Thread(), Generation(standing=[])) is None
