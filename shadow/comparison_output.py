"""A comparison written out: text for people, JSON and CSV for machines. No words of anybody's stand in it."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from shadow.comparison import Coverage, Matched
from shadow.comparison_report import DISCLAIMERS, Report, as_json, plain

NOTHING = "–"


def to_json(found: Report) -> str:
    return json.dumps(as_json(found), ensure_ascii=False, indent=2, default=plain)


def to_csv(found: Report) -> str:
    """One figure a line: measure, its path, model and status or direction, the figure's name, its value (blank where
    unknown)."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["measure", "of", "model", "status", "figure", "value"])
    for line in _lines(found):
        writer.writerow(["" if value is None else plain_cell(value) for value in line])
    for sentence in DISCLAIMERS:
        writer.writerow(["note", "", "", "", "", str(sentence)])
    return out.getvalue()


def plain_cell(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else plain(value)


def _lines(found: Report) -> Iterator[Sequence[Any]]:
    yield "items", "steward", "", "", "compared", len(found.steward)
    yield "items", "shadow", "", "", "compared", len(found.shadow)
    yield "items", "steward", "", "", "outside of shadows", found.outside
    yield "items", "shadow", "", "", "rejected", found.rejected
    for name, matched in _measures(found):
        for direction in ("steward_by_shadow", "shadow_by_steward"):
            coverage: Coverage = getattr(matched, direction)
            for figure in ("covered", "total", "share"):
                yield name, direction, "", "", figure, getattr(coverage, figure)
        for left, right in matched.pairs:
            yield name, left, "", "", "neighbour" if name == "evidence" else "pair", right
    for reader, ways in found.examined.items():
        for way, row in ways.items():
            for figure, value in {**asdict(row), "share": row.share}.items():
                yield "examined once", reader, "", way, figure, value
    tables: dict[str, Sequence[Any]] = {
        "waste": found.waste,
        "cost": found.costs,
        "latency ms": found.latencies,
        "evidence quality": found.pointers,
        "precision": found.proposed,
    }
    for name, rows in tables.items():
        for table_row in rows:
            figures = asdict(table_row)
            path, model = figures.pop("path"), figures.pop("model", "")
            status = figures.pop("status", figures.pop("kind", ""))
            for figure, value in figures.items():
                yield name, path, model, status, figure, value


def to_text(found: Report) -> str:
    """The report for a terminal."""
    return "\n".join(_text(found))


def _text(found: Report) -> Iterator[str]:
    yield f"From {found.window.first} to {found.window.last}"
    yield f"  steward: {len(found.steward)} facts compared, {found.outside} that shadows do not write"
    yield f"  shadow: {len(found.shadow)} proposals compared, {found.rejected} rejected"
    for name, matched in _measures(found):
        yield ""
        yield f"{name} coverage"
        yield f"  steward by shadow: {_share(matched.steward_by_shadow)}"
        yield f"  shadow by steward: {_share(matched.shadow_by_steward)}"
        word = "neighbour" if name == "evidence" else "pair"
        yield from (f"    {word}: {left} {right}" for left, right in matched.pairs)
    if found.semantic is None:
        yield ""
        yield f"semantic coverage: nobody was asked ({found.planned_calls} calls would be made)"
    elif found.semantic.unjudged:
        yield f"  not judged: {', '.join(found.semantic.unjudged)}"
    yield ""
    yield "examined once (share; once, never, again), by the way a generation ended"
    for reader, ways in found.examined.items():
        for way, row in ways.items():
            yield f"  {reader}, {way}: {_number(row.share)}; {row.once}, {row.never}, {row.again}"
    yield from _table("cost", found.costs)
    yield from _table("waste: calls that yielded nothing", found.waste)
    yield from _table("latency in ms", found.latencies)
    yield from _table("evidence pointers", found.pointers)
    yield from _table("proposals and verdicts (precision with 95 % interval)", found.proposed)
    yield ""
    yield from (str(sentence) for sentence in DISCLAIMERS)


def _measures(found: Report) -> Iterator[tuple[str, Matched]]:
    yield "exact", found.exact
    yield "evidence", found.evidence
    if found.semantic is not None:
        yield "semantic", found.semantic.matched


def _table(name: str, rows: Sequence[Any]) -> Iterator[str]:
    yield ""
    yield name
    if not rows:
        yield "  none"
        return
    cells = [list(asdict(rows[0])), *([_number(value) for value in asdict(row).values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _share(coverage: Coverage) -> str:
    return f"{_number(coverage.share)} ({coverage.covered} of {coverage.total})"


def _number(value: Any) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3f}" if isinstance(value, float) else str(plain_cell(value))
