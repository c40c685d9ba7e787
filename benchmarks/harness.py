"""What every benchmark has: arguments, a database and an emulator of its own, a table for people, and figures as one
JSON object in the last line."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from llm.emulator.client import EmulatorControl
from tests.cluster import UNSAFE_AND_FAST, TemporaryCluster
from tests.emulator_server import running_emulator

ROOT = Path(__file__).resolve().parent.parent
DATABASE_THREADS_ROLE = "web"  # the role whose database connections are pooled, as in the ASGI process
# A turn is looked for when it is rung for, never by the clock: a measurement has no work beside it.
UNDISTURBED_SECONDS = "3600"
# Names a database whose migrated tables are copied, where several benchmarks run one after the other.
TEMPLATE = "BENCHMARK_TEMPLATE_DATABASE"


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The arguments of every benchmark; a benchmark may add its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a shorter measurement, within 45 seconds")
    parser.add_argument("--smoke", action="store_true", help="as short as can be: only whether it runs")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of published data sets")
    parser.add_argument(
        "--durable", action="store_true", help="have the temporary database reach the disk at each commit"
    )
    return parser


@contextmanager
def surroundings(
    *, durable: bool = False, catalog: str = "", environment: Mapping[str, str] | None = None
) -> Iterator[EmulatorControl]:
    """Django set up on an empty, migrated database of its own, in the web role, with an emulator process as the model.

    The database is on a temporary server, or on DATABASE_URL's, and goes with the block. `catalog` is the text of a
    model catalog file; `environment` holds settings beyond those, such as another model's: of the process's own none
    counts. Nothing of Django may be imported before.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="maxclaw-benchmark-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in [name for name in os.environ if name.startswith(("MAXCLAW_", "ANTHROPIC_"))]:
            del os.environ[name]
        os.environ.pop("DATABASE_LISTEN_URL", None)
        os.environ["DATABASE_URL"] = stack.enter_context(_database(durable))
        emulator = stack.enter_context(running_emulator(bodies=False))
        (folder / "catalog.toml").write_text(catalog)
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "maxclaw.settings",
            "MAXCLAW_DATA_DIR": str(folder),
            "MAXCLAW_CATALOG": str(folder / "catalog.toml") if catalog else "",
            "MAXCLAW_EMULATOR_URL": emulator.base_url,
            "MAXCLAW_ROLE": DATABASE_THREADS_ROLE,
            "MAXCLAW_POLL_SECONDS": UNDISTURBED_SECONDS,
            "MAXCLAW_LOG_LEVEL": "WARNING",
            **(environment or {}),
        }
        _set_up_django()
        stack.callback(_close_database)
        yield emulator


def _set_up_django() -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def _close_database() -> None:
    from django.db import connections

    from maxclaw.database_threads import close_all

    connections.close_all()
    close_all()


@contextmanager
def _database(durable: bool) -> Iterator[str]:
    """The URL of a fresh database, dropped after the block."""
    if os.environ.get("DATABASE_URL"):
        with fresh_database(os.environ["DATABASE_URL"]) as url:
            yield url
        return
    cluster = TemporaryCluster([] if durable else UNSAFE_AND_FAST)
    try:
        cluster.start()
        with fresh_database(cluster.url) as url:
            yield url
    finally:
        cluster.stop()


@contextmanager
def fresh_database(url: str) -> Iterator[str]:
    """A database beside the one that `url` names, which is left alone; a copy of TEMPLATE's where that is set."""
    name = f"maxclaw_benchmark_{uuid.uuid4().hex[:8]}"
    before, _, query = url.partition("?")
    fresh = f"{before.rpartition('/')[0]}/{name}" + (f"?{query}" if query else "")
    template = sql.Identifier(os.environ.get(TEMPLATE, "template1"))
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
        try:
            yield fresh
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def machine() -> str:
    """What it ran on, in a line."""
    cpu = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [
            line.partition(":")[2].strip() for line in information.read_text().splitlines() if "model name" in line
        ]
        cpu = names[0] if names else cpu
    return (
        f"{cpu}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def commit() -> str:
    """The commit that is measured; a plus sign after it: with changes that are not committed."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        return name + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table for people: the first column to the left, numbers to the right."""
    cells = [list(heads), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    print(f"\n{title}\n")
    for number, row in enumerate(cells):
        line = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(line).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; `share` 0.5 is the median."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, round(share * len(ordered) + 0.5) - 1))]


def finish(name: str, figures: dict[str, Any]) -> None:
    """Print the figures as the last line: one JSON object."""
    print(f"\n{machine()}, commit {commit()}\n")
    rounded = {key: _rounded(value) if isinstance(value, float) else value for key, value in figures.items()}
    print(json.dumps({"benchmark": name, **rounded, "machine": machine(), "commit": commit()}))
    sys.stdout.flush()


def _rounded(value: float) -> float:
    """Two places, and of what is less than 1 three digits: a price of tenths of a cent is not none."""
    return round(value, 2) if abs(value) >= 1 else float(f"{value:.3g}")
