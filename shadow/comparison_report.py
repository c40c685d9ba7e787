"""The comparison as a whole: what was read, measured, and what it does not show. Nothing in it is a person's words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from shadow import comparison, comparison_evidence, comparison_figures, pairing
from shadow.comparison import Examined, Item, Matched
from shadow.comparison_figures import CostRow, EvidenceRow, LatencyRow, ProposedRow, WasteRow
from shadow.comparison_reading import Window, read, reading_only
from shadow.pairing import Judged

DISCLAIMERS: tuple[Promise, ...] = (
    _("Shared evidence is reported on its own: it makes neighbours and is no coverage by meaning."),
    _("Dollars are a snapshot of list prices, and no bill of a subscription."),
    _("Checks of evidence pointers do not show that a fact is true."),
)


@dataclass(frozen=True)
class Semantic:
    """Coverage by meaning over the items that a model judged, and those that had none to be judged with. The pairs are
    to be looked at, not the truth."""

    matched: Matched
    calls: list[int]
    unjudged: list[str]


@dataclass(frozen=True)
class Report:
    """Everything of one window. `semantic` is None until a model was asked; `planned_calls` is how many that takes."""

    window: Window
    steward: list[Item]
    shadow: list[Item]
    outside: int
    rejected: int
    exact: Matched
    evidence: Matched
    semantic: Semantic | None
    planned_calls: int
    examined: dict[str, dict[str, Examined]]
    waste: list[WasteRow]
    costs: list[CostRow]
    latencies: list[LatencyRow]
    pointers: list[EvidenceRow]
    proposed: list[ProposedRow]


def report(window: Window) -> Report:
    """The report of a window, without any question to a model, out of one transaction that only reads."""
    with reading_only():
        rows = read(window)
        cited = list(comparison_evidence.cited(window))
        verdicts = list(comparison_evidence.verdicts(window))
    return Report(
        window=window,
        steward=rows.steward,
        shadow=rows.shadow,
        outside=rows.outside,
        rejected=rows.rejected,
        exact=comparison.exact(rows.steward, rows.shadow),
        evidence=comparison.by_evidence(rows.steward, rows.shadow),
        semantic=None,
        planned_calls=len(pairing.planned(comparison.groups(rows.steward, rows.shadow))),
        examined={
            reader: {way: comparison.examined(times) for way, times in ways.items()}
            for reader, ways in rows.examined.items()
        },
        waste=comparison_figures.waste(rows.spent),
        costs=comparison_figures.costs(rows.spent),
        latencies=comparison_figures.latencies(rows.spent),
        pointers=comparison_figures.evidence(cited),
        proposed=comparison_figures.proposed(verdicts),
    )


def semantic(judged: Judged) -> Semantic:
    """Both coverages over what was judged or had no counterpart to be judged with."""
    left = _once(item for group in judged.groups for item in group.steward)
    right = _once(item for group in judged.groups for item in group.shadow)
    return Semantic(comparison.matched(judged.pairs, left, right), judged.calls, judged.unjudged)


def as_json(found: Report) -> dict[str, Any]:
    """The report for machines: ids, numbers and the sentences that limit them. Dollars are text, None where unknown."""
    return {
        "window": {"first": found.window.first, "last": found.window.last},
        "disclaimers": [str(sentence) for sentence in DISCLAIMERS],
        "items": {
            "steward": len(found.steward),
            "shadow": len(found.shadow),
            "steward_outside_of_shadows": found.outside,
            "shadow_rejected": found.rejected,
        },
        "exact_coverage": _matched(found.exact),
        "evidence_coverage": {**_matched(found.evidence, pairs="neighbours")},
        "semantic_coverage": None
        if found.semantic is None
        else {
            **_matched(found.semantic.matched),
            "calls": found.semantic.calls,
            "unjudged": found.semantic.unjudged,
        },
        "semantic_calls_planned": found.planned_calls,
        "examined_once": {
            reader: {way: {**asdict(row), "share": row.share} for way, row in ways.items()}
            for reader, ways in found.examined.items()
        },
        "waste": [asdict(row) for row in found.waste],
        "cost": [asdict(row) for row in found.costs],
        "latency_ms": [asdict(row) for row in found.latencies],
        "evidence_quality": [asdict(row) for row in found.pointers],
        "precision": [asdict(row) for row in found.proposed],
    }


def plain(value: Any) -> Any:
    """What JSON does not know, as text."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _matched(found: Matched, pairs: str = "pairs") -> dict[str, Any]:
    return {
        "steward_by_shadow": {**asdict(found.steward_by_shadow), "share": found.steward_by_shadow.share},
        "shadow_by_steward": {**asdict(found.shadow_by_steward), "share": found.shadow_by_steward.share},
        pairs: [{"steward": left, "shadow": right} for left, right in found.pairs],
    }


def _once(items: Any) -> Sequence[Item]:
    return list({item.key: item for item in items}.values())
