"""The steward reads conversations for memory, in the background: each row once, whichever way its generation ended.

It asks a light model what of a page memory should hold. The model writes with tools of the steward's own, may look for
paths with tools that only read, and is done when it answers without a call. Facts are written as it goes, each in a
transaction of its own; that the page was read is one transaction at its end. A crash before it means that the page is
read again, and the same facts add evidence alone.
"""

import asyncio
import logging
from datetime import datetime
from typing import Any

from django.db import transaction

from agent.registry import Tool, ToolContext
from agent.tool_running import run_tool
from llm import budgets, router
from llm.errors import ErrorKind, ModelError
from llm.events import Answer
from llm.ledger import CUT_REASONS
from llm.models import ModelCall
from llm.wire import WireMessage, canonical
from maxclaw import clock
from maxclaw.database_threads import in_database
from maxclaw.text import head
from memory import known, steward_prompt, steward_work
from memory.background_calls import BackgroundCall
from memory.refusals import FactRefused
from memory.steward_tools import tools
from memory.steward_work import Lost, Reading
from threads.transcript import ThreadGone

logger = logging.getLogger("maxclaw.steward")

ROUNDS_MAX = 8
PAGE_SECONDS = 360
# No page is begun after this; what is left waits for the next tick.
DRAIN_SECONDS = 120.0
THREADS_MAX = 100
READ_AT_ONCE = 4
# Of what a tool that only reads found: enough to see that a path is there.
FOUND_MAX_CHARS = 2_000


async def drain(*, thorough: bool = False, seconds: float = DRAIN_SECONDS) -> int:
    """Read what is due, several conversations at once, and begin nothing after `seconds`. Returns how many pages were
    read."""
    deadline = clock.monotonic() + seconds
    waiting = _Waiting(clock.now(), thorough)

    async def work() -> int:
        pages = 0
        while clock.monotonic() < deadline and (thread_id := await waiting.next()):
            while clock.monotonic() < deadline and (read := await read_page(thread_id, waiting.spent)):
                pages += read
        return pages

    return sum(await asyncio.gather(*(work() for _worker in range(READ_AT_ONCE))))


class _Waiting:
    """The threads that are due at `now`, each once, THREADS_MAX of them known at a time. Those that nobody may read now
    are passed like any other, so that they hold up none behind them."""

    def __init__(self, now: datetime, thorough: bool) -> None:
        self.spent: set[int] = set()  # owners whose budget for today is
        self._now, self._thorough = now, thorough
        self._known: list[int] = []
        self._passed: set[int] = set()
        self._looking = asyncio.Lock()

    async def next(self) -> int | None:
        async with self._looking:
            if not self._known:
                self._known = await in_database(self._look)
                self._passed.update(self._known)
            return self._known.pop(0) if self._known else None

    def _look(self) -> list[int]:
        return steward_work.due_threads(
            self._now, THREADS_MAX, thorough=self._thorough, passed=self._passed, spent=self.spent
        )


async def read_page(thread_id: int, spent: set[int] | None = None) -> bool:
    """Read the next page of a thread. Returns whether one was read: False when none is due, somebody else reads the
    thread, the budget is spent (the owner is then added to `spent`, and not asked for again), no model may read it, or
    reading failed."""
    reading = await in_database(steward_work.claim, thread_id)
    if reading is None:
        return False
    if spent is not None and reading.thread.owner_id in spent:
        await in_database(steward_work.give_back, reading.episode)
        return False
    last = _LastCall()
    try:
        async with asyncio.timeout(PAGE_SECONDS):
            await _read(reading, last)
        await in_database(steward_work.finish, reading, last.id)
    except (budgets.BudgetExhausted, router.NoModelForCategory) as error:
        if isinstance(error, budgets.BudgetExhausted):
            await in_database(steward_work.pause, reading.thread.owner_id, error.until)
            if spent is not None:
                spent.add(reading.thread.owner_id)
        await in_database(steward_work.give_back, reading.episode)
        return False
    except (Lost, ThreadGone):
        await in_database(steward_work.give_back, reading.episode)
        return False
    except (ModelError, TimeoutError) as error:
        logger.warning("Generation %s was not read: %s.", reading.generation.pk, type(error).__name__)
        await in_database(steward_work.fail, reading.episode, last.id)
        return False
    except Exception:
        logger.exception("Reading generation %s failed.", reading.generation.pk)
        await in_database(steward_work.fail, reading.episode, last.id)
        return False
    return True


class _LastCall:
    id: int | None = None


async def _read(reading: Reading, last: _LastCall) -> None:
    """Ask until the model is done. Raises ModelError, BudgetExhausted, NoModelForCategory, Lost, ThreadGone."""
    thread = reading.thread
    facts = await known.known(thread, reading.page.words)
    asking = BackgroundCall(
        purpose=ModelCall.Purpose.STEWARD,
        owner_id=thread.owner_id,
        category=thread.category,
        system=steward_prompt.system(),
        tools=[tool.wire() for tool in tools().values()],
        thread_id=thread.pk,
        generation_id=reading.generation.pk,
    )
    messages = [steward_prompt.question(reading.generation, reading.page, reading.before, facts)]
    for _round in range(ROUNDS_MAX):
        answer, call = await asking.ask(messages)
        last.id = call.pk
        results = await _results(reading, answer)
        if not results and answer.stop_reason in CUT_REASONS:
            raise ModelError(ErrorKind.OUTPUT_CAP, "The answer was cut before any call.", rule="cut")
        if not results:
            return
        messages += [
            WireMessage(len(messages) + 1, "assistant", answer.content),
            WireMessage(len(messages) + 2, "user", canonical(results)),
        ]
    # Everything that it wrote stands; a page that never ends is read once like any other.
    logger.warning("The steward was not done with generation %s after %s rounds.", reading.generation.pk, ROUNDS_MAX)


async def _results(reading: Reading, answer: Answer) -> list[dict[str, Any]]:
    """The calls of an answer carried out in order, as blocks that answer them. Raises Lost."""
    context = ToolContext(reading.thread.pk, reading.thread.owner_id, frame_id=0, call_id=0)
    blocks = []
    for block in answer.blocks:
        if block.get("type") != "tool_use":
            continue
        refusal = answer.bad_tool_calls.get(block["id"])
        text, is_error = (refusal, True) if refusal else await _result(reading, context, block)
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": text}
        blocks.append(result | ({"is_error": True} if is_error else {}))
    return blocks


async def _result(reading: Reading, context: ToolContext, block: dict[str, Any]) -> tuple[str, bool]:
    """What one call came to, and whether it was refused. Raises Lost."""
    tool = tools().get(block["name"])
    if tool is None:
        return f"There is no tool {block['name']}.", True
    objection = tool.objection(block["input"])
    if objection:
        return objection, True
    if tool.reads_only:
        found = await run_tool(tool, context, block["input"])
        return head(found.text, FOUND_MAX_CHARS), found.is_error
    return await in_database(_written, reading, context, tool, block["input"])


def _written(reading: Reading, context: ToolContext, tool: Tool, arguments: dict[str, Any]) -> tuple[str, bool]:
    with transaction.atomic():
        try:
            with transaction.atomic():
                output = tool.run(context, arguments)
                said, refused = output.text, False  # type: ignore[union-attr]  # the steward's tools are plain functions
        except FactRefused as refusal:
            said, refused = str(refusal), True
        # Last, so that the conversation is not held while the owner's facts are waited for. What was lost is undone.
        steward_work.hold(reading)
    return said, refused
