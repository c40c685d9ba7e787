"""One turn, from the taken lease to the last word: prepare, ask, store, run tools, look at what waits, again.

Read with `preparation.py` (the request), `answers.py` (what came back), `tool_rounds.py` (tools), `ending.py` (safe
points and ends). Everything is written under the lease's token; a turn that lost it stops without a word.
"""

import asyncio
import contextlib
import enum
import logging
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction
from django.utils import translation

from agent import compaction, ending, frames, interruption, leases, meter, notices, opening, renewal
from agent.answers import StoredAnswer, context_full_sentence, opening_too_large_sentence, store_answer
from agent.events import Event, emit, emit_all
from agent.leases import Holding
from agent.models import TaskFrame
from agent.policy import Policy, of_turn
from agent.preparation import (
    CategoryChanged,
    OpeningTooLarge,
    Step,
    choose_models,
    compose,
    prepare,
    present,
    stop_asked,
)
from agent.prompts import STEP_LIMIT_NOTE
from agent.questions import open_questions
from agent.safe_point import append_note, append_notice, waiting_exists
from agent.streaming import DeltaWriter
from agent.thinking import drop_thinking
from agent.tool_rounds import Round
from llm.calls import Answered, Prepared, ask
from llm.catalog import Model
from llm.errors import ErrorKind, ModelError
from llm.provider import StreamEvent, TextDelta, ThinkingDelta, count_tokens
from llm.router import NoModelForCategory
from maxclaw.database_threads import in_database
from threads.models import Generation, Thread
from threads.transcript import LeaseLost, ThreadGone, lock_thread

logger = logging.getLogger("maxclaw.turn")


class CancelReason(enum.Enum):
    """Why a turn's task was cancelled; none of them is a model's doing."""

    STOP = "the user pressed stop"
    LEASE_LOST = "another holder has the thread"
    SHUTDOWN = "the server goes down"


@dataclass
class Begun:
    """A request that is about to go out: the models in order, the first one's attempt, and which tools may run."""

    models: list[Model]
    prepared: Prepared
    policy: Policy


class Turn:
    """Runs one taken thread until its stack of frames is empty or waits for the user."""

    def __init__(self, holding: Holding) -> None:
        self.holding = holding
        self.language = holding.language
        self.task: asyncio.Task[None] | None = None
        self._cancelled_because: CancelReason | None = None
        self.live_tokens: int | None = None
        self._asked: Prepared | None = None  # the newest request, for whoever closes it when the turn is cut short
        self._thinking_was_dropped = False

    def cancel(self, reason: CancelReason) -> None:
        """End the turn from outside, at once: stream or tool is aborted where it stands."""
        if self._cancelled_because is None and self.task is not None:
            self._cancelled_because = reason
            self.task.cancel()

    async def run(self) -> None:
        """Run to the end. Raises nothing but CancelledError at shutdown; every other end is stored and shown."""
        self.task = asyncio.current_task()
        lease = asyncio.create_task(self._renew(), name="lease")
        try:
            # Sentences for the person are in the person's language, wherever the turn runs.
            with translation.override(self.language):
                while await (renewal.run(self.holding) if frames.is_renewal(self.holding.source) else self._step()):
                    pass
        except (LeaseLost, ThreadGone):
            logger.info("A turn of thread %s ended: its lease is not ours any more.", self.holding.thread_id)
        except asyncio.CancelledError:
            await asyncio.shield(self._end_cancelled())
            if self._cancelled_because in (None, CancelReason.SHUTDOWN):
                raise
        except ModelError as error:
            full = error.kind == ErrorKind.CONTEXT_FULL
            reason = TaskFrame.EndReason.CONTEXT_FULL if full else TaskFrame.EndReason.MODEL_ERROR
            with translation.override(self.language):
                sentence = context_full_sentence() if full else error.sentence
            await self._fail(reason, sentence)
        except OpeningTooLarge:
            with translation.override(self.language):
                sentence = opening_too_large_sentence()
            await self._fail(TaskFrame.EndReason.CONTEXT_FULL, sentence)
        except NoModelForCategory as error:
            await self._fail(TaskFrame.EndReason.MODEL_ERROR, str(error))
        except Exception:
            logger.exception("A turn of thread %s failed.", self.holding.thread_id)
            with translation.override(self.language):
                sentence = ending.unexpected_sentence()
            await self._fail(TaskFrame.EndReason.ERROR, sentence)
        finally:
            lease.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await lease

    async def _step(self) -> bool:
        """One request with its round of tools. True when another one follows."""
        step = Step()
        if self.holding.opens is not None:
            step.ahead = await opening.look_ahead(self.holding.thread_id, None)
        begun = await self._begun(step)
        if begun is None:
            # Stop was pressed before anybody listened for its ring.
            self.cancel(CancelReason.STOP)
            await asyncio.sleep(0)
            return True
        self.holding.opens = None
        deltas = DeltaWriter(self.holding.thread_id, self.holding.owner_id, self.holding.token)
        try:
            answered = await self._ask(step, begun, deltas)
        except CategoryChanged:
            await in_database(self._void)
            return True
        except ModelError as error:
            if not error.is_thinking_error or self._thinking_was_dropped:
                raise
            # Once in a turn: a thread that meets a refused thinking block recovers by itself, and says so.
            self._thinking_was_dropped = True
            await in_database(self._drop_thinking, (self._asked or begun.prepared).model)
            return True
        finally:
            await deltas.close()
        stored, goes_on = await in_database(self._store, step, answered)
        if not stored.calls:
            return goes_on
        tools = Round(self.holding, stored.calls, stored.bad_calls, begun.policy, answered.prepared.model)
        result = await tools.run()
        if result.waiting:
            return await in_database(self._wait)
        answered_beside = result.only_refused_proposals and stored.message.text.strip()
        done = begun.policy.last_request or stored.notice or answered_beside
        return await in_database(self._after_tools, stored, bool(done))

    async def _begun(self, step: Step) -> "Begun | None":
        """`_begin`; where the estimate says that the opening does not fit, the model's provider has the last word."""
        fresh = self.holding.fresh
        try:
            return await in_database(self._begin, step)
        except OpeningTooLarge as error:
            await _count_opening(step, error)
        # What was not committed is read and counted again.
        self.holding.opens, self.holding.fresh = None, fresh
        return await in_database(self._begin, step)

    async def _ask(self, step: Step, begun: "Begun", deltas: DeltaWriter) -> Answered:
        async def build(model: Model, attempt: int, max_tokens: int | None) -> Prepared:
            self._asked = begun.prepared
            if attempt > 1:
                try:
                    self._asked = await in_database(prepare, self.holding, step, model, attempt, max_tokens)
                except OpeningTooLarge as error:
                    await _count_opening(step, error)
                    self._asked = await in_database(prepare, self.holding, step, model, attempt, max_tokens)
            return self._asked

        async def on_event(event: StreamEvent) -> None:
            assert step.answer is not None
            if isinstance(event, TextDelta):
                deltas.add(step.answer.pk, text=event.text)
            elif isinstance(event, ThinkingDelta):
                deltas.add(step.answer.pk, thinking=event.text)

        async def on_retry(_error: ModelError, will_retry: bool) -> None:
            if not will_retry:
                return
            await deltas.close()
            await in_database(self._reset, step)

        return await ask(begun.models, build, on_event, on_retry)

    def _begin(self, step: Step) -> "Begun | None":
        """Count the request, choose the models in order, and prepare the first attempt. On the turn's last request the
        model is told so. None when the user asked to stop."""
        with transaction.atomic():
            # Read with the lock: a stop that came while it was waited for rings.
            thread = lock_thread(self.holding.thread_id, self.holding.token, stop_asked=stop_asked(self.holding))
            now = present(self.holding, thread)
            if now.stop_asked:
                return None
            steps = 1 if self.holding.fresh else _count_step(self.holding.frame_id)
            self.holding.fresh = False
            last_request = steps >= settings.STEP_LIMIT
            if last_request:
                append_note(thread, now.generation, STEP_LIMIT_NOTE)
            models = choose_models(thread, now.generation)
            prepared = compose(thread, now, self.holding, step, models[0], 1, None)
            return Begun(models, prepared, of_turn(thread, last_request=last_request))

    def _store(self, step: Step, answered: Answered) -> tuple[StoredAnswer, bool]:
        """Store the answer; without tool calls look at once at what waits, and end the turn if nothing does."""
        assert step.answer is not None
        assert step.generation is not None
        with transaction.atomic():
            thread = self._locked_at_boundary()
            stored = store_answer(
                thread,
                step.generation,
                self.holding.frame_id,
                step.answer,
                answered.prepared,
                answered.answer,
            )
            self.live_tokens = meter.live_tokens(answered.prepared.call) or None
            goes_on, events = False, stored.events
            if not stored.calls:
                goes_on, more = self._boundary(thread, step.generation, stored)
                events = events + more
            emit_all(thread.pk, thread.owner_id, events)
            return stored, goes_on

    def _locked_at_boundary(self) -> Thread:
        """The thread, and whether anything waits or stands suspended; what came just now rings."""
        waiting, suspended = waiting_exists(), frames.suspended_exists()
        return lock_thread(self.holding.thread_id, self.holding.token, has_waiting=waiting, has_suspended=suspended)

    def _after_tools(self, stored: StoredAnswer, done: bool) -> bool:
        with transaction.atomic():
            thread = self._locked_at_boundary()
            generation = Generation.objects.get(pk=self.holding.generation_id)
            if done:
                goes_on, events = self._boundary(thread, generation, stored)
            else:
                _came_in, events = ending.look_at_waiting(thread, generation, self.holding)
                goes_on = True
            emit_all(thread.pk, thread.owner_id, events)
            return goes_on

    def _boundary(self, thread: Thread, generation: Generation, stored: StoredAnswer) -> tuple[bool, list[Event]]:
        came_in, events = ending.look_at_waiting(thread, generation, self.holding)
        if came_in and not stored.notice:
            return True, events
        if came_in:
            events.append(append_notice(thread, generation, stored.notice, stored.end_reason))
            return True, events
        renew = self._full(thread, generation)
        goes_on, more = ending.end_or_go_on(
            thread, generation, self.holding, stored.end_reason, stored.notice, renew=renew
        )
        return goes_on, events + more

    def _full(self, thread: Thread, generation: Generation) -> bool:
        """Whether the context that the answer just completed calls for a new generation."""
        if self.live_tokens is None:
            return False
        try:
            model = choose_models(thread, generation)[0]
        except NoModelForCategory:
            return False
        return compaction.over_threshold(generation, self.live_tokens, model)

    def _reset(self, step: Step) -> None:
        assert step.answer is not None
        with transaction.atomic():
            thread = lock_thread(self.holding.thread_id, self.holding.token)
            emit(thread.pk, thread.owner_id, "reset", {"message": step.answer.pk})

    def _void(self) -> None:
        """Close an answer that will not come: another model is chosen for the next request."""
        with transaction.atomic():
            thread = lock_thread(self.holding.thread_id, self.holding.token)
            emit_all(thread.pk, thread.owner_id, interruption.keep_streamed_answers(thread, keep_wire=False))

    def _drop_thinking(self, model: Model) -> None:
        with transaction.atomic():
            thread = lock_thread(self.holding.thread_id, self.holding.token)
            generation = Generation.objects.get(pk=self.holding.generation_id)
            events = interruption.keep_streamed_answers(thread, keep_wire=False)
            drop_thinking(thread, generation, model)
            code = notices.THINKING_DROPPED
            events.append(append_notice(thread, generation, notices.sentence_of(code), code))
            emit_all(thread.pk, thread.owner_id, events)

    def _wait(self) -> bool:
        """Wait for the user, unless every card of the round was answered while the rest of it ran."""
        with transaction.atomic():
            thread = self._locked_at_boundary()
            goes_on = not open_questions(thread).exists()
            if goes_on:
                generation = Generation.objects.get(pk=self.holding.generation_id)
                _came_in, events = ending.look_at_waiting(thread, generation, self.holding)
            else:
                events = ending.wait_for_user(thread, self.holding)
            emit_all(thread.pk, thread.owner_id, events)
            return goes_on

    async def _fail(self, reason: TaskFrame.EndReason, sentence: str) -> None:
        with contextlib.suppress(LeaseLost, ThreadGone):
            await in_database(ending.fail, self.holding, reason, sentence)

    async def _end_cancelled(self) -> None:
        if self._cancelled_because == CancelReason.LEASE_LOST:
            return
        stopped = self._cancelled_because == CancelReason.STOP
        reason = TaskFrame.EndReason.STOPPED if stopped else TaskFrame.EndReason.INTERRUPTED
        with contextlib.suppress(LeaseLost, ThreadGone), translation.override(self.language):
            await in_database(self._interrupt, reason)

    def _interrupt(self, reason: TaskFrame.EndReason) -> None:
        with transaction.atomic():
            thread = lock_thread(self.holding.thread_id, self.holding.token)
            ending.interrupt_and_settle(thread, reason, asked=self._asked)

    async def _renew(self) -> None:
        """Beside the turn, whatever a tool does. Stop is read again here, in case its ring was lost."""
        while True:
            await asyncio.sleep(settings.LEASE_RENEW_SECONDS)
            try:
                held, stop_asked = await in_database(leases.renew, self.holding)
            except Exception:
                logger.exception("Could not renew the lease of thread %s.", self.holding.thread_id)
                continue
            if not held:
                self.cancel(CancelReason.LEASE_LOST)
            elif stop_asked:
                self.cancel(CancelReason.STOP)


async def _count_opening(step: Step, error: OpeningTooLarge) -> None:
    """Let the model's provider decide whether the opening fits. Raises the error where it does not, or cannot say."""
    counted = await count_tokens(error.model, error.body)
    if counted is None or counted > error.model.context_budget:
        raise error
    step.opening_fits.add(error.model.name)


def _count_step(frame_id: int) -> int:
    """Counted before the work, so that a turn that crashes at each request still reaches its limit."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE agent_taskframe SET steps = steps + 1 WHERE id = %s RETURNING steps",
            [frame_id],
        )
        row = cursor.fetchone()
    if row is None:
        raise ThreadGone(frame_id)
    return row[0]
