"""How much of the evidence for a question a search brings into 12,000 characters, the same for each way, over the same
messages:

- both: the tool's own result, the literal part before the part by meaning;
- literal: the literal part's hits alone, all that fit, and not only its 8,000 characters of the best ones;
- meaning: the part by meaning alone as the tool writes it, words and cosine fused;
- cosine: the same by cosine alone, its neighbours counted;
- bm25, embedding: whole messages, ranked by plain BM25 and by the bare cosine.
"""

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import percentile, table
from benchmarks.questions import LOCOMO, Conversation, Question

if TYPE_CHECKING:
    from accounts.models import User
    from threads.models import Thread

WAYS = ("literal", "meaning", "both", "bm25", "embedding", "cosine")
ANSWERABLE = ("1 ", "2 ", "3 ", "4 ")
ID = re.compile(r"\bm:(\d+)")
SEED = 7


@dataclass
class Figures:
    """Shares of evidence found, by way and group of questions; the longest result in characters; milliseconds of the
    whole search."""

    shares: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    longest: int = 0
    milliseconds: list[float] = field(default_factory=list)
    messages: int = 0
    chunks_per_second: float = 0.0

    def mean(self, way: str, groups: Iterable[str]) -> float:
        values = [share for group in groups for share in self.shares[way].get(group, [])]
        return float(np.mean(values)) if values else 0.0

    @property
    def groups(self) -> list[str]:
        return list(self.shares["both"])

    @property
    def headline(self) -> list[str]:
        """The groups that the recall in the last line is about: answerable ones of LoCoMo, or all."""
        return [group for group in self.groups if group.startswith(ANSWERABLE)] or self.groups


def measure(owner: "User", conversations: Iterable[Conversation], most: int | None = None) -> Figures:
    """Store conversations, embed them, and ask: all questions of each, or `most` drawn of each, always the same."""
    from memory import embedding_work

    figures = Figures()
    for conversation in conversations:
        thread, ids = _stored(owner, conversation)
        began = time.perf_counter()
        chunks = embedding_work.embed_some(thread.pk, seconds=3_600)
        figures.chunks_per_second = chunks / (time.perf_counter() - began)
        figures.messages += len(ids)
        asked = conversation.questions
        if most is not None and len(asked) > most:
            asked = random.Random(SEED).sample(asked, most)
        _ask(thread, ids, asked, figures)
    return figures


def _stored(owner: "User", conversation: Conversation) -> tuple["Thread", list[int]]:
    from django.db import transaction

    from threads import transcript
    from threads.lifecycle import create_thread
    from threads.models import Message

    with transaction.atomic():
        thread = transcript.lock_thread(create_thread(owner, title=conversation.corpus).pk)
        rows = [
            transcript.NewMessage(Message.Role.USER, text=text, blocks=[transcript.text_block(text)], created=created)
            for text, created in conversation.messages
        ]
        stored = transcript.append_many(thread, transcript.live_generation(thread), rows)
    return thread, [message.pk for message in stored]


def _ask(thread: "Thread", ids: Sequence[int], questions: Sequence[Question], figures: Figures) -> None:
    from threads import lexical
    from threads.models import Message

    texts = dict(Message.objects.filter(thread=thread).values_list("pk", "text"))
    baseline = lexical.Corpus(texts.items())
    vectors = _vectors(ids, texts)
    for question in questions:
        evidence = {ids[place] for place in question.evidence}
        for way, text in _results(thread, question.text, baseline, vectors, texts, figures).items():
            found = {int(number) for number in ID.findall(text)} & evidence
            figures.shares[way][question.group].append(len(found) / len(evidence))


def _results(
    thread: "Thread",
    query: str,
    baseline: Any,
    vectors: tuple[Sequence[int], Any],
    texts: Mapping[int, str],
    figures: Figures,
) -> dict[str, str]:
    """The result of each way as text."""
    from llm.embedding import Thresholds
    from memory.meaning_range import reach
    from memory.meaning_search import meaning_search
    from memory.merging import merged
    from memory.query_vectors import compared
    from memory.searching import result_text
    from threads.literal_search import literal_search
    from threads.visibility import Viewer

    viewer = Viewer.of_thread(thread)
    began = time.perf_counter()
    literal = literal_search(viewer, thread.channel, query)
    searched = reach(viewer, thread.channel)
    assert searched.model is not None
    asked = compared([query], searched.model, searched.category)
    assert asked is not None
    found = meaning_search(searched, query, asked)
    both = result_text(query, found, None, literal, thread.channel)
    figures.milliseconds.append((time.perf_counter() - began) * 1000)
    figures.longest = max(figures.longest, len(both))
    everything = Thresholds(recall=-1.0, briefing=-1.0)
    by_cosine = meaning_search(searched, "", replace(asked, thresholds=everything))
    scores = baseline.scores(query)
    known, matrix = vectors
    cosines = matrix @ asked.vectors[0]
    return {
        "literal": _literal_alone(viewer, thread.channel, query),
        "meaning": merged(None, _other(query, found.hits, thread.channel)),
        "cosine": merged(None, _other(query, by_cosine.hits, thread.channel)),
        "both": both,
        "bm25": _listed(sorted(scores, key=lambda pk: -scores[pk]), texts),
        "embedding": _listed([known[place] for place in np.argsort(-cosines)], texts),
    }


def _literal_alone(viewer: Any, channel: str, query: str) -> str:
    """The literal part with the room of the whole result, and without what it leaves to the other part."""
    from unittest import mock  # constants of the product, for the length of a call

    from threads import literal_search, literal_windows
    from threads.history import SEARCH_RESULT_MAX_CHARS

    with (
        mock.patch.object(literal_windows, "LITERAL_MAX_CHARS", SEARCH_RESULT_MAX_CHARS),
        mock.patch.object(literal_search, "WORDS_SHOWN_MAX", literal_windows.SHOWN_MAX),
        mock.patch.object(literal_search, "WORDS_SHOWN_SHARE", 0.0),
    ):
        return literal_search.literal_search(viewer, channel, query).text


def _other(query: str, hits: Sequence[Any], channel: str) -> Callable[[int], str]:
    from memory.excerpts import render

    return lambda room: render(hits, query, room, channel=channel).text


def _listed(ids: Sequence[int], texts: Mapping[int, str]) -> str:
    """Whole messages, best first, as many as the bound holds: what a plain ranker would give."""
    from threads.history import SEARCH_RESULT_MAX_CHARS

    lines: list[str] = []
    room = SEARCH_RESULT_MAX_CHARS
    for pk in ids:
        line = f"m:{pk} user: {texts[pk]}"
        if len(line) + 1 > room:
            break
        lines.append(line)
        room -= len(line) + 1
    return "\n".join(lines)


def _vectors(ids: Sequence[int], texts: Mapping[int, str]) -> tuple[Sequence[int], Any]:
    """The vector of each message, of its first chunk where it has several."""
    from memory.models import MessageChunk

    stored = dict(MessageChunk.objects.filter(message_id__in=ids, offset=0).values_list("message_id", "embedding"))
    known = [pk for pk in ids if pk in stored]
    return known, np.stack([np.asarray(stored[pk], dtype=np.float32) for pk in known])


def report(figures: Figures) -> dict[str, Any]:
    """Print the tables; returns what the last line says."""
    groups = figures.groups
    rows: list[list[Any]] = [
        [group, len(figures.shares["both"][group]), *(f"{figures.mean(way, [group]):.3f}" for way in WAYS)]
        for group in sorted(groups)
    ]
    headline = figures.headline
    if any(group.startswith(ANSWERABLE) for group in headline):
        count = sum(len(figures.shares["both"][group]) for group in headline)
        rows.append([f"{LOCOMO}, 1 to 4", count, *(f"{figures.mean(way, headline):.3f}" for way in WAYS)])
    table(
        "Share of the evidence within 12,000 characters",
        ["questions", "count", "literal alone", "meaning alone", "both", "BM25", "bare embedding", "cosine alone"],
        rows,
    )
    table(
        "The whole search: milliseconds",
        ["messages", "questions", "p50", "p95", "longest result"],
        [
            [
                f"{figures.messages:,}",
                len(figures.milliseconds),
                percentile(figures.milliseconds, 0.5),
                percentile(figures.milliseconds, 0.95),
                figures.longest,
            ]
        ],
    )
    return {
        "recall": {way: round(figures.mean(way, headline), 3) for way in WAYS},
        "recall_by_group": {group: round(figures.mean("both", [group]), 3) for group in sorted(groups)},
        "result_chars_max": figures.longest,
        "search_ms_p50": percentile(figures.milliseconds, 0.5),
        "search_ms_p95": percentile(figures.milliseconds, 0.95),
        "chunks_embedded_per_second": figures.chunks_per_second,
    }
