"""A model that fails gives its turn to the palette's next one, and the generation keeps its own."""

import pytest
from asgiref.sync import async_to_sync

from llm.emulator.client import text, thinking, tool_use
from llm.models import ModelCall
from tests.agent.world import running_world
from threads.models import Generation
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)

PALETTE = """
[palettes.emulator]
main = ["emulator-main", "emulator-light-all"]
"""


def test_a_fallback_serves_one_turn_with_its_tools_and_every_request_is_proved(emulator, alice, settings, tmp_path):
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(PALETTE)
    settings.MAXCLAW_CATALOG = str(catalog)
    settings.MODEL_RETRIES = 0
    look = tool_use("message_history_read", {"channel": "nowhere"})
    emulator.answer(thinking("I think."), look, match={"model": "emulator-main"})
    emulator.answer(thinking("And on."), text("First."), match={"model": "emulator-main"})
    emulator.fault("status", status=529, times=-1, match={"model": "emulator-main", "any_contains": "Second"})
    emulator.answer(look, match={"model": "emulator-light-all"})
    emulator.answer(text("Second answer."), match={"model": "emulator-light-all"})

    async def run():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await world.ask(thread, "First")
            before = await world.until(lambda: Generation.objects.get(thread=thread).header_id)
            rows = await world.ask(thread, "Second")
            return thread, before, rows

    thread, before, rows = async_to_sync(run)()
    assert rows[-1].text == "Second answer."
    assert Generation.objects.get(thread=thread).header_id == before
    calls = list(ModelCall.objects.order_by("id").values_list("model", "outcome"))
    main, other = "emulator-main", "emulator-light-all"
    assert calls[:3] == [(main, "complete"), (main, "complete"), (main, "transient")]
    assert [call for call in calls[3:] if call[1] == "complete"] == [(other, "complete")] * 2
    # No thinking goes to a model that did not make it.
    assert "I think." not in str(emulator.bodies()[-1])
    report = verify_thread(thread)
    assert report.calls == report.proved == len(calls)
