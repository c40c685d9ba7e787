"""What the steward makes of conversations, and whether it holds: measured for `benchmarks/memory.py`."""

import asyncio
import io
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.corpora import Line
from benchmarks.harness import table
from benchmarks.steward_evidence import proved

if TYPE_CHECKING:
    from accounts.models import User
    from memory.models import Fact

# Longer than a conversation has to rest before it is read.
REST_SECONDS = 660
DAY_SECONDS = 86_400.0
DUPLICATE_COSINE = 0.95

USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")


@dataclass(frozen=True)
class Steward:
    """What one run over all conversations came to; `calls_again` is what a second run asked for."""

    conversations: int
    readable: int
    digested_once: bool
    pages: int
    facts: int
    standing: int
    evidence: int
    evidence_valid: int
    words_share: float | None
    duplicates: int
    calls: int
    failed_calls: int
    tokens: int
    cost: float | None
    seconds: float
    calls_again: int

    def figures(self) -> dict[str, Any]:
        """For the line of JSON; a share of nothing is null."""
        return {
            "conversations": self.conversations,
            "messages": self.readable,
            "digested_once": self.digested_once,
            "facts": self.facts,
            "evidence_valid_share": _share(self.evidence_valid, self.evidence),
            "evidence_words_share": self.words_share,
            "duplicate_share": _share(self.duplicates, self.standing),
            "steward_calls": self.calls,
            "steward_calls_failed": self.failed_calls,
            "steward_calls_again": self.calls_again,
            "steward_tokens": self.tokens,
            "steward_dollars": self.cost,
            "steward_seconds": self.seconds,
        }


def measure(lines: Iterable[Line]) -> Steward:
    """Import conversations, each for a person of its own, and have them read until nothing is left, then once more."""
    from maxclaw import clock
    from memory import fact_embedding

    owners = [_import(name, list(told)) for name, told in groupby(lines, key=lambda line: line["conversation"])]
    began = time.perf_counter()
    with clock.moved(REST_SECONDS):
        pages = _read_all()
        seconds = time.perf_counter() - began
        asked = _calls().count()
        _read_all()
    calls_again = _calls().count() - asked
    fact_embedding.embed_facts()
    return _judged(owners, pages, seconds, calls_again)


def report(found: Steward) -> None:
    """For people."""
    table(
        f"The steward over {found.conversations} conversations",
        ["", "number"],
        [
            ["rows to read", found.readable],
            ["pages read", found.pages],
            ["each row read once", "yes" if found.digested_once else "no"],
            ["calls", found.calls],
            ["calls that failed", found.failed_calls],
            ["calls of a second run", found.calls_again],
            ["tokens", found.tokens],
            ["dollars by list price", "unknown" if found.cost is None else f"{found.cost:.4f}"],
            ["seconds", found.seconds],
            ["facts written", found.facts],
            ["facts that stand", found.standing],
            ["evidence, and of it valid by its rows", f"{found.evidence:,} / {found.evidence_valid:,}"],
            ["share of a fact's words in its rows", "–" if found.words_share is None else f"{found.words_share:.2f}"],
            ["facts that repeat an earlier one", found.duplicates],
        ],
    )


def repeats(vectors: Sequence[Any]) -> int:
    """How many of some vectors of length 1 are as good as the same as an earlier one."""
    if len(vectors) < 2:
        return 0
    stacked = np.stack(vectors)
    return int(np.any(np.tril(stacked @ stacked.T, k=-1) >= DUPLICATE_COSINE, axis=1).sum())


def _import(name: str, lines: Sequence[Line]) -> "User":
    from accounts.models import User
    from agent.import_run import ImportRun, Report

    owner = User.objects.create_user(f"person-{name}")
    file = io.BytesIO("\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode())
    report = Report()
    ImportRun(owner, report).take(file, f"{name}.jsonl")
    if report.added != len(lines):
        raise SystemExit(f"{report.added:,} of the {len(lines):,} messages of {name} were imported.")
    return owner


def _read_all() -> int:
    """Let the steward read until it reads no more: how many pages it read."""
    from memory import steward

    pages = 0
    while read := asyncio.run(steward.drain(thorough=True, seconds=DAY_SECONDS)):
        pages += read
    return pages


def _calls() -> Any:
    from llm.models import ModelCall

    return ModelCall.objects.filter(purpose=ModelCall.Purpose.STEWARD)


def _judged(owners: Sequence["User"], pages: int, seconds: float, calls_again: int) -> Steward:
    from llm.models import ModelCall
    from memory import backlog
    from memory.models import Digest, Fact
    from threads.models import Message

    readable = sorted(
        Message.objects.filter(backlog.readable(), owner__in=owners).values_list("pk", flat=True).order_by()
    )
    digested = sorted(Digest.objects.filter(owner__in=owners).values_list("message_id", flat=True).order_by())
    facts = list(Fact.objects.filter(owner__in=owners).order_by("pk"))
    found = proved([owner.pk for owner in owners])
    standing = [fact for fact in facts if fact.status == Fact.Status.ACTIVE]
    calls = list(_calls())
    costs = [call.cost for call in calls]
    return Steward(
        conversations=len(owners),
        readable=len(readable),
        digested_once=digested == readable,
        pages=pages,
        facts=len(facts),
        standing=len(standing),
        evidence=found.pieces,
        evidence_valid=found.valid,
        words_share=found.words_share,
        duplicates=_duplicates(standing),
        calls=len(calls),
        failed_calls=sum(call.outcome != ModelCall.Outcome.COMPLETE for call in calls),
        tokens=sum(getattr(call, name) or 0 for call in calls for name in USAGE),
        cost=None if None in costs else float(sum(cost for cost in costs if cost is not None)),
        seconds=seconds,
        calls_again=calls_again,
    )


def _duplicates(facts: Sequence["Fact"]) -> int:
    """How many facts say what an earlier one of the same person says of the same thing."""
    same: dict[tuple[int, str], list[Any]] = defaultdict(list)
    for fact in facts:
        if fact.embedding is not None:
            same[fact.owner_id, fact.applies_to].append(np.asarray(fact.embedding, dtype=np.float32))
    return sum(map(repeats, same.values()))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
