"""The steward over two conversations from the exports of ChatGPT and Claude, whose contexts end as they do in use:
full, resting, asked for, archived."""

import pytest
from asgiref.sync import async_to_sync

from agent import compaction, renewal, speaking
from llm.emulator.client import text
from llm.models import ModelCall
from maxclaw.database_threads import in_database
from memory.models import Digest, Episode, Fact, FactEvidence
from tests.agent.test_summary import ten_sections
from tests.agent.world import running_world
from tests.memory.steward_world import digested_ids, drain, import_exports, readable_ids, rests, texts
from threads import lifecycle
from threads.models import Generation, Message

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = {"contains": "ten numbered\nsections"}
FULL = "I prefer roses. " + "Some words about the garden and its many roses. " * 1_200


def test_what_is_said_before_and_after_each_renewal_is_read_once(emulator, alice, settings, tmp_path, monkeypatch):
    catalog = tmp_path / "catalog.toml"
    catalog.write_text("[models.emulator-main]\ncontext_budget = 16_000\n")
    settings.MAXCLAW_CATALOG, settings.MESSAGE_MAX_CHARS = str(catalog), 10**6
    monkeypatch.setattr(speaking, "MESSAGE_BUDGET_SHARE", 1.0)
    emulator.answer(text(ten_sections(s1="- The garden")), match=ASKED, times=-1)
    emulator.answer(text("Noted."), match={"model": "emulator-main"}, times=-1)
    garden, boat, branch = import_exports(alice, tmp_path)

    async def scenario(world):
        async def renewed(ordinal):
            await world.until(lambda: Generation.objects.filter(thread=garden, ordinal=ordinal).exists())
            await world.rest(garden)

        await world.ask(garden, "I prefer tea in the morning.")
        await in_database(renewal.request, alice, garden.channel)
        await renewed(2)
        await world.ask(garden, FULL)
        await renewed(3)
        await world.ask(garden, "I prefer lemons.")
        assert await compaction.compact_idle(garden.pk)
        await world.ask(garden, "I prefer quiet days.")

    async def run():
        async with running_world(emulator) as world:
            await scenario(world)

    async_to_sync(run)()
    lifecycle.end(boat)
    rests(branch)
    assert drain() == 5, "a page for each context that ended, and one for the branch's own answer"
    # Archiving ends no context, because what is archived can come back, but it is read like one that has ended.
    lifecycle.archive(garden, acting_user=alice)
    reasons = Generation.objects.filter(thread__in=[garden, boat]).order_by("thread", "ordinal")
    assert list(reasons.values_list("end_reason", flat=True)) == ["manual", "threshold", "idle", "", "closed"]
    garden.refresh_from_db()
    assert garden.status == "archived"
    assert drain() == 1, "the last context, in which words were said just now"
    assert digested_ids() == readable_ids(garden, boat, branch)
    said = Message.objects.filter(thread__in=[garden, boat], role="user", copied_from__isnull=True)
    assert set(said.values_list("pk", flat=True)) <= set(digested_ids())
    assert texts(alice) == [
        "The user said: I live in Lisbon.",
        "The user said: I prefer lemons.",
        "The user said: I prefer quiet days.",
        "The user said: I prefer roses.",
        "The user said: I prefer tea in the morning.",
        "The user said: We decided to paint the fence 2023-05-07, because it was grey.",
        "The user said: 我住在杭州。",
        "The user said: 我喜欢安静的早晨。",
    ]
    tables = (Fact, FactEvidence, Episode, Digest, ModelCall)
    before = [list(table.objects.order_by("pk").values()) for table in tables]
    assert drain(thorough=True) == 0
    assert [list(table.objects.order_by("pk").values()) for table in tables] == before, "no call, no change"
