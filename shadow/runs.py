"""One run from taken to over: read what it is made of, ask once, and store what holds.

Read with `material.py` (what is read, hot or cold), `question.py` and `known.py` (what is asked), `asking.py` (the
request), `proposals.py` (the answer) and `cancelling.py` (how it ends when the person speaks). A run starts no other
run, writes no message and never holds a conversation while a model is asked.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from django.db import DatabaseError, transaction

from llm import budgets, router
from llm.errors import ModelError
from llm.events import Answer
from llm.ledger import CUT_REASONS
from maxclaw import clock
from maxclaw.database_threads import in_database
from memory.fact_rows import lock_threads_and_facts
from memory.models import Fact
from memory.refusals import FactRefused
from shadow import asking, attempts, cancelling, known, material, proposals, question, triggers, writing
from shadow.cancelling import INTERRUPTED_BY_MAX
from shadow.material import Material
from shadow.models import ShadowRun
from shadow.proposals import Candidate
from threads.models import Thread

logger = logging.getLogger("maxclaw.shadow")

# So often a run that stores what was proposed makes room for others, and so long.
GIVES_WAY = 50
GIVES_WAY_SECONDS = 0.02
# Why a queued run waits.
NO_BUDGET = "no-budget"
TOO_SLOW, STOPPED = "too-slow", "stopped"
# No model may read the category: the tick sees when one may (`triggers.let_read`); until then this long.
NO_MODEL_FOR = timedelta(days=1)

Status = ShadowRun.Status
Item = TypeVar("Item")


class Failure(StrEnum):
    """Why an answer is no answer to the question."""

    FOREIGN_CALLS = "foreign-calls"
    CUT = "cut"


async def perform(run_id: int, spent: dict[int, datetime] | None = None) -> bool:
    """One queued run, from its taking to its end. Returns whether a model was asked. Raises nothing but CancelledError,
    with which the run is over. Of owners in `spent` nothing is asked until the moment given there; one whose budget
    turns out to be spent is added."""
    spent = {} if spent is None else spent
    try:
        taken = await in_database(_take, run_id, spent)
    except Exception as error:
        logger.exception("Shadow run %s could not be taken.", run_id)
        with contextlib.suppress(DatabaseError):
            await in_database(_not_taken, run_id, type(error).__name__)
        return False
    if taken is None:
        return False
    run, made_of = taken
    try:
        async with asyncio.timeout(attempts.RUN_SECONDS):
            # Before the page's words go to be embedded.
            await in_database(asking.check_level, made_of)
            known_already = await known.rendered(made_of.thread, made_of.page.words, made_of.known_tokens)
            asked = question.text(made_of.generation, made_of.page, known_already)
            answer = await asking.answer_of(run, made_of, asked)
        await in_database(finish, run, made_of, answer)
    except asyncio.CancelledError:
        # Whoever cancelled it wrote so; a server that goes down did not.
        await asyncio.shield(in_database(attempts.end, run, Status.CANCELLED, STOPPED))
        raise
    except asking.RunIsOver:
        await in_database(attempts.end, run, Status.CANCELLED, cancelling.CATEGORY_CHANGED)
        return False
    except budgets.BudgetExhausted as error:
        spent[run.owner_id] = error.until
        await in_database(attempts.put_off, run, error.until, NO_BUDGET)
        return False
    except (ModelError, TimeoutError) as error:
        await in_database(attempts.end, run, Status.FAILED, _short(error))
    except Exception as error:
        logger.exception("Shadow run %s failed.", run_id)
        await in_database(attempts.end, run, Status.FAILED, type(error).__name__)
    return True


def _take(run_id: int, spent: Mapping[int, datetime] | None = None) -> tuple[ShadowRun, Material] | None:
    """Choose what a queued run reads and how, and make it a running one. None: there is nothing to read, nothing to pay
    for it with, no model that may read it, or somebody else took it."""
    run = ShadowRun.objects.filter(pk=run_id, status=Status.QUEUED).first()
    if run is None:
        return None
    if cancelling.words_wait(run.thread_id):
        attempts.drop(run)  # the person goes first
        return None
    if spent and run.owner_id in spent:
        attempts.put_off(run, spent[run.owner_id], NO_BUDGET)  # its request would be built in vain
        return None
    try:
        made_of = material.gather(run.thread_id)
    except router.NoModelForCategory:
        attempts.put_off(run, clock.now() + NO_MODEL_FOR, triggers.NO_MODEL)
        return None
    if made_of is None:
        if not Thread.objects.filter(pk=run.thread_id, state=Thread.State.RUNNING).exists():
            attempts.drop(run)
        return None
    facts = Fact.objects.filter(owner_id=run.owner_id).values_list("pk", "fingerprint")
    made_of = replace(made_of, facts=dict(facts))
    run.generation = made_of.generation
    run.through_seq = made_of.page.through
    run.path = ShadowRun.Path.HOT if made_of.why_cold is None else ShadowRun.Path.COLD
    run.path_reason = made_of.why_cold or ""
    run.model = made_of.model.name
    return (run, made_of) if attempts.take(run) else None


def _not_taken(run_id: int, error: str) -> None:
    """What a queued run was to read cannot be read: a failure like any other, which pauses its generation in time."""
    run = ShadowRun.objects.filter(pk=run_id, status=Status.QUEUED).first()
    if run is not None:
        generation = triggers.next_generations([run.thread_id], clock.now()).get(run.thread_id)
        attempts.fail_queued(run, generation, error)


class _SomebodyWaits(Exception):
    """Somebody wants the conversation or the owner's facts, held while proposals are stored or become facts."""


def finish(run: ShadowRun, made_of: Material, answer: Answer) -> None:
    """Store what was proposed and end the run, in one transaction that reads its state again under a lock. A run that
    was cancelled meanwhile keeps nothing, and so does one whose person spoke and was not acted on yet. Who wants the
    conversation or the owner's facts meanwhile gets them once the proposals are written, or after one fact, and it is
    all done anew behind them."""
    said = proposals.read(answer)
    found = proposals.candidates(said.items)  # what takes no row is judged before the conversation is held
    for left in reversed(range(GIVES_WAY)):
        try:
            _finish(run, made_of, answer, said, found, gives_way=left > 0)
            return
        except _SomebodyWaits:
            # A lock that was let go is not handed over: whoever asks first has it.
            time.sleep(GIVES_WAY_SECONDS)


def _finish(
    run: ShadowRun,
    made_of: Material,
    answer: Answer,
    said: proposals.Read,
    found: Sequence[Candidate],
    *,
    gives_way: bool,
) -> None:
    with transaction.atomic():
        cancelling.queue_to_store(run.owner_id)
        try:
            # The conversation first, as whoever makes it stricter or erases it does. Whoever forgets a fact is waited
            # for, or takes along what is stored here.
            lock_threads_and_facts(run.owner_id, {run.thread_id})
        except FactRefused:
            return
        state = ShadowRun.objects.select_for_update().filter(pk=run.pk).values_list("status", flat=True).first()
        if state != Status.RUNNING:
            attempts.end(run, Status.CANCELLED)
            return
        thread = Thread.objects.select_related("owner").get(pk=run.thread_id)
        if thread.scope != Thread.Scope.OPEN or thread.deleted is not None:
            attempts.end(run, Status.CANCELLED, cancelling.ISOLATED if thread.deleted is None else cancelling.DELETED)
            return
        if cancelling.spoke_since(thread, made_of.seen):
            attempts.end(run, Status.CANCELLED, INTERRUPTED_BY_MAX)
            return
        if answer.stop_reason in CUT_REASONS:
            attempts.end(run, Status.FAILED, Failure.CUT)
            return
        if said.foreign and not said.proposed:
            attempts.end(run, Status.FAILED, Failure.FOREIGN_CALLS)
            return
        stored = proposals.store(run, thread, proposals.without_forgotten(found, run.owner_id, made_of.facts))
        _make_way(run.owner_id, gives_way)
        valid = (proposal for proposal in stored if not proposal.validation_error)
        writing.write_facts(thread, _one_by_one(valid, run.owner_id, gives_way))
        attempts.end(run, Status.COMPLETED)


def _one_by_one(items: Iterable[Item], owner_id: int, gives_way: bool) -> Iterator[Item]:
    """The items; raises _SomebodyWaits when somebody does after one was dealt with."""
    for item in items:
        yield item
        _make_way(owner_id, gives_way)


def _make_way(owner_id: int, gives_way: bool) -> None:
    if gives_way and cancelling.somebody_waits(owner_id):
        raise _SomebodyWaits


def _short(error: Exception) -> str:
    # Not the server's own words: those may repeat the conversation's.
    return error.kind.value if isinstance(error, ModelError) else TOO_SLOW
