"""The writer switch: while shadows write memory, what holds becomes facts with the run that proposed it."""

import pytest

from memory.models import Fact
from shadow.models import ShadowFactProposal
from tests.memory.facts import fact_row
from tests.shadow.playing import item, play, proposes, shadow
from threads.models import Message

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_holds_becomes_a_fact_only_while_shadows_write(emulator, alice, settings):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "I prefer tea. I moved to Porto.")
        return thread

    thread = play(emulator, scenario)
    said = Message.objects.get(thread=thread, role="user")
    lives, stale = fact_row(alice, said, "Lives in Lisbon."), fact_row(alice, said, "Drinks milk.", status="retired")
    proposes(emulator, item(said.pk, "Plays chess."))
    assert shadow(thread).status == "completed"
    assert Fact.objects.count() == 2 and ShadowFactProposal.objects.get().fact is None

    settings.MEMORY_WRITER = "shadow"
    thread.shadow_runs.all().delete()  # the same rows once more
    proposes(
        emulator,
        item(said.pk),
        item(said.pk, "Lives in Porto.", replaces=f"f:{lives.pk}"),
        item(999_999_999, "Was invented."),
        item(said.pk, "Lives in Lisbon."),
    )
    assert shadow(thread).status == "completed"
    tea, porto, invented, again = ShadowFactProposal.objects.order_by("pk")
    assert (tea.fact.writer, tea.fact.text, tea.fact.evidence.get().message) == ("shadow", "Prefers tea.", said)
    lives.refresh_from_db()
    assert (lives.status, lives.superseded_by, porto.fact.text) == ("superseded", porto.fact, "Lives in Porto.")
    assert invented.fact is None and invented.validation_error
    assert again.fact is not None and again.fact.writer == "shadow"
    assert Fact.objects.filter(writer="shadow").count() == 3
    stale.refresh_from_db()
    assert stale.status == "retired"


def test_what_memory_refuses_when_it_is_written_is_kept_with_the_reason(emulator, alice, settings):
    settings.MEMORY_WRITER = "shadow"

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "I prefer tea.")
        return thread

    thread = play(emulator, scenario)
    said = Message.objects.get(thread=thread, role="user")
    old = fact_row(alice, said, "Prefers coffee.")
    replacing = {"replaces": f"f:{old.pk}"}
    proposes(emulator, item(said.pk, **replacing), item(said.pk, "Prefers green tea.", **replacing))
    assert shadow(thread).status == "completed"
    first, second = ShadowFactProposal.objects.order_by("pk")
    assert first.fact is not None and first.validation_error == ""
    assert second.fact is None and "superseded already" in second.validation_error
