"""What a shadow leaves alone: everything but runs, proposals and the ledger, however its run ends."""

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django_q.models import OrmQ

from agent.models import TurnEvent
from llm import budgets
from llm.emulator.client import text
from llm.models import ModelCall, RequestHeader
from maxclaw import clock
from memory.models import Digest, Episode, Fact, FactEvidence
from shadow import asking, cancelling, question, runs, triggers
from shadow.models import ShadowRun
from tests.memory.facts import fact_row
from tests.shadow.playing import ASKED, LONG, item, play, proposes, shadow
from tests.threads.records import live
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)

# What runs themselves leave behind, and the queue.
OWN = {"shadow", "django_q"}
LEDGER = {ModelCall, RequestHeader}


def everything_else():
    """Every row of every table but those."""
    models = [model for model in apps.get_models() if model._meta.app_label not in OWN and model not in LEDGER]
    return {model: list(model.objects.order_by("pk").values()) for model in models}


def test_a_run_starts_no_other_writes_no_message_and_changes_no_fact_and_no_digest(emulator, alice):
    """However it ends, hot or cold: while the steward writes memory, runs and proposals are all that there is of it."""

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, f"I live in Porto. {LONG}")
        return thread

    thread = play(emulator, scenario)
    said = Message.objects.get(thread=thread, role="user")
    fact = fact_row(alice, said, "Lives in Lisbon.")
    episode = Episode.objects.create(owner=alice, thread=thread, generation=live(thread), through_seq=said.pk)
    Digest.objects.create(message=said, owner=alice, episode=episode)
    before = everything_else()
    assert all(before[model] for model in (Message, Generation, Thread, Fact, FactEvidence, Digest, TurnEvent))
    # One that would replace a fact, one that repeats it, one that does not hold.
    items = [
        item(said.pk, "Lives in Porto.", replaces=f"f:{fact.pk}"),
        item(said.pk, "Lives in Lisbon."),
        item(10**9),
    ]

    def ran(status, path, seconds=0):
        """What one run more comes to; the same rows are read each time."""
        ShadowRun.objects.all().delete()
        queued, spent = OrmQ.objects.count(), budgets.spent_today(alice).tokens
        with clock.moved(seconds):
            emulator.move_clock(seconds)
            run = shadow(thread)
        assert (run.status, run.path) == (status, path)
        assert ShadowRun.objects.count() == 1 and OrmQ.objects.count() == queued + 1  # the trigger's own
        assert budgets.spent_today(alice).tokens > spent
        assert everything_else() == before
        return [bool(error) for error in run.proposals.order_by("position").values_list("validation_error", flat=True)]

    for path, seconds in (("hot", 0), ("cold", 3600)):
        proposes(emulator, *items)
        assert ran("completed", path, seconds) == [False, False, True]
        emulator.answer(text("I propose to"), stop_reason="max_tokens", match=ASKED)
        assert ran("failed", path, seconds) == []
    # One that is cancelled while it is asked.
    ShadowRun.objects.all().delete()
    triggers.trigger(thread.pk, "waiting-max")
    run, made_of = runs._take(ShadowRun.objects.get().pk)
    proposes(emulator, *items)
    answer = async_to_sync(asking.answer_of)(run, made_of, question.text(made_of.generation, made_of.page, ""))
    cancelling.cancel(thread.pk)
    runs.finish(run, made_of, answer)
    assert [(one.status, one.proposals.count()) for one in ShadowRun.objects.all()] == [("cancelled", 0)]
    assert everything_else() == before
