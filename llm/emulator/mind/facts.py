"""Facts about the user, found by rule in rows that are shown with their message ids."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from llm.emulator.mind import phrases
from llm.emulator.mind.phrases import say
from llm.emulator.mind.reading import Conversation, Row
from llm.emulator.mind.schemas import fill
from llm.emulator.mind.words import is_question, sentences, shorten

PROPOSE = "shadow_memory_propose"
# The steward's: a call for each fact, and one in the place of an older fact.
WRITE, REPLACE = "write_fact", "replace_fact"
FACTS_MAX = 20
FACT_MAX_CHARS = 300
APPLIES_MAX_CHARS = 60

# (pattern, aspect, tone), first match wins; what follows the match is what the fact applies to.
_RULES = (
    (r"\b(?:we|i)(?:'ve| have)? (?:finally )?(?:decided|agreed|settled)\b(?: (?:to|that|on))?", "decision", "decision"),
    (r"(?:我们|我)?(?:已经)?(?:决定|定下来|约定)", "decision", "decision"),
    (r"\b(?:actually|correction|no, that is wrong|that's wrong)\b", "correction", "decision"),
    (r"^(?:不对|更正|纠正)", "correction", "decision"),
    (r"\b(?:my name is|call me|i am called)\b", "identity", "remark"),
    (r"我(?:叫|的名字是|是一[名个位])", "identity", "remark"),
    (r"\b(?:from now on|please always|please never|always|never)\b", "preference", "decision"),
    (r"(?:以后|今后|从现在起|总是|永远不要|不要再|我从不|我总是)", "preference", "decision"),
    (
        r"\bi (?:really |much |would )*(?:prefer|like|love|enjoy|hate|dislike|want|don't like|can't stand)\b",
        "preference",
        "remark",
    ),
    (r"我(?:更|最|很|比较|不|特别)*(?:喜欢|偏好|偏爱|讨厌|习惯|爱)", "preference", "remark"),
    (r"\bi(?:'m| am) (?:allergic to|a |an |from|based in)", "fact", "remark"),
    (r"\b(?:i|we) (?:live|work|study|own|have a|have an|use)\b", "fact", "remark"),
    (r"\bmy [a-z]+(?: [a-z]+)? (?:is|are|was|lives?|works?)\b", "fact", "remark"),
    (r"我(?:住|在.{1,12}(?:工作|上班|上学)|有一|养了|对.{1,10}过敏)|我的.{1,10}(?:是|叫|在)", "fact", "remark"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), aspect, tone) for pattern, aspect, tone in _RULES)
_DAYS = {
    re.compile(r"\btoday\b|今天", re.I): 0,
    re.compile(r"\byesterday\b|昨天", re.I): -1,
    re.compile(r"\btomorrow\b|明天", re.I): 1,
}
# What a person has one of: the fact applies to that, whatever follows, and a later one takes its place.
_HAS_ONE = re.compile(
    r"\bi (?:live|work|study)\b|\bmy [a-z]+(?: [a-z]+)? (?:is|lives?|works?)\b|\bcall me\b"
    r"|我(?:叫|住)|我的.{1,10}(?:是|叫|在)",
    re.IGNORECASE,
)
_KNOWN_LINE = re.compile(r"f:(\d+) \[.*?applies to: (.*?)(?:\]|; project:|; its words)")
_ASKED_TO_PROPOSE = re.compile(r"\bpropose\b|worth remembering|提议|值得记", re.IGNORECASE)


@dataclass(frozen=True)
class FoundFact:
    """A sentence of the user's that a rule takes for a fact."""

    text: str
    aspect: str
    tone: str
    applies_to: str
    row: Row


def wants_facts(conversation: Conversation) -> bool:
    """Whether facts are to be proposed: the tool for it is the only one, is demanded, or the words ask for it. The tool
    that writes them is offered to nobody but the steward."""
    if WRITE in conversation.tools:
        return True
    if PROPOSE not in conversation.tools or conversation.calls:
        return False
    alone = len(conversation.tools) == 1 or conversation.request.tool_choice["name"] == PROPOSE
    return alone or bool(_ASKED_TO_PROPOSE.search(conversation.asked) and conversation.shown)


def propose_facts(conversation: Conversation, chinese: bool) -> tuple[list[Any], str]:
    """One call that proposes every fact found, with its message as evidence, or a sentence that there is none.

    Returns (blocks, rule).
    """
    if WRITE in conversation.tools and conversation.calls:
        kept = sum(not call.result.is_error for call in conversation.calls)
        return [say(phrases.FACTS_WRITTEN, chinese, kept=kept)], "the facts are written"
    found = list(find_facts(conversation))[:FACTS_MAX]
    if found and WRITE in conversation.tools:
        return [_call(conversation, fact) for fact in found], f"{len(found)} sentences are facts by rule"
    if not found:
        return [say(phrases.NO_FACTS, chinese)], "no sentence of the user's is a fact by rule"
    arguments = _arguments(conversation.tools[PROPOSE], found)
    return [{"type": "tool_use", "name": PROPOSE, "input": arguments}], f"{len(found)} sentences are facts by rule"


def find_facts(conversation: Conversation) -> Iterator[FoundFact]:
    """Facts in the rows that the newest words show; without an id there is no evidence, so no fact."""
    known = _normal(conversation.known)
    seen: set[str] = set()
    for row in conversation.shown:
        if row.role not in ("user", "unknown"):
            continue
        for sentence in sentences(row.text):
            fact = _fact(sentence, row)
            if fact is None:
                continue
            normal = _normal(sentence)
            if normal in seen or normal in known or _normal(fact.text) in known:
                continue
            seen.add(normal)
            yield fact


def _fact(sentence: str, row: Row) -> FoundFact | None:
    if is_question(sentence) or len(sentence) > 2 * FACT_MAX_CHARS:
        return None
    for pattern, aspect, tone in _COMPILED:
        match = pattern.search(sentence)
        if match:
            only = _HAS_ONE.match(match.group())
            about = only.group().lower() if only else sentence[match.end() :].strip(" ,.;:!，。；：！") or sentence
            text = f"The user said: {shorten(_with_dates(sentence, row), FACT_MAX_CHARS)}"
            return FoundFact(text, aspect, tone, shorten(about, APPLIES_MAX_CHARS), row)
    return None


def _with_dates(sentence: str, row: Row) -> str:
    """The sentence with yesterday, today and tomorrow as dates, counted from the row's own."""
    if not row.date:
        return sentence
    said_on = date.fromisoformat(row.date[:10])
    for pattern, days in _DAYS.items():
        sentence = pattern.sub((said_on + timedelta(days=days)).isoformat(), sentence)
    return sentence


def _normal(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def _call(conversation: Conversation, fact: FoundFact) -> dict[str, Any]:
    """The call that writes one fact: in the place of the known one that applies to the same thing of which a person has
    one."""
    name, more = WRITE, {}
    if REPLACE in conversation.tools and _HAS_ONE.fullmatch(fact.applies_to):
        known = {applies_to: number for number, applies_to in _KNOWN_LINE.findall(conversation.known)}
        if fact.applies_to in known:
            name, more = REPLACE, {"fact_id": int(known[fact.applies_to]), "reason": "The user said so later."}
    return {"type": "tool_use", "name": name, "input": _item(conversation.tools[name], fact) | more}


def _arguments(schema: dict[str, Any], found: list[FoundFact]) -> dict[str, Any]:
    """The tool's input: its one list, an item for each fact, with the fields that the tool's schema has."""
    properties = schema.get("properties", {})
    name = next((key for key, inner in properties.items() if inner.get("type") == "array"), "proposals")
    item = properties.get(name, {}).get("items") or {}
    return {name: [_item(item, fact) for fact in found]}


def _item(schema: dict[str, Any], fact: FoundFact) -> dict[str, Any]:
    fields = schema.get("properties", {})
    evidence = fields.get("evidence", {}).get("items", {})
    values: dict[str, Any] = {
        "text": fact.text,
        "kind": "about-user",
        "aspect": fact.aspect,
        "applies_to": fact.applies_to,
        "tone": fact.tone,
        "evidence": [_evidence(evidence, fact)],
    }
    if not fields:
        return values
    filled: dict[str, Any] = fill(schema, fact.text, values)
    return filled


def _evidence(schema: dict[str, Any], fact: FoundFact) -> dict[str, Any]:
    fields = schema.get("properties", {})
    kinds = fields.get("message_id", {}).get("type", "string")
    as_number = "integer" in kinds and "string" not in kinds
    values = {
        "kind": "max-stated",
        "message_id": fact.row.message_id if as_number else f"m:{fact.row.message_id}",
    }
    return fill(schema, "", values) if fields else values
