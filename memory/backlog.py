"""The rows of a conversation that are still to be read for memory, rendered compactly, page by page.

Which rows: what the person, the assistant and tools said in it and what stands. Copies are not read, their originals
are; rewound rows are not, unless a live copy of theirs is in the conversation; rows that went cold are. Who has read a
row already is the reader's to say. What is below `rows_of` reads no database.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from django.db.models import Q, QuerySet

from accounts.days import local
from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from llm.estimates import estimate_tokens
from llm.wire import canonical
from maxclaw.text import head, head_and_tail
from threads.history import ROLE_NAMES
from threads.looking_back import LOOKING_BACK
from threads.models import Message
from threads.search_range import standing

PAGE_TOKENS = 12_000
ASSISTANT_MAX_CHARS = 1_500
RESULT_MAX_CHARS = 600
ARGUMENTS_MAX_CHARS = 200
# A user's row is read whole. One that alone is more than a page (a document that was pasted) would fit no request.
USER_MAX_CHARS = 40_000
READ_ROLES = (Message.Role.USER, Message.Role.ASSISTANT, Message.Role.TOOL)
# Words of a row that would look like the head of another one.
_LIKE_A_HEAD = re.compile(r"^(?=[ \t]*[-*>]?[ \t]*[\[(]?[mfp]:\d)", re.MULTILINE)


@dataclass(frozen=True)
class BacklogRow:
    """One row as it is rendered. `when` is in the person's own zone; `calls` are (tool, arguments as JSON) of an
    assistant's; `tool` and `question` are of the call that a result answers, the question only of a card."""

    id: int
    role: str
    when: datetime
    text: str
    is_error: bool = False
    calls: tuple[tuple[str, str], ...] = ()
    tool: str = ""
    question: str = ""


@dataclass
class Page:
    """Rows that are read together, oldest first. `tokens` is what `text` takes, by estimate."""

    rows: list[BacklogRow] = field(default_factory=list)
    tokens: int = 0

    @property
    def text(self) -> str:
        return "\n\n".join(map(rendered, self.rows))

    @property
    def ids(self) -> list[int]:
        return [row.id for row in self.rows]

    @property
    def through(self) -> int:
        """Id of the last row."""
        return self.rows[-1].id

    @property
    def words(self) -> str:
        """What the person and the assistant said, one text: what is near to it in meaning is looked for."""
        return "\n".join(row.text for row in self.rows if row.role != Message.Role.TOOL)


def readable() -> Q:
    """Messages that a reader of memory reads, whoever has read them before."""
    return standing() & Q(role__in=READ_ROLES, copied_from__isnull=True)


def rows_of(messages: QuerySet[Message], zone: tzinfo) -> list[BacklogRow]:
    """The rows of some messages in their order, with the calls that they make and answer: three queries."""
    rows = list(messages.only("pk", "role", "created", "text", "is_error").order_by("pk"))
    asking = [row.pk for row in rows if row.role == Message.Role.ASSISTANT]
    answering = [row.pk for row in rows if row.role == Message.Role.TOOL]
    made: dict[int, list[tuple[str, str]]] = {}
    for call in ToolCall.objects.filter(message__in=asking).order_by("message_id", "position", "pk"):
        made.setdefault(call.message_id, []).append((call.tool, canonical(call.arguments)))
    answered = {call.result_id: call for call in ToolCall.objects.filter(result__in=answering)}
    return [_row(row, zone, tuple(made.get(row.pk, ())), answered.get(row.pk)) for row in rows]


def pages(rows: Iterable[BacklogRow], most: int = PAGE_TOKENS) -> Iterator[Page]:
    """The rows in pages of at most about `most` tokens by estimate, each of one row at least."""
    page = Page()
    for row in rows:
        tokens = estimate_tokens(rendered(row))
        if page.rows and page.tokens + tokens > most:
            yield page
            page = Page()
        page.rows.append(row)
        page.tokens += tokens
    if page.rows:
        yield page


def rendered(row: BacklogRow) -> str:
    """A row as a reader sees it: its id, who speaks, the local date and time, and the words, those of the person and of
    question cards whole, others cut."""
    top = f"[m:{row.id}] {_speaker(row)}, {row.when:%A %Y-%m-%d %H:%M}:"
    return "\n".join([top, *(_LIKE_A_HEAD.sub("| ", line) for line in _lines(row) if line.strip())])


def excerpt(rows: Sequence[BacklogRow], max_chars: int) -> str:
    """Rows that were read before, in short: what the next ones go on from."""
    return "\n".join(
        f"{ROLE_NAMES[Message.Role(row.role)]}: {head(' '.join(row.text.split()), max_chars)}"
        for row in rows
        if row.text.strip()
    )


def _row(row: Message, zone: tzinfo, calls: tuple[tuple[str, str], ...], answers: ToolCall | None) -> BacklogRow:
    tool = "" if answers is None else answers.tool
    question = "" if answers is None or tool != QUESTION_TOOL else str(answers.arguments.get("question", ""))
    return BacklogRow(
        id=row.pk,
        role=row.role,
        when=local(row.created, zone),
        text=row.text,
        is_error=row.is_error,
        calls=calls,
        tool=tool,
        question=question,
    )


def _speaker(row: BacklogRow) -> str:
    if row.role != Message.Role.TOOL:
        return ROLE_NAMES[Message.Role(row.role)]
    if row.question:
        return "tool result (the person's answer to a question card)"
    failed = "failed " if row.is_error else ""
    return f"{failed}tool result of {row.tool}" if row.tool else f"{failed}tool result"


def _lines(row: BacklogRow) -> Iterator[str]:
    if row.question:
        yield f"question: {row.question}"
        yield f"answer: {row.text}"
    elif row.tool in LOOKING_BACK:
        yield "(old words, shown again)"
    elif row.role == Message.Role.TOOL:
        yield _cut(row.text, RESULT_MAX_CHARS)
    elif row.role == Message.Role.USER:
        yield _cut(row.text, USER_MAX_CHARS)
    else:
        yield _cut(row.text, ASSISTANT_MAX_CHARS)
        for tool, arguments in row.calls:
            yield f"(calls {tool} with {_cut(arguments, ARGUMENTS_MAX_CHARS)})"


def _cut(text: str, max_chars: int) -> str:
    return head_and_tail(text, max_chars, lambda left_out: f" [... {left_out:,} characters left out ...] ")
