"""Answering from what was said: the best matching sentences of the context, and the search for what it lacks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llm.emulator.mind import phrases
from llm.emulator.mind.phrases import quote, say
from llm.emulator.mind.reading import Conversation, Row, older_than, rendered_rows
from llm.emulator.mind.words import is_question, sentences, shorten, terms

# Which share of a question's weight a sentence must hold to be an answer.
ENOUGH = 0.34
# A further sentence is quoted when it is nearly as good as the best.
NEARLY = 0.75
QUOTES_MAX = 3
QUOTE_MAX_CHARS = 400
ROUNDS_MAX = 4
SEARCH = "search_memory"
HISTORY = "message_history_read"
_ROLE_WEIGHT = {"user": 1.0, "unknown": 0.95, "tool": 0.9, "assistant": 0.6, "event": 0.5, "framework": 0.4}


@dataclass(frozen=True)
class Found:
    """A sentence that matches, with the share of the question's weight that it holds."""

    sentence: str
    row: Row
    share: float


def best_sentences(asked: str, rows: Sequence[Row]) -> list[Found]:
    """The sentences of `rows` that answer `asked` best, best first, newest first among equals; at most QUOTES_MAX.

    A term weighs more the fewer rows hold it; one that no row holds weighs as if one did.
    """
    wanted = terms(asked)
    if not wanted:
        return []
    lowered = [row.text.lower() for row in rows]
    holding = {term: [place for place, text in enumerate(lowered) if term in text] for term in wanted}
    weights = {term: math.log(1 + len(rows) / max(len(places), 1)) for term, places in holding.items()}
    whole = sum(weights.values())
    places = sorted({place for found in holding.values() for place in found}, reverse=True)
    candidates: list[tuple[float, Found]] = []
    for place in places:
        row = rows[place]
        here = [term for term in wanted if term in lowered[place]]
        if sum(weights[term] for term in here) / whole < ENOUGH:
            continue
        parts = sentences(row.text)
        for number, sentence in enumerate(parts):
            if is_question(sentence):
                continue
            share = _share(sentence, here, weights, whole)
            # What a sentence is about often stands in the one before it.
            if 0 < share < ENOUGH and number:
                sentence = f"{parts[number - 1]} {sentence}"
                share = _share(sentence, here, weights, whole) * 0.95
            if share >= ENOUGH:
                ranked = share * _ROLE_WEIGHT.get(row.role, 0.5)
                candidates.append((ranked, Found(sentence, row, share)))
    candidates.sort(key=lambda candidate: -candidate[0])
    chosen: list[Found] = []
    for ranked, found in candidates:
        if len(chosen) == QUOTES_MAX or ranked < candidates[0][0] * NEARLY:
            break
        if all(found.sentence not in other.sentence and other.sentence not in found.sentence for other in chosen):
            chosen.append(found)
    return chosen


def _share(sentence: str, here: Sequence[str], weights: dict[str, float], whole: float) -> float:
    lowered = sentence.lower()
    return sum(weights[term] for term in here if term in lowered) / whole


def recall(conversation: Conversation, chinese: bool) -> tuple[list[Any], str]:
    """Answer a question from the context and from what was found by tools, or look further.

    Returns (blocks, the rule that was applied).
    """
    found_rows = [row for call in conversation.calls for row in _rows_of(call.result)]
    rows = [row for row in conversation.earlier if row.role != "framework"]
    rows = [row for row in rows if not (row.role == "tool" and row.tool in (SEARCH, HISTORY))] + found_rows
    found = best_sentences(conversation.asked, rows)
    if found:
        lines = [_line(one, chinese) for one in found]
        return ["\n".join(lines)], f"the best sentence holds {found[0].share:.0%} of the question's weight"
    step = _next_look(conversation)
    if step is not None:
        name, arguments = step
        going_on = phrases.SEARCHING_ON if conversation.calls else phrases.SEARCHING
        call = {"type": "tool_use", "name": name, "input": arguments}
        return [say(going_on, chinese), call], "the context does not hold the answer: look for it"
    failed = [call for call in conversation.calls if call.result.is_error]
    if failed:
        words = shorten(failed[-1].result.text, QUOTE_MAX_CHARS)
        return [say(phrases.TOOL_FAILED, chinese, tool=failed[-1].name, quote=words)], "the search failed"
    if conversation.rounds:
        return [say(phrases.NOT_FOUND_SEARCHED, chinese, rounds=conversation.rounds)], "nothing was found"
    return [say(phrases.NOT_FOUND, chinese)], "nothing matches, and there is no tool to search with"


def _rows_of(result: Row) -> list[Row]:
    """What a tool found, row by row; text without ids is one row."""
    if result.is_error:
        return []
    return rendered_rows(result.text) or [result]


def _line(found: Found, chinese: bool) -> str:
    phrase = {
        "user": phrases.USER_SAID,
        "assistant": phrases.I_SAID,
        "tool": phrases.TOOL_SAID,
    }.get(found.row.role, phrases.RECORD_SAYS)
    words = quote(shorten(found.sentence, QUOTE_MAX_CHARS), chinese)
    return say(phrase, chinese, mark=found.row.mark(), quote=words)


def _next_look(conversation: Conversation) -> tuple[str, dict[str, Any]] | None:
    """The next search: memory by the question's terms, then history page by page. None when there is none left."""
    if conversation.rounds >= ROUNDS_MAX or _last_request(conversation):
        return None
    used = [call.name for call in conversation.calls]
    if SEARCH in conversation.tools and SEARCH not in used:
        arguments: dict[str, Any] = {"query": " ".join(terms(conversation.asked)) or shorten(conversation.asked, 200)}
        if conversation.channel and "channel" in conversation.tools[SEARCH].get("properties", {}):
            arguments["channel"] = conversation.channel
        return SEARCH, arguments
    if HISTORY not in conversation.tools or conversation.channel is None:
        return None
    pages = [call for call in conversation.calls if call.name == HISTORY]
    if not pages:
        return HISTORY, {"channel": conversation.channel}
    before = None if pages[-1].result.is_error else older_than(pages[-1].result.text)
    return (HISTORY, {"channel": conversation.channel, "before": before}) if before is not None else None


def _last_request(conversation: Conversation) -> bool:
    """Whether a note says that no tool will run any more."""
    return any("step limit" in note.lower() for note in conversation.notes)
