"""What is remembered: what the steward makes of conversations, and how long facts take to be found.

The steward reads the conversations of LoCoMo (`--data`), or some made in code, through the emulator's rules, or through
a real model where `--model-url` with `--model`, ANTHROPIC_BASE_URL with MAXCLAW_MODEL, or ANTHROPIC_API_KEY names one
(never with `--smoke`), until nothing is left. Counted are the facts it wrote, the share of their evidence that holds by
the rows it cites (`benchmarks/steward_evidence.py`, apart from the judge that let it in), the share of standing facts
that repeat an earlier one (cosine 0.95 and more, the same thing applied to), calls, tokens, list price; and that every
row that is to be read was read exactly once, and that a second run asks for nothing.

Searches are measured for owners of several sizes whose facts, each with its evidence, are spread among those of others
in one large table: the facts' part alone (`memory.fact_search.find`, the query's embedding included) and the whole tool
without a channel. Some facts of each owner are near each query in meaning, and every search has to find some: an empty
answer costs less.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if __package__ in (None, ""):
    # As a script: the project's folder is looked into first, not this one, whose names are no apps.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import corpora, steward
from benchmarks.harness import arguments, finish, percentile, surroundings, table

if TYPE_CHECKING:
    from accounts.models import User

QUERIES = (
    "Where does she live now?",
    "What did we decide about the database?",
    "他喜欢喝什么茶?",
    "prefers short reports with the conclusion first",
    "allergic to peanuts",
)


@dataclass(frozen=True)
class Size:
    """How many conversations the steward reads. Facts of each measured owner, facts in the whole table, how often each
    query is asked, and how many vectors all facts share."""

    conversations: int
    owners: tuple[int, ...]
    whole: int
    repeats: int
    vectors: int = 1_000


FULL = Size(conversations=10, owners=(1_000, 20_000), whole=1_000_000, repeats=20)
QUICK = Size(conversations=2, owners=(1_000, 5_000), whole=50_000, repeats=5)
SMOKE = Size(conversations=2, owners=(200, 400), whole=2_000, repeats=1, vectors=100)
MADE_EXCHANGES = 30
# The emulator's light model costs what a light model does, so that the price of reading shows without a real one.
CATALOG = """
[models.emulator-light]
prices = { input = 0.1, output = 0.5, cache_read = 0.01, cache_write_5m = 0.125, cache_write_1h = 0.2 }
"""
# One vector of so many is near a query: of 1,000 facts 20 are near each of the five.
NEAR_ONE_IN = 10
NEAREST_COSINE = 0.95
# No budget ends a measurement.
UNBOUNDED = dict.fromkeys(
    (
        "MAXCLAW_BUDGET_USER_TOKENS",
        "MAXCLAW_BUDGET_USER_DOLLARS",
        "MAXCLAW_BUDGET_SERVER_TOKENS",
        "MAXCLAW_BUDGET_SERVER_DOLLARS",
    ),
    "1000000000",
)
PARTS = 20
OTHER_OWNERS = 200


@dataclass
class Timed:
    """Milliseconds of each search of one owner, of the facts alone and of the whole tool; facts found by each."""

    facts: list[float] = field(default_factory=list)
    tool: list[float] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    given = {name: os.environ.get(name, "") for name in ("ANTHROPIC_BASE_URL", "MAXCLAW_MODEL")}
    parser.add_argument(
        "--model-url",
        default=given["ANTHROPIC_BASE_URL"],
        help="a server that speaks the Messages API; ANTHROPIC_API_KEY is its key (default: ANTHROPIC_BASE_URL)",
    )
    parser.add_argument("--model", default=given["MAXCLAW_MODEL"], help="the server's model (default: MAXCLAW_MODEL)")
    options = parser.parse_args(argv)
    if options.model_url and not options.model and not options.smoke:
        parser.error(f"which model of {options.model_url}? Name it with --model or MAXCLAW_MODEL")
    size = SMOKE if options.smoke else QUICK if options.quick else FULL
    with surroundings(durable=options.durable, catalog=CATALOG, environment=UNBOUNDED | _model(options)):
        read = steward.measure(_conversations(options.data, size.conversations))
        steward.report(read)
        searches = measure_searches(size)
        finish("memory", read.figures() | _report_searches(size, searches))


def _model(options: argparse.Namespace) -> dict[str, str]:
    """The settings of the real model that is to be asked; none where the emulator is."""
    key = os.environ.get("ANTHROPIC_API_KEY", "")
    if options.smoke or not (key or options.model_url):
        return {}
    named = {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": options.model_url, "MAXCLAW_MODEL": options.model}
    return {name: value for name, value in named.items() if value}


def _conversations(data: Path | None, count: int) -> Iterator[corpora.Line]:
    if data is None:
        return corpora.tellers(count, MADE_EXCHANGES)
    told = (list(lines) for _name, lines in groupby(corpora.locomo(data), key=lambda line: line["conversation"]))
    return chain.from_iterable(islice(told, count))


def measure_searches(size: Size) -> dict[int, Timed]:
    """Fill the table, then search for each owner in turn."""
    owners = _fill(size)
    return {count: asyncio.run(_search(owner, size.repeats)) for count, owner in owners.items()}


def _fill(size: Size) -> dict[int, "User"]:
    """The facts of the measured owners spread among those of the others, as if all had been written over the years."""
    from django.db import connection

    from accounts.models import User

    others = [User.objects.create_user(f"other-{number}") for number in range(OTHER_OWNERS)]
    owners = {count: User.objects.create_user(f"owner-{count}") for count in size.owners}
    said = {owner.pk: _said(owner) for owner in (*others, *owners.values())}
    parts = min(PARTS, *size.owners)
    rest = size.whole - sum(size.owners)
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
        _make_vectors(cursor, size.vectors)
        # What they refuse is not written here, and asking of each of a million rows takes most of the time.
        _triggers(cursor, "DISABLE")
        for part in range(parts):
            _insert(cursor, {other.pk: said[other.pk] for other in others}, rest // parts)
            for count, owner in owners.items():
                _insert(cursor, {owner.pk: said[owner.pk]}, count // parts + (count % parts if part == 0 else 0))
        _triggers(cursor, "ENABLE")
        cursor.execute("VACUUM ANALYZE memory_fact, memory_factevidence, threads_message, threads_thread")
    return owners


def _triggers(cursor: Any, what: str) -> None:
    for table_name in ("memory_fact", "memory_factevidence"):
        cursor.execute(f"ALTER TABLE {table_name} {what} TRIGGER USER")


def _said(owner: "User") -> int:
    """The message that proves every fact of an owner."""
    from django.db import transaction

    from threads import transcript
    from threads.lifecycle import create_thread
    from threads.models import Message

    with transaction.atomic():
        thread = transcript.lock_thread(create_thread(owner).pk)
        words = "I said it all at once."
        blocks = [transcript.text_block(words)]
        generation = transcript.live_generation(thread)
        return transcript.append(thread, generation, Message.Role.USER, text=words, blocks=blocks).pk


def _make_vectors(cursor: Any, count: int) -> None:
    """Vectors of any direction, which are near no query, and among them some that are as near to one as found facts
    are, from just above the threshold to almost the same."""
    from llm import embedding

    # Loaded before anything is measured, as it is in a process that has searched before.
    backend = embedding.configured()
    asked = backend.embed(QUERIES)
    made = np.random.default_rng(5).normal(size=(count, asked.shape[1]))
    near = np.arange(0, count, NEAR_ONE_IN)
    towards = asked[np.arange(near.size) % len(QUERIES)]
    # What is left of a vector when the part along the query is taken out has a cosine of 0 to it.
    across = made[near] - np.sum(made[near] * towards, axis=1, keepdims=True) * towards
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    cosines = np.linspace(backend.thresholds.recall + 0.01, NEAREST_COSINE, near.size)[:, None]
    made[near] = cosines * towards + np.sqrt(1 - cosines**2) * across
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    cursor.execute("CREATE TEMPORARY TABLE made_vector (id integer PRIMARY KEY, embedding vector)")
    with cursor.copy("COPY made_vector (id, embedding) FROM STDIN") as copy:
        for number, vector in enumerate(made):
            copy.write_row((number, "[" + ",".join(f"{value:.7g}" for value in vector) + "]"))


def _insert(cursor: Any, said: Mapping[int, int], count: int) -> None:
    """Facts of the owners in turn, each proved by its owner's message."""
    from llm import embedding

    cursor.execute(
        """
        WITH made AS (
        INSERT INTO memory_fact (owner_id, text, kind, aspect, applies_to, tone, project, scope, category, status,
                                 writer, legacy, graduated_rule, graduated_commit, why, fingerprint, embedding,
                                 embedding_model, created, changed)
        SELECT (%(owners)s::bigint[])[1 + place %% cardinality(%(owners)s::bigint[])],
               'Something of the usual length that somebody said once about themselves, number ' || place,
               'about-user', 'fact', '', CASE WHEN place %% 4 = 0 THEN 'decision' ELSE 'remark' END, '', 'open', '',
               'active', 'steward', false, '', '', '', 'made', made_vector.embedding, %(model)s, now(), now()
        FROM (
            SELECT place, floor(random() * (SELECT count(*) FROM made_vector))::int AS vector
            FROM generate_series(1, %(count)s) AS place
        ) AS wanted
        JOIN made_vector ON made_vector.id = wanted.vector
        RETURNING id, owner_id
        )
        INSERT INTO memory_factevidence (fact_id, owner_id, kind, message_id, created)
        SELECT made.id, made.owner_id, 'max-stated', said.message, now()
        FROM made
        JOIN unnest(%(owners)s::bigint[], %(messages)s::bigint[]) AS said (owner, message) ON said.owner = made.owner_id
        """,
        {
            "owners": list(said),
            "messages": list(said.values()),
            "count": count,
            "model": embedding.configured().name,
        },
    )


async def _search(owner: "User", repeats: int) -> Timed:
    from maxclaw.database_threads import in_database
    from memory import fact_search, searching
    from memory.query_vectors import QueryVectors
    from threads.lifecycle import create_thread
    from threads.visibility import Viewer

    viewer = Viewer.of_thread(await in_database(create_thread, owner))
    timed = Timed()
    for warm in (False, *[True] * repeats):
        for query in QUERIES:
            began = time.perf_counter()
            found = await fact_search.find(viewer, QueryVectors(query, ""))
            between = time.perf_counter()
            answer = await searching.search(viewer, query)
            ended = time.perf_counter()
            if not found.hits or answer.facts != found.hits:
                raise SystemExit(f"{query!r} found {len(found.hits)} facts and the tool {len(answer.facts)}.")
            if warm:
                timed.hits.append(len(found.hits))
                timed.facts.append((between - began) * 1000)
                timed.tool.append((ended - between) * 1000)
    return timed


def _report_searches(size: Size, searches: dict[int, Timed]) -> dict[str, Any]:
    table(
        f"Searches among {size.whole:,} facts: milliseconds",
        ["facts of the owner", "searches", "fewest found", "facts p50", "p95", "tool p50", "p95"],
        [
            [
                f"{count:,}",
                len(timed.facts),
                min(timed.hits),
                *(percentile(times, share) for times in (timed.facts, timed.tool) for share in (0.5, 0.95)),
            ]
            for count, timed in searches.items()
        ],
    )
    return {
        "facts_in_the_table": size.whole,
        "search_p95_ms": {str(count): round(percentile(timed.facts, 0.95), 1) for count, timed in searches.items()},
        "fewest_facts_found": {str(count): min(timed.hits) for count, timed in searches.items()},
        "tool_p95_ms": {str(count): round(percentile(timed.tool, 0.95), 1) for count, timed in searches.items()},
    }


if __name__ == "__main__":
    main()
