"""What `search.py` measured, as tables and as its last line."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness import finish, percentile, table


@dataclass(frozen=True)
class Query:
    """`literal`: grep can look for the same."""

    name: str
    text: str
    selective: bool
    literal: bool = True


@dataclass
class Measured:
    """Milliseconds of each search, of the tool, of finding rows, and of grep; how many rows it found."""

    search: list[float] = field(default_factory=list)
    tool: list[float] = field(default_factory=list)
    finding: list[float] = field(default_factory=list)
    grep: list[float] = field(default_factory=list)
    rows: int = 0
    listed: int = 0

    def over_grep(self, spent: Sequence[float]) -> float | None:
        """How many times as long as grep something took, None where grep was not asked."""
        return percentile(spent, 0.5) / percentile(self.grep, 0.5) if self.grep else None


Found = dict[Query, Measured]


def report(
    results: dict[int, Found], short: tuple[int, Found], inserts: dict[str, list[float]], sizes: dict[str, int]
) -> None:
    """Print a table for each size, one for the thread with many short rows (how many), and the last line."""
    tables = {f"{_name(size)} characters": found for size, found in results.items()}
    tables[f"the same and {short[0]:,} short rows"] = short[1]
    heads = ["", "p50", "p95", "tool p50", "tool p95", "finding p50", "grep p50"]
    heads += ["finding/grep", "search/grep", "tool/grep", "rows", "grep's rows"]
    for searched, found in tables.items():
        rows = [
            [
                query.name,
                percentile(measured.search, 0.5),
                percentile(measured.search, 0.95),
                percentile(measured.tool, 0.5),
                percentile(measured.tool, 0.95),
                percentile(measured.finding, 0.5),
                percentile(measured.grep, 0.5) if measured.grep else None,
                measured.over_grep(measured.finding),
                measured.over_grep(measured.search),
                measured.over_grep(measured.tool),
                measured.rows,
                measured.listed if query.literal else None,
            ]
            for query, measured in found.items()
        ]
        table(f"Search in {searched}: milliseconds", heads, rows)
    rows = [[name, percentile(spent, 0.5), percentile(spent, 0.95)] for name, spent in inserts.items()]
    table("Appending a row of 60,000 characters: milliseconds", ["", "p50", "p95"], rows)
    table("Megabytes", ["", "MB"], [[name, size / 1e6] for name, size in sizes.items()])
    finish("search", _figures(results, short[1], inserts, sizes))


def _figures(
    results: dict[int, Found], short: Found, inserts: dict[str, list[float]], sizes: dict[str, int]
) -> dict[str, Any]:
    """The figures of the last line. Times and ratios are those of the slowest query of a kind. `grep_ratio` is of
    finding the rows, which is what grep does; those beside it are of the whole literal search and tool call."""
    slowest: dict[str, dict[str, float]] = {"selective": {}, "unselective": {}}
    ratios: dict[str, dict[str, float]] = {"grep_ratio": {}, "grep_ratio_search": {}, "grep_ratio_tool": {}}
    tool: dict[str, float] = {}
    for size, found in results.items():
        for kind, milliseconds in _slowest(found).items():
            slowest[kind][_name(size)] = milliseconds
        tool[_name(size)] = round(max(percentile(each.tool, 0.95) for each in found.values()), 2)
        for each in found.values():
            for name, spent in zip(ratios, (each.finding, each.search, each.tool), strict=True):
                ratio = round(each.over_grep(spent) or 0.0, 2)
                ratios[name][_name(size)] = max(ratio, ratios[name].get(_name(size), 0.0))
    with_index, without = (percentile(spent, 0.5) for spent in inserts.values())
    return {
        "p95_ms": slowest,
        "tool_p95_ms": tool,
        "short_rows_p95_ms": _slowest(short),
        **ratios,
        "index_share": (sizes["index of grams"] + sizes["table of grams"]) / sizes["text"],
        "insert_ratio": with_index / without,
    }


def _slowest(found: Found) -> dict[str, float]:
    return {
        kind: round(max(percentile(each.search, 0.95) for query, each in found.items() if query.selective is wanted), 2)
        for kind, wanted in (("selective", True), ("unselective", False))
    }


def _name(size: int) -> str:
    return f"{size / 1e6:g}M"
