"""The structured summary of a conversation in ten numbered sections, by rule."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from llm.emulator.mind.reading import Conversation, Row, rendered_rows
from llm.emulator.mind.words import is_question, sentences, shorten

TITLES = (
    "The request",
    "Standing instructions and corrections in the user's words",
    "Decisions and their reasons",
    "Where the work stands",
    "Files and artefacts",
    "Errors and their fixes",
    "What failed",
    "Questions open to the user",
    "The next step",
    "How to reach each resource used",
)
ITEMS_MAX = 12
ITEM_MAX_CHARS = 300
NOTHING = "None."

_WANTED = re.compile(r"numbered sections|ten sections|十个(?:编号)?(?:小节|部分|章节)", re.IGNORECASE)
_INSTRUCTION = re.compile(
    r"\b(?:always|never|please|don't|do not|from now on|make sure|must|instead of|only use|stop \w+ing)\b"
    r"|以后|今后|不要|别再?|请|总是|必须|务必|从现在起|一律",
    re.IGNORECASE,
)
_CORRECTION = re.compile(r"^(?:no[,. ]|actually\b|that's wrong|not \w+, but)|^不对|^不是|更正|应该是", re.IGNORECASE)
_DECISION = re.compile(
    r"\b(?:decided|decision|we (?:will|agreed|chose)|let's (?:use|go with|take)|because)\b|决定|选择|约定|因为|采用",
    re.IGNORECASE,
)
_ERROR = re.compile(r"\b(?:error|exception|traceback|fixed|fix|bug|broken)\b|错误|异常|修复|报错|修好", re.IGNORECASE)
_FAILED = re.compile(
    r"\b(?:failed|fails|failure|did ?n[o']t work|does ?n[o']t work|gave up)\b|失败|没用|不行|行不通", re.I
)
_NEXT = re.compile(
    r"\b(?:next|todo|to do|will|then we|remaining|left to)\b|下一步|接下来|然后|还要|待办", re.IGNORECASE
)
_URL = re.compile(r"https?://[^\s<>\"'）)\]]+")
_PATH = re.compile(
    r"(?<![\w/:.])(?:~|\.{1,2})?/?(?:[\w.-]+/)+[\w.-]+"
    r"|(?<![\w./-])[\w-]+\.(?:py|md|txt|json|toml|ya?ml|js|ts|html|css|sql|sh|csv|pdf|docx?|xlsx?|png|jpe?g|go|rs)\b"
)
_COMMAND = re.compile(r"`([^`\n]{2,200})`")
_OLD_SECTION = re.compile(
    r"^\W*(10|[1-9])[.)、] *([^\n]*)\n(.*?)(?=^\W*(?:10|[1-9])[.)、] |\Z)", re.MULTILINE | re.DOTALL
)


def wants_summary(conversation: Conversation) -> bool:
    """Whether the newest words ask for the summary: they name its form, or at least six of its sections."""
    lowered = conversation.asked.lower()
    keys: tuple[str, ...] = (
        "request",
        "standing instructions",
        "decisions",
        "work stands",
        "files and artefacts",
        "errors",
    )
    keys += ("failed", "open to the user", "next step", "how to reach")
    return bool(_WANTED.search(conversation.asked)) or sum(key in lowered for key in keys) >= 6


def summarize(conversation: Conversation) -> tuple[list[str], str]:
    """The ten sections. Rows shown with ids in the newest words count as well as the conversation's own.

    Returns (blocks, rule).
    """
    rows = _rows(conversation)
    words = [row for row in rows if row.role in ("user", "unknown")]
    said = [row for row in rows if row.role == "assistant"]
    told = [row for row in rows if row.role != "framework"]
    old = _old_sections(conversation)
    asked = [f"{row.mark().strip() or '-'} {shorten(row.text, ITEM_MAX_CHARS)}" for row in (*words[:1], *words[-1:])]
    sections: list[Iterable[str]] = [
        dict.fromkeys(asked),
        _quotes(words, lambda sentence: bool(_INSTRUCTION.search(sentence) or _CORRECTION.search(sentence))),
        _sentences(told, lambda sentence: bool(_DECISION.search(sentence)) and not is_question(sentence)),
        [f"- The last answer was: {shorten(said[-1].text, ITEM_MAX_CHARS)}{said[-1].mark()}"] if said else [],
        _resources(told, _PATH),
        _sentences(told, lambda sentence: bool(_ERROR.search(sentence))),
        _sentences(told, lambda sentence: bool(_FAILED.search(sentence))),
        _sentences(said[-1:], is_question),
        _next_step(words, said),
        _reached(conversation, rows),
    ]
    mark = re.search(r"^(#+ *)(?:\*\*)?1[.)]", conversation.asked, re.MULTILINE)
    heading = mark.group(1) if mark else ""
    parts = []
    for number, (title, items) in enumerate(zip(TITLES, sections, strict=True), 1):
        lines = list(dict.fromkeys([*old.get(number, []), *items]))
        kept = lines if len(lines) <= ITEMS_MAX else [*lines[: ITEMS_MAX // 2], *lines[-ITEMS_MAX // 2 :]]
        parts.append(f"{heading}{number}. {title}\n" + ("\n".join(kept) if kept else NOTHING))
    return ["\n\n".join(parts)], "the words ask for the summary in ten sections"


def _rows(conversation: Conversation) -> list[Row]:
    shown = conversation.shown
    found = {row.text for row in shown}
    inner = [row for row in conversation.earlier if row.text not in found]
    expanded = [part for row in inner for part in ((rendered_rows(row.text) if row.role == "tool" else []) or [row])]
    return [*expanded, *shown]


def _old_sections(conversation: Conversation) -> dict[int, list[str]]:
    """Lines of an earlier summary that the opening context holds, by section: they are carried on."""
    lines: dict[int, list[str]] = {}
    for row in conversation.earlier:
        if row.role != "framework":
            continue
        found = [(int(number), body) for number, _, body in _OLD_SECTION.findall(row.text)]
        if [number for number, _ in found[:10]] != list(range(1, 11)):
            continue
        for number, body in found[:10]:
            kept = [line.strip() for line in body.splitlines() if line.strip() not in ("", NOTHING)]
            if number != 9:
                lines[number] = kept
    return lines


def _quotes(rows: Iterable[Row], wanted: Callable[[str], bool]) -> Iterator[str]:
    """Sentences word for word, in quotation marks."""
    for row in rows:
        for sentence in sentences(row.text):
            if wanted(sentence) and not is_question(sentence) and len(sentence) <= ITEM_MAX_CHARS:
                yield f'- "{sentence}"{row.mark()}'


def _sentences(rows: Iterable[Row], wanted: Callable[[str], bool]) -> Iterator[str]:
    for row in rows:
        for sentence in sentences(row.text):
            if wanted(sentence):
                yield f"- {row.role}: {shorten(sentence, ITEM_MAX_CHARS)}{row.mark()}"


def _resources(rows: Iterable[Row], pattern: re.Pattern[str]) -> Iterator[str]:
    """Everything that `pattern` finds, once, with the row in which it stood first."""
    seen: set[str] = set()
    for row in rows:
        for found in pattern.finditer(_URL.sub(" ", row.text) if pattern is _PATH else row.text):
            name = (found.group(1) if pattern.groups else found.group()).rstrip(".,;")
            if name not in seen:
                seen.add(name)
                yield f"- {name}{row.mark()}"


def _next_step(words: Sequence[Row], said: Sequence[Row]) -> list[str]:
    plans = list(_sentences([*words[-3:], *said[-2:]], lambda sentence: bool(_NEXT.search(sentence))))
    if plans:
        return plans[-2:]
    return [f"- Go on from the user's last words: {shorten(words[-1].text, ITEM_MAX_CHARS)}"] if words else []


def _reached(conversation: Conversation, rows: Sequence[Row]) -> Iterator[str]:
    """Addresses, paths, commands and tool calls, with the ids of the rows they stand in."""
    told = [row for row in rows if row.role != "framework"]
    for pattern in (_URL, _PATH, _COMMAND):
        yield from _resources(told, pattern)
    for name, arguments in dict.fromkeys(conversation.commands):
        yield f"- tool {name} with {shorten(arguments, ITEM_MAX_CHARS)}"
