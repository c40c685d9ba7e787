"""A model that fails gives its turn to the palette's next one, and the generation keeps its own."""

import pytest
from asgiref.sync import async_to_sync

from llm import catalog, router
from llm.emulator.client import text, thinking, tool_use
from llm.error_table import ErrorKind
from llm.errors import ModelError
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
    file = tmp_path / "catalog.toml"
    file.write_text(PALETTE)
    settings.MAXCLAW_CATALOG = str(file)
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


def test_a_conversation_that_begins_with_a_fallback_goes_on_with_the_model_that_it_stood_in_for(
    emulator, alice, settings, tmp_path
):
    file = tmp_path / "catalog.toml"
    file.write_text(PALETTE)
    settings.MAXCLAW_CATALOG = str(file)
    emulator.answer(text("From the other."), match={"model": "emulator-light-all"})
    emulator.answer(text("From the first."), times=2, match={"model": "emulator-main"})
    router.report(catalog.get("emulator-main"), ModelError(ErrorKind.TRANSIENT, "resting", status=529))

    async def run():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            first = await world.ask(thread, "First")
            router.forget()
            await world.ask(thread, "Second")
            return thread, first, await world.ask(thread, "Third")

    thread, first, rows = async_to_sync(run)()
    assert [row.text for row in first] == ["First", "From the other."]
    assert [row.text for row in rows[2:]] == ["Second", "From the first.", "Third", "From the first."]
    assert list(ModelCall.objects.order_by("id").values_list("model", flat=True)) == [
        "emulator-light-all",
        "emulator-main",
        "emulator-main",
    ]
    report = verify_thread(thread)
    assert report.calls == report.proved == 3
