"""What memory costs by steward, cold and hot shadow, and how fast a shadow comes and goes.

Conversations are imported and read by the steward. In another account all but their last messages are imported and
read by cold shadows; then each goes on with its own last messages, what one side says as turns and what the other side
says as their answers, and after some of them a hot shadow reads these. The model is the emulator, priced like a strong
model where conversations go on and like a light one where they are read cold. Columns:

- messages, calls, tokens: what was read, by how many calls, and the tokens of whole prompts and answers;
- cached: the share of the prompts that came from the cache;
- per 1,000: dollars at list price for 1,000 messages read;
- trigger to proposal: seconds from the trigger to the stored answer.

Of a hot run, `hot_read_share` is what came from the cache of the request that it follows, and
`hot_over_cold_same_model` its price over that of the same tokens without a cache; both are the worst of the runs whose
prefix has 30,000 tokens and whose page is at most a twentieth of it. `cancel_ms_p95` is from a person's words to the
end of the request that they interrupt, which waits for its answer in another process. `first_token_ratio_under_load` is
the first token of turns while 1,000 conversations become due at once, at a tick 20 minutes after they came to rest,
over the same without them.

With --engine URL any Messages server is asked instead: time to the first token of a hot question, which follows a
prefix just sent, against the same question over a prefix that it never saw.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, ""):
    # As a script: the project's folder is looked into first, not this one, whose names are no apps.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import corpora, shadow_load
from benchmarks.harness import arguments, finish, percentile, surroundings, table

if TYPE_CHECKING:
    from llm.emulator.client import EmulatorControl
    from llm.models import ModelCall
    from shadow.models import ShadowRun
    from threads.models import Thread

PREFIX_MIN_TOKENS = 30_000
PAGE_SHARE_MAX = 1 / 20
# What one hot run reads: so many messages and their answers.
EXCHANGES_A_RUN = 6
WINDOW_TOKENS = 400_000
STRONG = "{ input = 4, output = 20, cache_read = 0.2, cache_write_5m = 5, cache_write_1h = 8 }"
LIGHT = "{ input = 0.1, output = 0.5, cache_read = 0.01, cache_write_5m = 0.125, cache_write_1h = 0.2 }"
CATALOG = f"""
[models.emulator-main]
context_window = {WINDOW_TOKENS}
context_budget = {WINDOW_TOKENS * 8 // 10}
prices = {STRONG}
[models.emulator-light]
prices = {LIGHT}
"""
# Of this process and of its workers.
NO_LIMIT = {
    **dict.fromkeys(("MAXCLAW_BUDGET_USER_TOKENS", "MAXCLAW_BUDGET_SERVER_TOKENS"), str(10**12)),
    **dict.fromkeys(("MAXCLAW_BUDGET_USER_DOLLARS", "MAXCLAW_BUDGET_SERVER_DOLLARS"), str(10**9)),
}


@dataclass(frozen=True)
class Size:
    """How much is measured. `locomo` and `traces` are conversations (LoCoMo's before two are put together), `hot` the
    hot runs of each, `due` conversations that become due at once."""

    locomo: int
    traces: int
    turns_made: int
    hot: int
    cancels: int
    due: int
    loaded_turns: int


FULL = Size(locomo=10, traces=4, turns_made=1_200, hot=3, cancels=40, due=1_000, loaded_turns=40)
QUICK = Size(locomo=2, traces=1, turns_made=1_200, hot=2, cancels=8, due=100, loaded_turns=8)
SMOKE = Size(locomo=1, traces=0, turns_made=1_000, hot=1, cancels=2, due=5, loaded_turns=2)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--engine", metavar="URL", help="a Messages server to time instead of the whole")
    parser.add_argument(
        "--engine-model", default="claude-opus-5-5", metavar="NAME", help="the model that it is asked for"
    )
    options = parser.parse_args(argv)
    size = SMOKE if options.smoke else QUICK if options.quick else FULL
    if options.engine:
        from benchmarks.shadow_engine import measure

        finish("shadow-engine", measure(options.engine, options.engine_model, runs=2 if options.smoke else 8))
        return
    with surroundings(durable=options.durable, catalog=CATALOG, environment=NO_LIMIT) as emulator:
        emulator.register_model("emulator-main", context_window_tokens=WINDOW_TOKENS, adaptive_thinking=True)
        finish("shadow", _measure(emulator, size, options.data))


def _measure(emulator: "EmulatorControl", size: Size, data: Path | None) -> dict[str, Any]:
    from shadow import cursors

    cursors.initialize()  # nothing is there yet, so nothing counts as read
    lines = list(_lines(data, size))
    _by_steward(lines)
    first, last = corpora.held_back(lines, exchanges=size.hot * EXCHANGES_A_RUN)
    shadowed = _imported("shadowed", first)
    _read_cold(list(shadowed.values()))
    for run in range(size.hot):
        said = {
            name: exchanges[run * EXCHANGES_A_RUN : (run + 1) * EXCHANGES_A_RUN] for name, exchanges in last.items()
        }
        asyncio.run(_goes_on(emulator, shadowed, said))
        _run_shadows(list(shadowed.values()))
    figures = _report(emulator)
    figures["cancel_ms_p95"] = percentile(shadow_load.cancels(emulator, size.cancels), 0.95)
    figures["first_token_ratio_under_load"] = asyncio.run(shadow_load.under_load(emulator, size.due, size.loaded_turns))
    return figures


def _lines(data: Path | None, size: Size) -> Iterator[corpora.Line]:
    """Published conversations of people and traces of agents, or made ones."""
    if data is None:
        yield from corpora.two_people(size.locomo, size.turns_made)
        return
    chosen: list[str] = []
    for line in corpora.locomo(data):
        if line["conversation"] not in chosen:
            chosen.append(line["conversation"])
        if len(chosen) <= size.locomo:
            # Two together fill a long context.
            together = f"locomo-{(len(chosen) - 1) // 2}"
            yield line | {"conversation": together, "id": f"{len(chosen)}:{line['id']}"}
    yield from corpora.agent_traces(data, size.traces)


async def _goes_on(
    emulator: "EmulatorControl", threads: Mapping[str, "Thread"], said: Mapping[str, Sequence[corpora.Exchange]]
) -> None:
    """Each conversation goes on with its own words, and the model answers with them."""
    from llm.emulator.client import text

    turns = [(threads[name], words, answer) for name, exchanges in said.items() for words, answer in exchanges]
    for _thread, _words, answer in turns:
        emulator.answer(text(answer))
    await shadow_load.turns((thread, words) for thread, words, _answer in turns)


def _imported(name: str, lines: Sequence[corpora.Line]) -> dict[str, "Thread"]:
    """The conversations' threads by their names in the lines."""
    from django.core.management import call_command

    from accounts.models import User
    from agent.models import ImportedConversation

    owner = User.objects.create_user(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines.jsonl"
        corpora.write_lines(iter(lines), file)
        call_command("import_conversations", str(file), user=name, stdout=_Quiet(), stderr=_Quiet())
    imported = ImportedConversation.objects.filter(owner=owner).select_related("thread__owner").order_by("pk")
    return {one.source: one.thread for one in imported}


class _Quiet:
    def write(self, _text: str) -> None: ...

    def flush(self) -> None: ...


def _by_steward(lines: Sequence[corpora.Line]) -> None:
    from asgiref.sync import async_to_sync

    from memory import steward
    from threads.models import Thread

    threads = _imported("stewarded", lines)
    Thread.objects.update(updated="2020-01-01T00:00:00Z")  # at rest
    while async_to_sync(steward.drain)(thorough=True, seconds=1e9):
        pass
    # What the steward has read is not shadows' to read.
    Thread.objects.filter(pk__in=[thread.pk for thread in threads.values()]).update(deleted="2020-01-01T00:00:00Z")


def _read_cold(threads: Sequence["Thread"]) -> None:
    """Run shadows until every imported row is read."""
    from shadow import cursors

    cursors.initialize()
    while cursors.with_unread().filter(thread__in=threads).exists():
        if not _run_shadows(threads):
            raise SystemExit("Shadows read nothing more, and rows are left.")


def _run_shadows(threads: Sequence["Thread"]) -> int:
    from shadow import cursors, tasks, triggers

    cursors.initialize()
    for thread in threads:
        triggers.trigger(thread.pk, "waiting-max")
    return tasks.drain()


def _report(emulator: "EmulatorControl") -> dict[str, Any]:
    """The tables, and the figures that come of the ledger."""
    from llm.models import ModelCall
    from memory.models import Digest
    from shadow.models import ShadowRun

    steward = list(ModelCall.objects.filter(purpose="steward", outcome="complete"))
    runs = list(ShadowRun.objects.filter(status="completed").order_by("pk"))
    read = {"steward": Digest.objects.count(), **_read_by(runs)}
    calls: dict[str, list[Any]] = {"steward": steward}
    calls |= {path: [run for run in runs if run.path == path] for path in ("cold", "hot")}
    waited = {
        path: [(run.ended - run.created).total_seconds() for run in runs if run.path == path and run.ended]
        for path in ("cold", "hot")
    }
    per_1000 = {
        name: float(sum(row.cost for row in rows)) / read[name] * 1000 if read[name] else None
        for name, rows in calls.items()
    }
    table(
        "Memory by writer",
        ("writer", "messages", "calls", "prompt tokens", "answer tokens", "cached", "$ per 1,000", "trigger p50 s"),
        [
            (
                name,
                read[name],
                len(rows),
                sum(map(_prompt, rows)),
                sum(row.output_tokens for row in rows),
                f"{sum(row.cache_read_tokens for row in rows) / max(1, sum(map(_prompt, rows))):.3f}",
                "-" if per_1000[name] is None else f"{per_1000[name]:.4f}",
                f"{percentile(waited[name], 0.5):.2f}" if waited.get(name) else "-",
            )
            for name, rows in calls.items()
        ],
    )
    hot = [_Hot.of(run) for run in calls["hot"]]
    table(
        "Hot runs",
        ("run", "prefix tokens", "page share", "question share", "read share", "over cold, same model", "counts"),
        [
            (
                f"{one.run}",
                one.prefix,
                f"{one.page:.4f}",
                f"{one.question:.4f}",
                f"{one.read:.4f}",
                f"{one.over_cold:.4f}",
                str(one.counts),
            )
            for one in hot
        ],
    )
    counting = [one for one in hot if one.counts]
    return {
        "hot_read_share": round(min(one.read for one in counting), 4) if counting else None,
        "hot_over_cold_same_model": round(max(one.over_cold for one in counting), 4) if counting else None,
        "hot_runs": len(hot),
        "hot_runs_that_count": len(counting),
        "cold_reasons": sorted({run.path_reason for run in calls["cold"]}),
        "cost_per_1000_messages": {name: None if one is None else round(one, 5) for name, one in per_1000.items()},
        "trigger_to_proposal_s": {path: round(percentile(all_, 0.5), 3) for path, all_ in waited.items() if all_},
    }


@dataclass(frozen=True)
class _Hot:
    """One hot run beside the request that it follows. Shares are of that request's tokens: `page` of the rows read,
    `question` of all that came after it."""

    run: int
    prefix: int
    page: float
    question: float
    read: float
    over_cold: float

    @property
    def counts(self) -> bool:
        return self.prefix >= PREFIX_MIN_TOKENS and self.page <= PAGE_SHARE_MAX

    @classmethod
    def of(cls, run: "ShadowRun") -> "_Hot":
        from llm.models import ModelCall
        from llm.prices import Usage, cost, prices_from_json

        earlier = ModelCall.objects.filter(
            generation_id=run.generation_id, purpose="turn", outcome="complete", pk__lt=run.call
        ).latest("pk")
        prefix, prompt = _prompt(earlier), _prompt(run)
        cold = cost(Usage(input_tokens=prompt, output_tokens=run.output_tokens or 0), prices_from_json(run.prices))
        assert cold is not None and run.cost is not None
        return cls(
            run.pk,
            prefix,
            _page_tokens(run, earlier) / prefix,
            (prompt - prefix) / prefix,
            min(1.0, (run.cache_read_tokens or 0) / prefix),
            float(run.cost / cold),
        )


def _page_tokens(run: "ShadowRun", earlier: "ModelCall") -> float:
    """The rows that a run read as it was shown them, by estimate."""
    from llm import catalog
    from llm.estimates import estimate_tokens
    from memory import backlog
    from shadow.models import ShadowRun
    from threads.models import Message

    before = ShadowRun.objects.filter(generation=run.generation, status="completed", pk__lt=run.pk).order_by("-pk")
    reached = before.values_list("through_seq", flat=True).first() or 0
    rows = Message.objects.filter(
        backlog.readable(), generation=run.generation, pk__gt=reached, pk__lte=run.through_seq
    )
    shown = "\n\n".join(map(backlog.rendered, backlog.rows_of(rows, run.owner.zone)))
    return estimate_tokens(shown, catalog.load_catalog().models[earlier.model])


def _prompt(row: "ModelCall | ShadowRun") -> int:
    parts = (row.input_tokens, row.cache_read_tokens, row.cache_write_5m_tokens, row.cache_write_1h_tokens)
    return sum(part or 0 for part in parts)


def _read_by(runs: Sequence["ShadowRun"]) -> dict[str, int]:
    """How many rows completed runs read, by path."""
    from django.db.models import Q

    from memory import backlog
    from threads.models import Message

    found = {"cold": 0, "hot": 0}
    reached: dict[int | None, int] = {}
    for run in runs:
        within = Q(pk__gt=reached.get(run.generation_id, 0), pk__lte=run.through_seq)
        found[run.path] += Message.objects.filter(backlog.readable(), within, generation=run.generation_id).count()
        reached[run.generation_id] = run.through_seq or 0
    return found


if __name__ == "__main__":
    main()
