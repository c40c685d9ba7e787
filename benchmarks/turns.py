"""What a turn costs beside its model.

A turn is measured in process, with the runner and the bell as the ASGI process has them, from the call of
`agent.sending.send` until its thread has settled; the model is the emulator, a process of its own. Beside each turn
the same request, byte for byte, is made by the bare SDK. Columns:

- turn, bare: milliseconds of a whole turn and of a bare SDK call;
- framework: a turn without what it waited for the model's stream;
- cpu: milliseconds of processor time of this process a turn, the SDK's part included;
- ratio: median turn over median bare call;
- queries: SQL statements of a turn, of every thread of the process, from sending until the runner rests again. Delta
  batches are not counted, nor are BEGIN, COMMIT and savepoints.

Threads have 10, 1,000 and 10,000 rows; turns run one after the other or on 50 threads at once; the model answers at
once, or 400 ms later. A first turn is that of a new conversation, whose title, header and opening it stores; of whom
something is remembered, it is briefed too.
No page is open: what a page reads to follow a turn is asked by its own socket, and not by the turn.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, ""):
    # As a script: the project's folder is looked into first, not this one, whose names are no apps.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.harness import arguments, finish, percentile, surroundings, table

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

    from accounts.models import User
    from agent.runner import Runner
    from llm.emulator.client import EmulatorControl
    from threads.models import Thread

ROWS = (10, 1_000, 10_000)
FIRST_TURN = 0
CONCURRENCY = 50
FIRST_TOKEN_MS = 400
TYPICAL_ROWS = 1_000  # the length of thread that the figures are of, where they name none
TURNS_PER_THREAD = 4  # more would make a thread of 10 rows a longer one
WARM_UPS = 1
ANSWER = "The tide turns twice a day, because the moon pulls at the sea and the earth turns beneath it. " * 3
# Room for 10,000 rows, so that nothing is pruned.
WINDOW_TOKENS = 1_000_000
CATALOG = f"""
[models.emulator-main]
context_window = {WINDOW_TOKENS}
context_budget = {WINDOW_TOKENS * 8 // 10}
"""
TURN_SECONDS = 60.0
WORDS = "And what about the moon?"
# As many as a briefing has room for, and more.
REMEMBERED = [f"She asks what the moon is about, for the {number}. time." for number in range(1, 41)]


@dataclass(frozen=True)
class Cell:
    """One combination to measure, and how many turns each of its threads takes."""

    rows: int
    threads: int
    paced: bool
    turns: int
    facts: bool = False  # whether anything is remembered of the person

    @property
    def name(self) -> str:
        if self.rows == FIRST_TURN:
            return f"first turn{', with facts' if self.facts else ''}, 1 at once, instant"
        return f"{self.rows:,} rows, {self.threads} at once, {'400 ms' if self.paced else 'instant'}"


@dataclass
class Measured:
    """Milliseconds of each turn and bare call of a cell; statements and processor milliseconds a turn."""

    turn: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    framework: list[float] = field(default_factory=list)
    statements: float = 0.0
    cpu: float = 0.0

    @property
    def ratio(self) -> float:
        return percentile(self.turn, 0.5) / percentile(self.bare, 0.5)


def cells(*, quick: bool, smoke: bool) -> list[Cell]:
    """What is measured, the quick and the smoke selection being shorter."""
    if smoke:
        first = [Cell(FIRST_TURN, 1, False, 2, facts) for facts in (False, True)]
        return [*first, Cell(10, 1, False, 2), Cell(10, 3, False, 1)]
    sequential = 4 if quick else 12
    found = [Cell(FIRST_TURN, 1, False, sequential, facts) for facts in (False, True)]
    for paced in (False, True):
        for rows in ROWS:
            found.append(Cell(rows, 1, paced, sequential))
            if quick and rows != (ROWS[0] if paced else TYPICAL_ROWS):
                continue
            found.append(Cell(rows, CONCURRENCY, paced, 1 if quick or rows == ROWS[-1] else TURNS_PER_THREAD))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--statements", action="store_true", help="print the SQL statements of one turn")
    options = parser.parse_args(argv)
    with surroundings(durable=options.durable, catalog=CATALOG) as emulator:
        asyncio.run(_measure(emulator, cells(quick=options.quick, smoke=options.smoke), options.statements))


async def _measure(emulator: "EmulatorControl", plan: Sequence[Cell], show_statements: bool) -> None:
    from agent.bell import Bell
    from agent.runner import Runner
    from maxclaw.garbage import freeze_start_up

    emulator.register_model("emulator-main", context_window_tokens=WINDOW_TOKENS, adaptive_thinking=True)
    emulator.answer(ANSWER, times=-1)
    await Bell.shared().start()
    runner = Runner()
    await runner.start()
    bench = Bench(emulator, runner)
    await bench.prepare(plan)
    freeze_start_up()
    results = {cell: await bench.cell(cell) for cell in plan}
    if show_statements:
        await bench.print_statements()
    context_ms = await bench.context_ms(max(cell.rows for cell in plan))
    await runner.stop()
    await Bell.shared().stop()
    _report(results, context_ms)


class Bench:
    """Threads to measure on, and the measuring."""

    def __init__(self, emulator: "EmulatorControl", runner: "Runner") -> None:
        from benchmarks.instruments import StatementCounter, Waits

        self._emulator = emulator
        self._runner = runner
        self._statements = StatementCounter()
        self._waits = Waits()
        self._client: AsyncAnthropic = _client(emulator.base_url)
        self._threads: dict[int, list[Thread]] = {}
        self._keys = count(1)

    async def prepare(self, plan: Sequence[Cell]) -> None:
        """Make the threads that the plan needs, each with one turn done: its opening and header are frozen then."""
        from maxclaw.database_threads import in_database

        for rows in sorted({cell.rows for cell in plan} - {FIRST_TURN}):
            needed = max(cell.threads for cell in plan if cell.rows == rows)
            self._threads[rows] = await in_database(_make_threads, rows, needed)
        await in_database(_analyze)

    async def cell(self, cell: Cell) -> Measured:
        """Measure one combination."""
        from maxclaw.database_threads import in_database

        self._emulator.set_pace({"first_token_ms": FIRST_TOKEN_MS if cell.paced else 0, "tokens_per_second": None})
        measured = Measured()
        for number in range(WARM_UPS + cell.turns):
            threads = await self._ready(cell)
            counted, spent = self._statements.count, time.process_time()
            wave = await self._wave(threads)
            if number < WARM_UPS:
                continue
            measured.statements += self._statements.count - counted
            measured.cpu += (time.process_time() - spent) * 1000
            measured.turn += [turn for turn, _model in wave]
            measured.framework += [turn - model for turn, model in wave]
            bodies = [self._waits.model_time(thread.pk).body for thread in threads]
            measured.bare += await asyncio.gather(*(self._bare(body) for body in bodies))
        if cell.facts:
            await in_database(_check_briefed)
        measured.statements /= cell.turns * cell.threads
        measured.cpu /= cell.turns * cell.threads
        return measured

    async def _ready(self, cell: Cell) -> list["Thread"]:
        from maxclaw.database_threads import in_database

        if cell.rows == FIRST_TURN:
            return await in_database(_make_threads, cell.rows, cell.threads, cell.facts)
        return self._threads[cell.rows][: cell.threads]

    async def _wave(self, threads: Sequence["Thread"]) -> list[tuple[float, float]]:
        wave = await asyncio.gather(*(self._turn(thread) for thread in threads))
        while self._runner._driving:
            await asyncio.sleep(0.001)
        return wave

    async def _turn(self, thread: "Thread") -> tuple[float, float]:
        """Milliseconds of one whole turn, and of its waiting for the model."""
        from agent.sending import send
        from maxclaw.database_threads import in_database

        settled = self._waits.expect(thread.pk)
        key = f"benchmark-{next(self._keys)}"
        began = time.perf_counter()
        await in_database(send, thread.owner, thread.channel, WORDS, client_key=key)
        moment = await asyncio.wait_for(settled, TURN_SECONDS)
        return (moment - began) * 1000, self._waits.model_time(thread.pk).seconds * 1000

    async def _bare(self, body: bytes) -> float:
        """Milliseconds of the same request by the SDK alone."""
        from anthropic import AsyncStream

        began = time.perf_counter()
        stream = await self._client.post(
            "/v1/messages",
            content=body,
            cast_to=object,
            options={"headers": {"Content-Type": "application/json"}},
            stream=True,
            stream_cls=AsyncStream[object],
        )
        async for _event in stream:
            pass
        return (time.perf_counter() - began) * 1000

    async def context_ms(self, rows: int) -> float:
        """What sending the context of the longest threads needs alone: reading its rows, writing and hashing the
        body. Median milliseconds."""
        from maxclaw.database_threads import in_database

        return await in_database(_context_ms, self._threads[rows][0])

    async def print_statements(self) -> None:
        first = [Cell(FIRST_TURN, 1, False, 1, facts) for facts in (False, True)]
        for cell in (*first, Cell(min(self._threads), 1, False, 1)):
            threads = await self._ready(cell)
            self._statements.kept = []
            await self._wave(threads)
            print(f"\nStatements of one turn: {cell.name}\n")
            for number, statement in enumerate(self._statements.kept, start=1):
                print(f"{number:3} {' '.join(statement.text.split())[:150]}")
            self._statements.kept = None


def _client(base_url: str) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    http_client = DefaultAsyncHttpxClient(trust_env=False, base_url=base_url)
    return AsyncAnthropic(api_key="none", base_url=base_url, max_retries=0, http_client=http_client)


def _make_threads(rows: int, number: int, facts: bool = False) -> list["Thread"]:
    """Threads of so many short rows, words and answers in turn, of a person with or without facts."""
    from django.db import transaction

    from threads.lifecycle import create_thread
    from threads.models import Generation, Message, Thread
    from threads.transcript import NewMessage, append_many, live_generation, text_block

    owner = _remembered_owner() if facts else _owner("owner")
    lines = []
    for place in range(rows):
        words = f"Row {place}."
        role = Message.Role.ASSISTANT if place % 2 else Message.Role.USER
        lines.append(NewMessage(role=role, text=words, blocks=[text_block(words)]))
    threads: list[Thread] = []
    for place in range(number):
        with transaction.atomic():
            thread = create_thread(owner, title=f"{rows} rows, {place}" if rows else "")
            if not rows:
                pass
            elif not threads:
                append_many(thread, live_generation(thread), lines)
            else:
                _copy_rows(Generation.objects.get(thread=threads[0]), live_generation(thread))
            threads.append(thread)
    return threads


def _copy_rows(source: Any, target: Any) -> None:
    """The rows of one generation again, by the database alone: fifty times 10,000 rows."""
    from django.db import connection

    from threads.models import Message

    columns = [str(column.column) for column in Message._meta.concrete_fields if column.name not in ("id", "thread")]
    copied = ", ".join("%(generation)s" if column == "generation_id" else column for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Message._meta.db_table} (thread_id, {', '.join(columns)}) SELECT %(thread)s, {copied} "
            f"FROM {Message._meta.db_table} WHERE generation_id = %(source)s ORDER BY id",
            {"thread": target.thread_id, "generation": target.pk, "source": source.pk},
        )


def _owner(name: str) -> "User":
    from accounts.models import User

    return User.objects.filter(username=name).first() or User.objects.create_user(name)


def _remembered_owner() -> "User":
    from memory.fact_embedding import embed_facts
    from memory.models import Fact

    owner = _owner("remembered")
    if not Fact.objects.filter(owner=owner).exists():
        imported = {"kind": Fact.Kind.ABOUT_USER, "aspect": Fact.Aspect.FACT, "writer": Fact.Writer.IMPORT}
        Fact.objects.bulk_create(
            Fact(owner=owner, text=text, fingerprint=text, legacy=True, **imported) for text in REMEMBERED
        )
        embed_facts(owner.pk)
    return owner


def _check_briefed() -> None:
    from memory.models import FactUse

    assert FactUse.objects.exists(), "a briefing that says nothing was measured"


def _analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _context_ms(thread: "Thread") -> float:
    from llm.catalog import get
    from llm.wire import body_bytes, body_sha256, turn_anchors
    from threads.request import rows_of_call, wire_messages
    from threads.transcript import live_generation

    generation = live_generation(thread)
    model = get("emulator-main")
    assert generation.header is not None
    spent = []
    for _number in range(5):
        began = time.perf_counter()
        rows = rows_of_call(generation.pk, 2**63 - 1, generation.cut)
        messages = wire_messages(generation.opening, rows, model_name=model.name, thinking_from=0)
        anchors = turn_anchors(model, None, messages[-1].last_id)
        body_sha256(body_bytes(generation.header.text, messages, anchors, 1_000))
        spent.append((time.perf_counter() - began) * 1000)
    return percentile(spent, 0.5)


def _report(results: dict[Cell, Measured], context_ms: float) -> None:
    rows = [
        [
            cell.name,
            len(found.turn),
            *(percentile(found.turn, share) for share in (0.5, 0.95)),
            *(percentile(found.bare, share) for share in (0.5, 0.95)),
            *(percentile(found.framework, share) for share in (0.5, 0.95)),
            found.cpu,
            found.ratio,
            found.statements,
        ]
        for cell, found in results.items()
    ]
    heads = ["", "turns", "turn p50", "p95", "bare p50", "p95", "framework p50", "p95", "cpu", "ratio", "queries"]
    table("Turns: milliseconds", heads, rows)
    finish("turns", _figures(results, context_ms))


def _figures(results: dict[Cell, Measured], context_ms: float) -> dict[str, Any]:
    """The figures of the last line; null where the cell was left out."""
    by_cell = {(cell.rows, cell.threads, cell.paced): found for cell, found in results.items()}
    alone = {rows: by_cell.get((rows, 1, False)) for rows in ROWS}
    framework = {rows: percentile(found.framework, 0.5) if found else None for rows, found in alone.items()}
    shortest, longest = framework[ROWS[0]], framework[ROWS[-1]]
    together = by_cell.get((TYPICAL_ROWS, CONCURRENCY, False))
    together_paced = by_cell.get((ROWS[0], CONCURRENCY, True))
    paced = by_cell.get((TYPICAL_ROWS, 1, True))
    return {
        # Alone: a turn that waits long for others renews its lease, which is a query of the clock's.
        "queries_per_turn": max(found.statements for cell, found in results.items() if cell.threads == 1),
        **{f"overhead_ratio_{rows}_rows": found.ratio if found else None for rows, found in alone.items()},
        "paced_ratio": paced.ratio if paced else None,
        "framework_ms_p50": framework[TYPICAL_ROWS],
        "framework_ms_p95_50_threads": percentile(together.framework, 0.95) if together else None,
        "framework_ms_p95_50_threads_paced": percentile(together_paced.framework, 0.95) if together_paced else None,
        **{f"framework_ms_p50_{rows}_rows": value for rows, value in framework.items()},
        **{f"cpu_ms_{rows}_rows": found.cpu if found else None for rows, found in alone.items()},
        "context_ms_10000_rows": context_ms if longest is not None else None,
        "grows_with_rows_ms": longest - shortest - context_ms if longest is not None and shortest is not None else None,
    }


if __name__ == "__main__":
    main()
