"""Published conversations of two people: imported and continued, and searched for the evidence of questions.

Asks the questions that `DIR/locomo/locomo10.json` brings, and those of a Chinese and a cross-lingual data set beside
it, and counts how much of the evidence each part of a search brings into its 12,000 characters, beside BM25 and the
bare embedding. Then it turns the conversations (10, with 5,882 turns) into the JSON lines that `import_conversations`
reads, imports them, imports them again, imports one history that is larger than a context, and asks a question in
imported conversations until its answer has streamed in. The baseline beside the import is `bulk_create` of as many
rows. Without `--data` the conversations are made in code. `--convert OUT` only writes the JSON lines.
"""

import asyncio
import io
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, ""):
    # As a script: the project's folder is looked into first, not this one, whose names are no apps.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks import corpora, evidence, questions
from benchmarks.harness import arguments, finish, percentile, surroundings, table

if TYPE_CHECKING:
    from accounts.models import User
    from threads.models import Thread

QUESTION = "What did we talk about last?"
ANSWER = "You talked about what stands last in this conversation. " * 5
ANSWER_SECONDS = 60.0


PUBLISHED_CONVERSATIONS, PUBLISHED_MESSAGES = 10, 5_882


@dataclass(frozen=True)
class Size:
    """How much is made in code, and in how many conversations a question is asked."""

    conversations: int
    turns: int
    long_exchanges: int
    questions: int
    searched: int | None  # questions of each conversation whose evidence is searched for; None: all


# 4,000 exchanges are more than the emulator's context budget holds.
FULL = Size(conversations=10, turns=588, long_exchanges=4_000, questions=10, searched=None)
QUICK = Size(conversations=10, turns=588, long_exchanges=4_000, questions=3, searched=8)
SMOKE = Size(conversations=2, turns=20, long_exchanges=50, questions=1, searched=3)


@dataclass(frozen=True)
class Imported:
    """One run of the command: messages in the file, seconds, and what it said."""

    messages: int
    seconds: float
    said: str = ""

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


@dataclass(frozen=True)
class Asked:
    """One question: milliseconds to the first words and to the end of its answer."""

    first_words: float
    answer: float


def main(argv: Sequence[str] | None = None) -> None:
    """Convert, or measure and print."""
    parser = arguments(__doc__)
    parser.add_argument("--convert", type=Path, metavar="OUT", help="only write the JSON lines of --data to this file")
    options = parser.parse_args(argv)
    if options.convert is not None:
        if options.data is None:
            parser.error("--convert needs --data, the folder that holds locomo/")
        print(f"{corpora.write_lines(corpora.locomo(options.data), options.convert):,} lines written")
        return
    size = SMOKE if options.smoke else QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory() as folder, surroundings(durable=options.durable) as emulator:
        emulator.answer(ANSWER, times=-1)
        several, long = Path(folder) / "several.jsonl", Path(folder) / "long.jsonl"
        made = corpora.two_people(size.conversations, size.turns)
        count = corpora.write_lines(corpora.locomo(options.data) if options.data else made, several)
        if options.data and count != PUBLISHED_MESSAGES:
            raise SystemExit(
                f"{options.data} holds {count:,} messages, not the {PUBLISHED_MESSAGES:,} that were published."
            )
        long_count = corpora.write_lines(corpora.long_one(size.long_exchanges), long)
        found = _search(options.data, size)
        _measure(several, count, long, long_count, size.questions, found)


def _search(data: Path | None, size: Size) -> dict[str, Any]:
    """How much evidence searches find, on a person's account of its own."""
    from accounts.models import User

    conversations = questions.published(data) if data else questions.made(size.turns)
    return evidence.report(evidence.measure(User.objects.create_user("reader"), conversations, size.searched))


def _measure(several: Path, count: int, long: Path, long_count: int, questions: int, found: dict[str, Any]) -> None:
    from accounts.models import User
    from threads.models import Generation, Message, Thread

    owner = User.objects.create_user("owner")
    runs = {
        "first import": _import(several, count, owner),
        "the same again": _import(several, count, owner),
        "one larger than a context": _import(long, long_count, owner),
        "bulk_create alone": _bare_insert(owner, count),
    }
    imported = Thread.objects.filter(owner=owner, kind=Thread.Kind.WEB)
    stored = Message.objects.filter(thread__in=imported).count()
    if stored != count + long_count:
        raise SystemExit(f"{stored:,} messages were stored, not {count + long_count:,}.")
    long_thread = imported.get(title=corpora.LONG_TITLE)
    others = imported.exclude(pk=long_thread.pk).order_by("pk")
    conversations = others.count()
    if count == PUBLISHED_MESSAGES and conversations != PUBLISHED_CONVERSATIONS:
        raise SystemExit(f"{conversations} conversations were stored, not {PUBLISHED_CONVERSATIONS}.")
    generations = Generation.objects.filter(thread=long_thread).count()
    asked = asyncio.run(_ask_all(owner, [long_thread, *others[:questions]]))
    _report(runs, asked)
    finish(
        "locomo",
        {
            "conversations": conversations,
            "messages": count,
            "messages_per_second": runs["first import"].rate,
            "messages_per_second_again": runs["the same again"].rate,
            "messages_per_second_dealt": runs["one larger than a context"].rate,
            "messages_per_second_bulk_create": runs["bulk_create alone"].rate,
            "generations_of_the_long_one": generations,
            "questions_answered": len(asked),
            "first_words_ms_p50": percentile([one.first_words for one in asked], 0.5),
            "answer_ms_p50": percentile([one.answer for one in asked], 0.5),
            **found,
        },
    )


def _report(runs: dict[str, Imported], asked: Sequence[Asked]) -> None:
    table(
        "Import",
        ["", "messages", "seconds", "messages/s", "summary"],
        [[name, run.messages, run.seconds, run.rate, run.said.partition(".")[0]] for name, run in runs.items()],
    )
    firsts, answers = [one.first_words for one in asked], [one.answer for one in asked]
    table(
        "A question in an imported conversation: milliseconds",
        ["", "questions", "first words p50", "answer p50", "answer max"],
        [["streamed answers", len(asked), percentile(firsts, 0.5), percentile(answers, 0.5), max(answers)]],
    )


def _import(file: Path, messages: int, owner: "User") -> Imported:
    from django.core.management import call_command

    said = io.StringIO()
    began = time.perf_counter()
    call_command("import_conversations", str(file), user=owner.username, stdout=said)
    return Imported(messages, time.perf_counter() - began, said.getvalue())


def _bare_insert(owner: "User", count: int) -> Imported:
    """What the database and the ORM need for so many rows by themselves. The rows are taken back."""
    from django.db import transaction

    from threads.lifecycle import create_thread
    from threads.models import Message
    from threads.transcript import live_generation

    words = "I keep thinking about the garden. Remember the choir. Tell me more about a recipe."
    wire = json.dumps([{"type": "text", "text": words}])
    with transaction.atomic():
        thread = create_thread(owner, title="bare")
        place = {"thread": thread, "owner": owner, "generation": live_generation(thread)}
        rows = [
            Message(**place, role=Message.Role.USER, text=words, search_text=words, wire=wire)
            for _number in range(count)
        ]
        began = time.perf_counter()
        Message.objects.bulk_create(rows, batch_size=500)
        seconds = time.perf_counter() - began
        transaction.set_rollback(True)
    return Imported(count, seconds)


async def _ask_all(owner: "User", threads: Sequence["Thread"]) -> list[Asked]:
    from agent.bell import Bell
    from agent.runner import Runner

    await Bell.shared().start()
    runner = Runner()
    await runner.start()
    asked = [await _ask(owner, thread) for thread in threads]
    await runner.stop()
    await Bell.shared().stop()
    return asked


async def _ask(owner: "User", thread: "Thread") -> Asked:
    """Ask one question and listen as an open page does: first words, then the state in which no turn runs."""
    from agent.bell import Bell
    from agent.sending import send
    from maxclaw.database_threads import in_database
    from threads.models import Message

    moments: dict[str, float] = {}
    rests = asyncio.Event()

    async def on_event(ring: dict[str, Any]) -> None:
        if ring["thread"] == thread.pk:
            moments.setdefault(ring["kind"], time.perf_counter())
            if ring["kind"] == "state" and "delta" in moments and ring["body"]["turn"] is None:
                rests.set()

    unsubscribe = Bell.shared().subscribe("event", on_event)
    began = time.perf_counter()
    await in_database(send, owner, thread.channel, QUESTION, client_key="question")
    await asyncio.wait_for(rests.wait(), ANSWER_SECONDS)
    ended = time.perf_counter()
    unsubscribe()
    newest = await in_database(Message.objects.filter(thread=thread).order_by("-pk").first)
    if newest is None or newest.text.strip() != ANSWER.strip():
        raise SystemExit(f"The question in {thread.title} was not answered.")
    return Asked((moments["delta"] - began) * 1000, (ended - began) * 1000)


if __name__ == "__main__":
    main()
