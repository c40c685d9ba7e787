"""Where the lines of a JSON-lines file stand, conversation by conversation, so that lines of several may be mixed and
the file may be larger than memory: some forty bytes are kept for each line, never its text."""

import shutil
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from agent.import_keys import DIGEST_BYTES
from agent.import_lines import BrokenLine, ImportLine, parse_line
from agent.models import ToolCall
from llm.catalog import Model
from llm.estimates import estimate_tokens, ratio
from maxclaw.sentences import Sentence
from maxclaw.sentences import sentence as _
from threads.models import Message
from threads.transcript import NewMessage

# A longer line is no message that PostgreSQL or a model could take; it is not read into memory.
LINE_MAX_BYTES = 64 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TITLE_SOURCE_MAX_CHARS = 2_000  # of the first words, for a title

OnProblem = Callable[[int, Sentence | str], None]
OnProgress = Callable[[int], None]


class FileChanged(Exception):
    """The file was changed while it was imported."""


@dataclass
class ConversationIndex:
    """The lines of one conversation in the order of the file."""

    source: str
    first: datetime
    last: datetime
    title: str = ""
    first_words: str = ""
    first_words_are_the_users: bool = False
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    line_numbers: "array[int]" = field(default_factory=lambda: array("Q"))
    tokens: "array[int]" = field(default_factory=lambda: array("L"))
    begins_exchange: bytearray = field(default_factory=bytearray)
    has_id: bytearray = field(default_factory=bytearray)
    digests: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self.offsets)

    def digest(self, position: int) -> bytes:
        """What makes the line's message the same one in a later import."""
        return bytes(self.digests[position * DIGEST_BYTES : (position + 1) * DIGEST_BYTES])

    def add(self, line: ImportLine, offset: int, number: int) -> None:
        self.offsets.append(offset)
        self.line_numbers.append(number)
        self.tokens.append(estimate_tokens(line.wire))
        self.begins_exchange.append(line.role == Message.Role.USER)
        self.has_id.append(bool(line.id))
        self.digests += line.digest
        self.title = self.title or line.title
        self.first, self.last = min(self.first, line.created), max(self.last, line.created)
        is_users = line.role == Message.Role.USER
        if not self.first_words or (is_users and not self.first_words_are_the_users):
            self.first_words, self.first_words_are_the_users = line.words[:TITLE_SOURCE_MAX_CHARS], is_users


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The file for reading back and forth; `-` is standard input. What cannot be wound back is copied to disk first.
    Raises OSError."""
    with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
        if file.seekable():
            yield file
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            yield copy


def index(file: IO[bytes], on_problem: OnProblem, on_progress: OnProgress) -> dict[str, ConversationIndex]:
    """Read a file once: its conversations in the order of their first lines. `on_problem(line number, reason)` is told
    of each line that cannot be imported, `on_progress(lines)` of each that was read."""
    conversations: dict[str, ConversationIndex] = {}
    for number, offset, raw in _lines(file):
        on_progress(number)
        if raw is None:
            on_problem(number, _("It is longer than %(limit)s bytes.") % {"limit": f"{LINE_MAX_BYTES:,}"})
        elif raw.strip():
            try:
                line = parse_line(raw)
            except BrokenLine as broken:
                on_problem(number, broken.sentence)
                continue
            if line.conversation not in conversations:
                started = ConversationIndex(line.conversation, first=line.created, last=line.created)
                conversations[line.conversation] = started
            conversations[line.conversation].add(line, offset, number)
    return conversations


def read_again(file: IO[bytes], conversation: ConversationIndex, position: int) -> ImportLine:
    """One indexed line. Raises FileChanged when something else stands there now."""
    file.seek(conversation.offsets[position])
    raw = file.readline(LINE_MAX_BYTES + 1)
    try:
        line = parse_line(raw)
    except BrokenLine:
        raise FileChanged from None
    if line.digest != conversation.digest(position):
        raise FileChanged
    return line


@dataclass(frozen=True)
class NewLine:
    """A line to append: its place among the conversation's lines, and the key by which a later import knows it."""

    position: int
    key: str


class Lines:
    """New lines of an indexed conversation as a passage (see `import_rows.Passage`): read again one by one, so that
    their text is never in memory at once. Reading raises FileChanged."""

    def __init__(self, file: IO[bytes], conversation: ConversationIndex, new: Sequence[NewLine]) -> None:
        self.file, self.conversation, self.new = file, conversation, new

    @property
    def last(self) -> datetime:
        return self.conversation.last

    def __len__(self) -> int:
        return len(self.new)

    def tokens(self, place: int, model: Model) -> int:
        return round(self.conversation.tokens[self.new[place].position] * ratio(model))

    def begins_exchange(self, place: int) -> bool:
        return bool(self.conversation.begins_exchange[self.new[place].position])

    def goes_with_the_one_before(self, place: int) -> bool:
        return False

    def created(self, place: int) -> datetime:
        return self._read(place).created

    def names_itself(self, place: int, model: Model) -> bool:
        return False

    def message(self, place: int, row_id: int | None, model: Model) -> NewMessage:
        line = self._read(place)
        key = self.new[place].key
        meta: dict[str, Any] = {"import": {"key": key, "id": line.id} if line.id else {"key": key}}
        if line.name:
            meta["name"] = line.name
        return NewMessage(role=line.role, text=line.text, wire=line.wire, meta=meta, created=line.created, id=row_id)

    def calls(self, first: int, rows: Sequence[Message]) -> list[ToolCall]:
        return []

    def _read(self, place: int) -> ImportLine:
        return read_again(self.file, self.conversation, self.new[place].position)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, int, bytes | None]]:
    """(line number from 1, offset, bytes) of each line; None for the bytes of one that is too long."""
    number, offset = 0, 0
    if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK:
        offset = len(BYTE_ORDER_MARK)
    file.seek(offset)
    while raw := file.readline(LINE_MAX_BYTES + 1):
        number += 1
        start, offset = offset, offset + len(raw)
        too_long = len(raw) > LINE_MAX_BYTES
        rest = raw
        while too_long and not rest.endswith(b"\n") and (rest := file.readline(LINE_MAX_BYTES)):
            offset += len(rest)
        yield number, start, None if too_long else raw
