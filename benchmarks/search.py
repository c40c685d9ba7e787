"""What finding old words costs, as a conversation grows.

One thread is filled with tool results of 60,000 characters, each after its call, to 7.2, 72 and 720 million characters;
beside it stand 1 million rows of other threads. At each size `threads.literal_search.literal_search` looks for the same
queries: selective ones, which few rows hold or none, and unselective ones, which many rows hold or which are whole
questions. At last the thread gets 100,000 short rows as well, and is searched once more. `grep -rlF` looks for the same
words in files of the same text in the same run, a file a message (the short rows have none). Columns:

- p50, p95: milliseconds of the whole literal search, windows and counts included;
- tool: milliseconds of the whole tool `search_memory` in this conversation, the part by meaning included, which finds
  no vectors here: tool results are embedded at their ends alone, and later;
- finding: milliseconds of finding the rows that hold the query, which is what grep does;
- grep: milliseconds of grep, its start included;
- finding/grep, search/grep, tool/grep: how many times as long as grep each of the three takes, all p50;
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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, ""):
    # As a script: the project's folder is looked into first, not this one, whose names are no apps.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.corpora import tool_output
from benchmarks.harness import arguments, surroundings
from benchmarks.search_report import Found, Measured, Query, report

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
SHORT_ROWS = 100_000
QUICK_SHORT_ROWS = 20_000
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


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, metavar="N", help=f"rows of other threads, {OTHER_ROWS:,} by default")
    options = parser.parse_args(argv)
    sizes: tuple[int, ...] = SIZES
    others, short_rows, repeats = OTHER_ROWS, SHORT_ROWS, REPEATS
    if options.quick:
        sizes, others, short_rows = QUICK_SIZES, QUICK_OTHER_ROWS, QUICK_SHORT_ROWS
    if options.smoke:
        sizes, others, repeats = SMOKE_SIZES, SMOKE_OTHER_ROWS, SMOKE_REPEATS
        short_rows = SMOKE_OTHER_ROWS
    began = time.monotonic()
    with surroundings(durable=options.durable), _folder() as folder:
        bench = Bench(folder, options.data, repeats)
        bench.fill_others(others if options.rows is None else options.rows)
        results = {}
        for size in sizes:
            bench.grow(size)
            results[size] = bench.measure()
            # The tables come at the end; whoever waits sees how far it is.
            sys.stderr.write(f"{size:,} characters measured after {time.monotonic() - began:.0f} s\n")
        inserts = bench.inserts(INSERTS if repeats == REPEATS else SMOKE_REPEATS)
        searched = bench.sizes()
        bench.fill_short(short_rows)
        report(results, (short_rows, bench.measure()), inserts, searched)


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
        from threads.lifecycle import create_thread

        for _number in range(max(rows // ROWS_PER_OTHER_THREAD, 1)):
            create_thread(self._owner)
        self._insert(ROWS_PER_OTHER_THREAD, "g.id <> %s")

    def fill_short(self, rows: int) -> None:
        """As many short rows in the thread itself, half of which hold one of the words that are looked for."""
        self._insert(rows, "g.id = %s")

    def _insert(self, rows: int, where: str) -> None:
        from django.db import connection

        from threads.transcript import live_generation

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
                " (SELECT 'row ' || number || ': the ' || CASE number %% 2 WHEN 0 THEN 'error' ELSE 'state' END ||"
                " ' of the gateway in thread ' || g.thread_id || ', ' || md5(number::text || g.id) AS words) made"
                f" WHERE {where}",
                [rows, generation.pk],
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

    def measure(self) -> Found:
        """Each query as often as asked for, its searches and greps in turn."""
        from asgiref.sync import async_to_sync

        from memory import searching
        from threads.literal_search import literal_search
        from threads.search_range import Range
        from threads.search_terms import terms_of
        from threads.visibility import Viewer

        viewer = Viewer.of_thread(self._thread)
        tool_call = async_to_sync(searching.search)
        found: Found = {query: Measured() for query in QUERIES}
        for number in range(self._repeats + 1):
            for query, measured in found.items():
                spent, result = _timed(partial(literal_search, viewer, self._thread.channel, query.text))
                tool, _text = _timed(partial(tool_call, viewer, query.text, self._thread.channel))
                finding, _rows = _timed(partial(_find, Range(viewer, self._thread), terms_of(query.text).whole))
                grep, listed = _timed(partial(self._grep, query.text)) if query.literal else (None, 0)
                if number == 0:  # the first round warms up
                    continue
                measured.search.append(spent)
                measured.tool.append(tool)
                measured.finding.append(finding)
                measured.grep += [grep] if grep is not None else []
                measured.rows, measured.listed = result.total, listed
        return found

    def _grep(self, words: str) -> int:
        command = ["grep", "-rlF", "-e", words, str(self._folder)]
        ended = subprocess.run(command, env={"LC_ALL": "C", "PATH": "/bin:/usr/bin"}, capture_output=True, check=False)
        return len(ended.stdout.splitlines())

    def inserts(self, count: int) -> dict[str, list[float]]:
        """Milliseconds of appending one long row, with its part of the index and without, in turn."""
        from django.db import connection, transaction

        from threads import message_grams, transcript

        # The rows without it are what the database would refuse.
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE threads_message DISABLE TRIGGER message_long_is_indexed")
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


def _find(searched: "Range", needle: str) -> None:
    from django.db import transaction

    with transaction.atomic():
        searched.holding(needle)


def _analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE threads_message")
        cursor.execute("VACUUM ANALYZE threads_messagegrams")


if __name__ == "__main__":
    main()
