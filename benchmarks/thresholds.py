"""From which cosines two texts count as alike, by one embedding model: the thresholds that a backend declares.

Cosines of different models are not comparable. What is carried over from model to model is what a threshold does: how
many unrelated pairs of a question and a fact of the same conversation pass it by chance. With all-MiniLM-L6-v2, an
English model of the usual scale, 0.83 % of the unrelated pairs of LoCoMo reach 0.70 (recall: a search answers with such
facts) and 14.8 % reach 0.50 (briefing: an opening mentions them). So the threshold to declare for a model is the cosine
that as many of its unrelated pairs reach. Beside it stand the share of related pairs that pass, and the share of
questions of which a fact that answers is among the first 8 that pass: what a search without any words would find.

Measured are the configured model of the settings' default, which is the local one, or with `--url` and `--model` one of
a server (key: MAXCLAW_EMBEDDING_API_KEY). With `--data`, pairs are the questions and observed facts of LoCoMo; without,
a few made ones in English and Chinese: enough to see that it runs, and not to calibrate.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if __package__ in (None, ""):
    # As a script: the project's folder is looked into first, not this one, whose names are no apps.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import questions
from benchmarks.harness import arguments, finish, table

if TYPE_CHECKING:
    from llm.embedding import EmbeddingBackend

# The shares of unrelated pairs that 0.70 and 0.50 let pass with all-MiniLM-L6-v2.
UNRELATED_SHARES = {"recall": 0.0083, "briefing": 0.148}
SHOWN = 8
QUICK_CONVERSATIONS = 3

Cosines = NDArray[np.float32]


@dataclass(frozen=True)
class Measured:
    """Cosines of one conversation: questions by facts, and which of the pairs belong together."""

    cosines: Cosines
    related: NDArray[np.bool_]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--url", help="a server with the OpenAI shape of /v1/embeddings; the local model without it")
    parser.add_argument("--model", help="the server's model")
    options = parser.parse_args(argv)
    if bool(options.url) != bool(options.model):
        parser.error("--url and --model go together")
    observed = list(questions.locomo_facts(options.data)) if options.data else [questions.made_facts()]
    if options.quick or options.smoke:
        observed = observed[:QUICK_CONVERSATIONS]
    backend = _backend(options.url, options.model)
    measured = [_measure(backend, facts) for facts in observed]
    suggested = suggest(measured)
    declared = {name: getattr(backend.thresholds, name) for name in UNRELATED_SHARES}
    figures = {
        name: {"declared": declared[name], "measured": suggested[name], **rates(measured, declared[name])}
        for name in UNRELATED_SHARES
    }
    _report(backend.name, measured, suggested, declared)
    finish("thresholds", {"model": backend.name, "published": bool(options.data), **figures})


def suggest(measured: Iterable[Measured]) -> dict[str, float]:
    """The cosines that as many unrelated pairs reach as is known to be right, by name of the threshold."""
    apart = np.concatenate([one.cosines[~one.related] for one in measured])
    return {name: round(float(np.quantile(apart, 1 - share)), 3) for name, share in UNRELATED_SHARES.items()}


def rates(measured: Sequence[Measured], least: float) -> dict[str, float]:
    """What a threshold does: shares of related and of unrelated pairs that pass, and of questions answered by one of
    the first SHOWN facts that pass."""
    together = np.concatenate([one.cosines[one.related] for one in measured])
    apart = np.concatenate([one.cosines[~one.related] for one in measured])
    answered = [share for one in measured for share in _answered(one, least)]
    return {
        "related_share": round(float((together >= least).mean()), 4),
        "unrelated_share": round(float((apart >= least).mean()), 4),
        "answered_share": round(float(np.mean(answered)), 4),
    }


def _answered(one: Measured, least: float) -> list[bool]:
    """Of each question that has a fact: whether one is among the first that pass."""
    answered = []
    for cosines, related in zip(one.cosines, one.related, strict=True):
        if related.any():
            first = np.argsort(-cosines, kind="stable")[:SHOWN]
            answered.append(bool((related[first] & (cosines[first] >= least)).any()))
    return answered


def _measure(backend: "EmbeddingBackend", facts: questions.Facts) -> Measured:
    asked = backend.embed([text for text, _evidence in facts.questions])
    known = backend.embed([text for text, _turn in facts.facts])
    turns = [turn for _text, turn in facts.facts]
    related = np.array([[turn in evidence for turn in turns] for _text, evidence in facts.questions])
    return Measured(asked @ known.T, related)


def _backend(url: str | None, model: str | None) -> "EmbeddingBackend":
    from django.conf import settings

    from llm.embedding import Thresholds
    from llm.embedding_http import HttpBackend
    from llm.embedding_local import LocalBackend

    if url is None or model is None:
        return LocalBackend()
    if not settings.configured:
        settings.configure(MODEL_RETRIES=3, MODEL_RETRY_BASE_SECONDS=0.5)
    # Nothing is declared yet: the usual scale is shown beside what is measured.
    return HttpBackend(url, model, os.environ.get("MAXCLAW_EMBEDDING_API_KEY", ""), Thresholds(0.70, 0.50))


def _report(name: str, measured: Sequence[Measured], suggested: dict[str, float], declared: dict[str, float]) -> None:
    related = sum(int(one.related.sum()) for one in measured)
    pairs = sum(one.related.size for one in measured)
    rows: list[list[Any]] = []
    for threshold in UNRELATED_SHARES:
        for what, least in (("declared", declared[threshold]), ("as many unrelated", suggested[threshold])):
            found = rates(measured, least)
            shares = [f"{found[share]:.2%}" for share in ("related_share", "unrelated_share", "answered_share")]
            rows.append([f"{threshold}, {what}", f"{least:.3f}", *shares])
    table(
        f"Thresholds of {name}: {related:,} related and {pairs - related:,} unrelated pairs",
        ["threshold", "cosine", "related", "unrelated", f"answered in {SHOWN}"],
        rows,
    )


if __name__ == "__main__":
    main()
