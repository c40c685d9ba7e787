"""What finding old words costs, as a conversation grows.

One thread is filled with tool results of 60,000 characters, each after its call, to 7.2, 72 and 720 million characters;
beside it stand 1 million rows of other threads. At each size `threads.literal_search.literal_search` looks for the same
queries: selective ones, which few rows hold or none, and unselective ones, which many rows hold or which are whole
questions. `grep -rlF` looks for the same words in files of the same text in the same run, a file a message. Columns:

- p50, p95: milliseconds of the whole search, windows and counts included;
- reading: milliseconds of finding the rows that hold the query, which is what grep does;
- grep: milliseconds of grep, its start included; ratio: reading over grep, both p50;
- tool p95: milliseconds of the whole tool `search_memory` in this conversation, the part by meaning included, which
  finds no vectors here: tool results are embedded at their ends alone, and later;
- rows: how many rows hold the query, and how many grep lists (it knows no other case of a letter).

Text is made in code, or, with `--data`, taken from terminal logs, traces of tools and Chinese messages. Insert cost is
that of appending one long row with and without its part of the index, in turn.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, ""):
    # As a script: the project's folder is looked into first, not this one, whose names are no apps.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.corpora import tool_output
from benchmarks.harness import arguments, finish, percentile, surroundings, table

if TYPE_CHECKING:
    from threads.search_range import Range

RESULT_CHARS = 60_000
SIZES = (7_200_000, 72_000_000, 720_000_000)
QUICK_SIZES = (720_000, 7_200_000)
SMOKE_SIZES = (120_000, 240_000)
OTHER_ROWS = 1_000_000
QUICK_OTHER_ROWS = 20_000
SMOKE_OTHER_ROWS = 500
ROWS_PER_OTHER_THREAD = 500
REPEATS = 15
SMOKE_REPEATS = 2
INSERTS = 60
BATCH = 60

# Planted: each in the numbered results alone, counted from the first.
WINDOWS_PATH = r"C:\Users\ann\Documents\vault-7f3a.kdbx"
CHINESE_PHRASE = "岳麓山脚下的银杏"
QUOTED_JSON = '{"token": "q9-vault", "level": "none"}'
IN_TEN = "checkpoint 5d21f0 reached"
PLANTED = {WINDOWS_PATH: (1,), CHINESE_PHRASE: (0,), QUOTED_JSON: (1,), IN_TEN: tuple(range(10))}


@dataclass(frozen=True)
class Query:
    """`literal`: grep can look for the same."""

    name: str
    text: str
    selective: bool
    literal: bool = True


QUERIES = (
    Query("Windows path, 1 row", WINDOWS_PATH, True),
    Query("Chinese phrase, 1 row", CHINESE_PHRASE, True),
    Query("Chinese, 2 characters", "银杏", True),
    Query("JSON with quotes, 1 row", QUOTED_JSON, True),
    Query("10 rows", IN_TEN, True),
    Query("absent, long", "no-such-thing-anywhere-0xdeadbeef-in-here", True),
    Query("absent, short", "zq#", True),
    Query("in some rows", "error", False),
    Query("in every row", "the ", False),
    Query("a question", "Which service failed to open the configuration of the gateway?", False, literal=False),
)


@dataclass
class Measured:
    """Milliseconds of each search, of the tool, of finding rows, and of grep; how many rows it found."""

    search: list[float] = field(default_factory=list)
    tool: list[float] = field(default_factory=list)
    reading: list[float] = field(default_factory=list)
    grep: list[float] = field(default_factory=list)
    rows: int = 0
    listed: int = 0

    @property
    def ratio(self) -> float | None:
        return percentile(self.reading, 0.5) / percentile(self.grep, 0.5) if self.grep else None


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, metavar="N", help=f"rows of other threads, {OTHER_ROWS:,} by default")
    options = parser.parse_args(argv)
    sizes: tuple[int, ...] = SIZES
    others, repeats = OTHER_ROWS, REPEATS
    if options.quick:
        sizes, others = QUICK_SIZES, QUICK_OTHER_ROWS
    if options.smoke:
        sizes, others, repeats = SMOKE_SIZES, SMOKE_OTHER_ROWS, SMOKE_REPEATS
    with surroundings(durable=options.durable), _folder() as folder:
        bench = Bench(folder, options.data, repeats)
        bench.fill_others(others if options.rows is None else options.rows)
        results = {}
        for size in sizes:
            bench.grow(size)
            results[size] = bench.measure()
        inserts = bench.inserts(INSERTS if repeats == REPEATS else SMOKE_REPEATS)
        _report(results, inserts, bench.sizes())


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="maxclaw-benchmark-grep-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """The thread that grows, the files of its text, and the measuring."""

    def __init__(self, folder: Path, data: Path | None, repeats: int) -> None:
        from accounts.models import User
        from threads.lifecycle import create_thread

        self._folder = folder
        self._text = tool_output(data)
        self._chance = random.Random(1)
        self._repeats = repeats
        self._owner = User.objects.create_user("owner")
        self._thread = create_thread(self._owner)
        self._results = 0

    def fill_others(self, rows: int) -> None:
        """Short rows of other threads, by the database alone: what they cost to write is not measured."""
        from django.db import connection

        from threads.lifecycle import create_thread
        from threads.transcript import live_generation

        for _number in range(max(rows // ROWS_PER_OTHER_THREAD, 1)):
            create_thread(self._owner)
        generation = live_generation(self._thread)
        with connection.cursor() as cursor:
            # Foreign keys are not looked up row by row: what they refer to was made just now.
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(
                "INSERT INTO threads_message (thread_id, owner_id, generation_id, role, text, search_text, wire, model,"
                " tool_call_id, is_error, model_visible, left_because, meta, created)"
                " SELECT g.thread_id, g.owner_id, g.id, 'user', words, words, '[]', '', '', false, true, '', '{}',"
                " now()"
                " FROM threads_generation g CROSS JOIN generate_series(1, %s) number CROSS JOIN LATERAL"
                " (SELECT 'row ' || number || ': the error of the gateway in thread ' || g.thread_id || ', ' ||"
                " md5(number::text || g.id) AS words) made WHERE g.id <> %s",
                [ROWS_PER_OTHER_THREAD, generation.pk],
            )
            cursor.execute("SET session_replication_role = DEFAULT")
        _analyze()

    def grow(self, chars: int) -> None:
        """Append results until the thread has so many characters, as the product appends them."""
        while self._results * RESULT_CHARS < chars:
            count = min(BATCH, chars // RESULT_CHARS - self._results)
            self._append([self._result(self._results + number) for number in range(count)])
            self._results += count
        _analyze()

    def _result(self, number: int) -> str:
        begin = self._chance.randrange(len(self._text) - RESULT_CHARS)
        planted = "".join(f"\n{words}\n" for words, where in PLANTED.items() if number in where)
        planted += f"\nresult {number:06d} {self._chance.getrandbits(128):032x}\n"
        return self._text[begin : begin + RESULT_CHARS - len(planted)] + planted

    def _append(self, texts: Sequence[str]) -> None:
        from django.db import transaction

        from llm.wire import canonical
        from threads.transcript import NewMessage, append_many, live_generation, lock_thread

        rows = []
        for text in texts:
            call = {"type": "tool_use", "id": "toolu", "name": "read", "input": {"path": f"/srv/{text[-34:-2]}.log"}}
            rows.append(NewMessage("assistant", wire=canonical([call])))
            # What a model saw is head and tail, see the rule for a round's results; it is not searched.
            rows.append(NewMessage("tool", text=text, wire="[]", tool_call_id="toolu"))
        with transaction.atomic():
            thread = lock_thread(self._thread.pk)
            for row in append_many(thread, live_generation(thread), rows):
                (self._folder / str(row.pk)).write_text(row.text, encoding="utf-8")

    def measure(self) -> dict[Query, Measured]:
        """Each query as often as asked for, its searches and greps in turn."""
        from asgiref.sync import async_to_sync

        from memory import searching
        from threads.literal_search import literal_search
        from threads.search_range import Range
        from threads.search_terms import terms_of
        from threads.visibility import Viewer

        viewer = Viewer.of_thread(self._thread)
        tool_call = async_to_sync(searching.search)
        found: dict[Query, Measured] = {query: Measured() for query in QUERIES}
        for number in range(self._repeats + 1):
            for query, measured in found.items():
                spent, result = _timed(partial(literal_search, viewer, self._thread.channel, query.text))
                tool, _text = _timed(partial(tool_call, viewer, query.text, self._thread.channel))
                reading, _rows = _timed(partial(_read, Range(viewer, self._thread), terms_of(query.text).whole))
                grep, listed = _timed(partial(self._grep, query.text)) if query.literal else (None, 0)
                if number == 0:  # the first round warms up
                    continue
                measured.search.append(spent)
                measured.tool.append(tool)
                measured.reading.append(reading)
                measured.grep += [grep] if grep is not None else []
                measured.rows, measured.listed = result.total, listed
        return found

    def _grep(self, words: str) -> int:
        command = ["grep", "-rlF", "-e", words, str(self._folder)]
        ended = subprocess.run(command, env={"LC_ALL": "C", "PATH": "/bin:/usr/bin"}, capture_output=True, check=False)
        return len(ended.stdout.splitlines())

    def inserts(self, count: int) -> dict[str, list[float]]:
        """Milliseconds of appending one long row, with its part of the index and without, in turn."""
        from django.db import transaction

        from threads import message_grams, transcript

        spent: dict[str, list[float]] = {"with the index": [], "without": []}
        index = message_grams.index

        def append(text: str) -> None:
            with transaction.atomic():
                thread = transcript.lock_thread(self._thread.pk)
                transcript.append(thread, transcript.live_generation(thread), "tool", text=text, wire="[]")

        for number in range(count):
            for name, used in (("with the index", index), ("without", lambda _messages: None)):
                message_grams.index = used  # measured without, not changed
                text = self._result(10**6 + number)
                spent[name].append(_timed(partial(append, text))[0])
        message_grams.index = index
        return spent

    def sizes(self) -> dict[str, int]:
        """Bytes of text that is searched, and of what searching it takes on top."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT (SELECT sum(octet_length(search_text)) FROM threads_message WHERE thread_id = %s),"
                " pg_relation_size('messagegrams_grams'),"
                " pg_table_size('threads_messagegrams') + pg_indexes_size('threads_messagegrams')"
                "   - pg_relation_size('messagegrams_grams')",
                [self._thread.pk],
            )
            return dict(zip(("text", "index of grams", "table of grams"), map(int, cursor.fetchone()), strict=True))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return (time.perf_counter() - began) * 1000, result


def _read(searched: "Range", needle: str) -> None:
    from django.db import transaction

    with transaction.atomic():
        searched.holding(needle)


def _analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE threads_message")
        cursor.execute("VACUUM ANALYZE threads_messagegrams")


def _report(results: dict[int, dict[Query, Measured]], inserts: dict[str, list[float]], sizes: dict[str, int]) -> None:
    heads = ["", "p50", "p95", "tool p95", "reading p50", "grep p50", "ratio", "rows", "grep's rows"]
    for size, found in results.items():
        rows = [
            [
                query.name,
                percentile(measured.search, 0.5),
                percentile(measured.search, 0.95),
                percentile(measured.tool, 0.95),
                percentile(measured.reading, 0.5),
                percentile(measured.grep, 0.5) if measured.grep else None,
                measured.ratio,
                measured.rows,
                measured.listed if query.literal else None,
            ]
            for query, measured in found.items()
        ]
        table(f"Search in {_name(size)} characters: milliseconds", heads, rows)
    rows = [[name, percentile(spent, 0.5), percentile(spent, 0.95)] for name, spent in inserts.items()]
    table("Appending a row of 60,000 characters: milliseconds", ["", "p50", "p95"], rows)
    table("Megabytes", ["", "MB"], [[name, size / 1e6] for name, size in sizes.items()])
    finish("search", _figures(results, inserts, sizes))


def _figures(
    results: dict[int, dict[Query, Measured]], inserts: dict[str, list[float]], sizes: dict[str, int]
) -> dict[str, Any]:
    """The figures of the last line. Times and ratios are those of the slowest query of a kind."""
    slowest: dict[str, dict[str, float]] = {"selective": {}, "unselective": {}}
    ratios: dict[str, float] = {}
    tool: dict[str, float] = {}
    for size, found in results.items():
        for kind, wanted in (("selective", True), ("unselective", False)):
            times = [percentile(each.search, 0.95) for query, each in found.items() if query.selective is wanted]
            slowest[kind][_name(size)] = round(max(times), 2)
        tool[_name(size)] = round(max(percentile(each.tool, 0.95) for each in found.values()), 2)
        ratios[_name(size)] = round(max(each.ratio for each in found.values() if each.ratio is not None), 2)
    with_index, without = (percentile(spent, 0.5) for spent in inserts.values())
    return {
        "p95_ms": slowest,
        "tool_p95_ms": tool,
        "grep_ratio": ratios,
        "index_share": (sizes["index of grams"] + sizes["table of grams"]) / sizes["text"],
        "insert_ratio": with_index / without,
    }


def _name(size: int) -> str:
    return f"{size / 1e6:g}M"


if __name__ == "__main__":
    main()
