"""Conversations to measure on, as the lines that `import_conversations` reads: published ones, and others made in code,
always the same."""

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Line = dict[str, Any]
Exchange = tuple[str, str]

LOCOMO_FILE = "locomo/locomo10.json"
SESSION_TIME_FORMATS = ("%I:%M %p on %d %B, %Y", "%I:%M %p on %d %b, %Y")
TRACES_FILE = "tau-bench/gpt-4o-airline.json"
TRACES_TOGETHER = 16
SECONDS_BETWEEN_TURNS = 30
SEED = 20_260_101
TOPICS = ("the garden", "the new job", "a trip to Lisbon", "the choir", "old photographs", "the marathon", "a recipe")
MOODS = ("I keep thinking about", "You would not believe", "Tell me more about", "I finally finished", "Remember")
LONG_TITLE = "A long one"
TOOL_OUTPUT_FILES = ("terminal-logs/**/*.log", "tau-bench/*.json", "memdaily-zh/**/*.json")
TEXT_PER_FILE = 4_000_000
MADE_CHARS = 1_000_000


def locomo(folder: Path) -> Iterator[Line]:
    """The messages of the LoCoMo conversations in a folder of data sets: each a user's, with the speaker's name. A
    picture shared in a turn is told by its caption."""
    for sample in json.loads((folder / LOCOMO_FILE).read_text(encoding="utf-8")):
        conversation = sample["conversation"]
        numbers = sorted(
            int(key.removeprefix("session_"))
            for key, value in conversation.items()
            if key.startswith("session_") and isinstance(value, list)
        )
        title = f"{conversation['speaker_a']} and {conversation['speaker_b']}"
        for number in numbers:
            began = session_time(conversation[f"session_{number}_date_time"])
            for place, turn in enumerate(conversation[f"session_{number}"]):
                picture = f"[shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                yield {
                    "conversation": sample["sample_id"],
                    "title": title,
                    "id": turn["dia_id"],
                    "role": "user",
                    "name": turn["speaker"],
                    "text": " ".join(filter(None, [turn["text"].strip(), picture])),
                    "created": (began + timedelta(seconds=SECONDS_BETWEEN_TURNS * place)).isoformat(),
                }


def agent_traces(folder: Path, conversations: int) -> Iterator[Line]:
    """The first published traces of an agent with a customer, several to a conversation, so that each fills a long
    context: what was said, and what tools put out."""
    began = datetime(2024, 5, 15, 9, tzinfo=UTC)
    traces = json.loads((folder / TRACES_FILE).read_text(encoding="utf-8"))
    for number, trace in enumerate(traces[: conversations * TRACES_TOGETHER]):
        for place, message in enumerate(trace["traj"]):
            text = str(message.get("content") or "").strip()
            if message["role"] not in ("user", "assistant", "tool") or not text:
                continue
            yield {
                "conversation": f"trace-{number // TRACES_TOGETHER}",
                "title": f"Traces, {number // TRACES_TOGETHER}",
                "id": f"{number}:{place}",
                "role": message["role"],
                "text": text,
                "created": (began + timedelta(hours=number, seconds=SECONDS_BETWEEN_TURNS * place)).isoformat(),
            }


def held_back(lines: Sequence[Line], exchanges: int) -> tuple[list[Line], dict[str, list[Exchange]]]:
    """The lines without the last ones of each conversation, and those as so many exchanges of what somebody said and
    what was answered, by conversation. What tools put out is nobody's words: it stays, or is left out of the end."""
    by_conversation: dict[str, list[Line]] = {}
    for line in lines:
        by_conversation.setdefault(line["conversation"], []).append(line)
    first, last = [], {}
    for name, listed in by_conversation.items():
        end = len(listed)
        said: list[Exchange] = []
        answer: str | None = None
        while end and len(said) < exchanges:
            end -= 1
            line = listed[end]
            words = ": ".join(filter(None, [line.get("name"), line["text"]]))
            if line["role"] == "tool":
                continue
            if answer is None:
                answer = words
            elif line["role"] == "user":
                said.insert(0, (words, answer))
                answer = None
        first += listed[:end]
        last[name] = said
    return first, last


def session_time(text: str) -> datetime:
    """When a session began, such as `1:56 pm on 8 May, 2023`; the data names no zone. Raises ValueError."""
    for form in SESSION_TIME_FORMATS:
        try:
            return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is no time of a session")


def two_people(conversations: int, turns: int) -> Iterator[Line]:
    """Conversations of two people in the same form, always the same ones."""
    chance = random.Random(SEED)
    for number in range(conversations):
        began = datetime(2023, 1, 1, 9, tzinfo=UTC) + timedelta(days=number)
        for place in range(turns):
            words = " ".join(f"{chance.choice(MOODS)} {chance.choice(TOPICS)}." for _part in range(3))
            yield {
                "conversation": f"made-{number}",
                "title": f"Ann and Ben, {number}",
                "id": f"D{place // 20 + 1}:{place % 20 + 1}",
                "role": "user",
                "name": ("Ann", "Ben")[place % 2],
                "text": f"{words} ({place})",
                "created": (began + timedelta(hours=place)).isoformat(),
            }


def tellers(conversations: int, exchanges: int) -> Iterator[Line]:
    """Conversations with an assistant in which people tell of themselves, now and then again, and ask."""
    for number in range(conversations):
        began = datetime(2023, 1, 1, 9, tzinfo=UTC) + timedelta(days=number)
        for place in range(exchanges):
            topic = TOPICS[place % len(TOPICS)]
            told = (f"I love {topic}.", f"Do I like {topic}?", f"We decided yesterday on {topic}, number {place}.")
            said = (f"{told[place % len(told)]} ({place})", "Noted: I prefer not to guess.")
            for part, (role, text) in enumerate(zip(("user", "assistant"), said, strict=True)):
                yield {
                    "conversation": f"told-{number}",
                    "title": f"Told, {number}",
                    "role": role,
                    "text": text,
                    "created": (began + timedelta(minutes=2 * place + part)).isoformat(),
                }


def long_one(exchanges: int) -> Iterator[Line]:
    """One conversation with an assistant that no context holds."""
    chance = random.Random(SEED + 1)
    began = datetime(2022, 1, 1, tzinfo=UTC)
    for place in range(2 * exchanges):
        words = " ".join(f"{chance.choice(MOODS)} {chance.choice(TOPICS)}." for _part in range(8))
        yield {
            "conversation": "long",
            "title": LONG_TITLE,
            "role": ("user", "assistant")[place % 2],
            "text": f"{words} ({place})",
            "created": (began + timedelta(minutes=place)).isoformat(),
        }


def write_lines(lines: Iterator[Line], out: Path) -> int:
    """Write JSON lines; returns how many."""
    count = 0
    with out.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
    return count


def tool_output(data: Path | None) -> str:
    """Long text such as tools put out, to be cut into pieces: of published terminal logs, traces and Chinese messages
    in a folder of data sets, or made in code, always the same."""
    if data is None:
        return "".join(_made_lines(random.Random(SEED)))
    texts = [
        file.read_text(encoding="utf-8", errors="replace")[:TEXT_PER_FILE].replace("\x00", "")
        for pattern in TOOL_OUTPUT_FILES
        for file in sorted(data.glob(pattern))
    ]
    return "".join(texts)


def _made_lines(chance: random.Random) -> Iterator[str]:
    """Lines of logs, listings, JSON and prose, in English and Chinese."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(chance.choices(letters, range(26, 0, -1), k=chance.randint(3, 9))) for _word in range(6_000)]
    weights = [1 / place for place in range(1, len(words) + 1)]
    signs = [chr(0x4E00 + chance.randrange(3_000)) for _sign in range(1_200)]
    length = 0
    while length < MADE_CHARS:
        said = " ".join(chance.choices(words, weights, k=chance.randint(4, 12)))
        path = "/".join(chance.choices(words, k=3))
        number = chance.getrandbits(40)
        line = chance.choice(
            (
                f"2026-03-{number % 28 + 1:02d}T{number % 24:02d}:{number % 60:02d}:07Z INFO {said} id={number:010x}\n",
                f"2026-03-{number % 28 + 1:02d}T{number % 24:02d}:{number % 60:02d}:09Z {said}, the {path}\n",
                f"-rw-r--r-- 1 root root {number % 10**7:>8} /srv/{path}.py\n",
                f'{{"id": "{number:x}", "path": "/srv/{path}", "message": "{said}", "ok": true}}\n',
                f"    at {path.replace('/', '.')}({said.split()[0]}.py:{number % 900})\n",
                f"{said.capitalize()}. {said}\n",
                "".join(chance.choices(signs, k=chance.randint(8, 30))) + "。\n",
            )
        )
        if number % 900 == 0:
            line = f"error: {line}"
        length += len(line)
        yield line
