"""What both ways of writing memory cost, how long they took, what they cite, and what staff found of it: pure functions
over plain rows."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from llm.prices import PER

# Of the interval that stands beside a precision.
Z_95 = 1.959963984540054
Row = TypeVar("Row")
Key = TypeVar("Key", bound=tuple[str, ...])


@dataclass(frozen=True)
class Spent:
    """One call, or one run without any. `cost` is None where a price or the usage is missing; `output_price` is of a
    million tokens. `barren`: it yielded nothing."""

    path: str
    model: str
    status: str
    called: bool = True
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: Decimal | None = None
    output_price: Decimal | None = None
    duration_ms: int | None = None
    waited_ms: int | None = None
    barren: bool = False


@dataclass(frozen=True)
class CostRow:
    """Sums of one path, model and status. A sum of dollars is None where any price of its calls is missing: a smaller
    sum would be wrong. `hot_output_tokens` and `hot_output_cost` are of hot runs: their answers are priced at the
    conversation's own model."""

    path: str
    model: str
    status: str
    runs: int
    calls: int
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost: Decimal | None
    hot_output_tokens: int | None
    hot_output_cost: Decimal | None

    @property
    def prompt_tokens(self) -> int:
        """The whole prompt, however it was billed."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True)
class WasteRow:
    """Calls that yielded nothing, of one path and model."""

    path: str
    model: str
    calls: int
    barren: int
    tokens: int
    cost: Decimal | None


@dataclass(frozen=True)
class LatencyRow:
    """Milliseconds of one path: of the calls themselves, and from what set them off to their end."""

    path: str
    measured: int
    p50: int | None
    p95: int | None
    waited_p50: int | None
    waited_p95: int | None


@dataclass(frozen=True)
class Cited:
    """What a fact or proposal cites: the writer's path and model, whether the target is there, and whether it is what
    the kind of evidence asks for (`fits`)."""

    path: str
    model: str
    kind: str
    there: bool
    fitting: bool


@dataclass(frozen=True)
class EvidenceRow:
    path: str
    model: str
    kind: str
    pointers: int
    missing: int
    unfitting: int


@dataclass(frozen=True)
class ProposedRow:
    """Proposals of one path and model, and what staff said of those that held: only they would become facts. `low` and
    `high` bound the precision with 95 % (Wilson); None where nothing was judged. `rejected_correct` counts what was
    refused although staff found it right."""

    path: str
    model: str
    proposed: int
    rejected: int
    judged: int
    correct: int
    precision: float | None
    low: float | None
    high: float | None
    rejected_judged: int
    rejected_correct: int


@dataclass(frozen=True)
class Target:
    """What a pointer points at. `role` is the message's, blank for a generation; `answers_card`: the person's answer to
    a question card; `accepted_by_person`: the place of an acceptance holds the person's words."""

    role: str = ""
    is_error: bool = False
    answers_card: bool = False
    accepted_by_person: bool = False
    generation_ended: bool = False


def fits(kind: str, target: Target) -> bool:
    """Whether the target is of the sort that this kind of evidence asks for. That it says what is claimed is for people
    to read."""
    worked = target.role == "tool" and not target.is_error
    if kind == "max-stated":
        return target.role == "user" or (worked and target.answers_card)
    if kind == "max-accepted":
        return target.role == "assistant" and target.accepted_by_person
    if kind == "tool-verified":
        return worked and not target.answers_card
    return kind == "observed-outcome" and ((worked and not target.answers_card) or target.generation_ended)


def costs(rows: Iterable[Spent]) -> list[CostRow]:
    """Sums by path, model and status."""
    found = []
    for (path, model, status), group in _grouped(rows, lambda row: (row.path, row.model, row.status)):
        hot = path == "hot"
        found.append(
            CostRow(
                path,
                model,
                status,
                runs=len(group),
                calls=sum(row.called for row in group),
                input_tokens=sum(row.input_tokens for row in group),
                cache_read_tokens=sum(row.cache_read_tokens for row in group),
                cache_write_tokens=sum(row.cache_write_tokens for row in group),
                output_tokens=sum(row.output_tokens for row in group),
                cost=_dollars(group),
                hot_output_tokens=sum(row.output_tokens for row in group) if hot else None,
                hot_output_cost=_output_dollars(group) if hot else None,
            )
        )
    return found


def waste(rows: Iterable[Spent]) -> list[WasteRow]:
    """Of the calls of each path and model, those that yielded nothing, and what they took."""
    found = []
    for (path, model), group in _grouped((row for row in rows if row.called), lambda row: (row.path, row.model)):
        barren = [row for row in group if row.barren]
        tokens = sum(
            row.input_tokens + row.cache_read_tokens + row.cache_write_tokens + row.output_tokens for row in barren
        )
        found.append(WasteRow(path, model, len(group), len(barren), tokens, _dollars(barren)))
    return found


def latencies(rows: Iterable[Spent]) -> list[LatencyRow]:
    """How long completed calls of each path took."""
    found = []
    for (path,), group in _grouped(rows, lambda row: (row.path,)):
        took = [row.duration_ms for row in group if row.duration_ms is not None]
        waited = [row.waited_ms for row in group if row.waited_ms is not None]
        found.append(
            LatencyRow(
                path,
                len(took),
                percentile(took, 50),
                percentile(took, 95),
                percentile(waited, 50),
                percentile(waited, 95),
            )
        )
    return found


def evidence(rows: Iterable[Cited]) -> list[EvidenceRow]:
    """Pointers whose target is missing, and whose target is not what their kind asks for. That one checks shows no
    fact true."""
    return [
        EvidenceRow(
            path,
            model,
            kind,
            len(group),
            sum(not row.there for row in group),
            sum(row.there and not row.fitting for row in group),
        )
        for (path, model, kind), group in _grouped(rows, lambda row: (row.path, row.model, row.kind))
    ]


def proposed(rows: Iterable[tuple[str, str, bool, str]]) -> list[ProposedRow]:
    """Precision by path and model, from (path, model, held, verdict or blank) of each proposal."""
    found = []
    for (path, model), group in _grouped(rows, lambda row: (row[0], row[1])):
        judged = [verdict for _path, _model, held, verdict in group if verdict and held]
        refused = [verdict for _path, _model, held, verdict in group if verdict and not held]
        correct = judged.count("correct")
        low, high = wilson(correct, len(judged))
        found.append(
            ProposedRow(
                path,
                model,
                proposed=len(group),
                rejected=sum(not held for _path, _model, held, _verdict in group),
                judged=len(judged),
                correct=correct,
                precision=correct / len(judged) if judged else None,
                low=low,
                high=high,
                rejected_judged=len(refused),
                rejected_correct=refused.count("correct"),
            )
        )
    return found


def wilson(successes: int, trials: int) -> tuple[float | None, float | None]:
    """Bounds of a share with 95 % confidence, by Wilson's score: sound for few trials and at either end. None without
    trials. Raises ValueError unless 0 <= successes <= trials."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials}")
    if not trials:
        return None, None
    share, square = successes / trials, Z_95 * Z_95
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    half = Z_95 / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    # At either end rounding alone would miss the bound.
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return min(low, share), max(high, share)


def percentile(values: Sequence[int], percent: int) -> int | None:
    """The smallest value that at least `percent` of all do not exceed (nearest rank); None of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else None


def _dollars(rows: Iterable[Spent]) -> Decimal | None:
    total = Decimal(0)
    for row in rows:
        if row.called and row.cost is None:
            return None
        total += row.cost or 0
    return total


def _output_dollars(rows: Iterable[Spent]) -> Decimal | None:
    total = Decimal(0)
    for row in rows:
        if row.output_tokens and row.output_price is None:
            return None
        total += row.output_tokens * (row.output_price or 0) / PER
    return total


def _grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> list[tuple[Key, list[Row]]]:
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return sorted(found.items(), key=lambda pair: pair[0])
