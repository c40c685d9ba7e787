"""The only writer of messages: what is appended stays, byte for byte.

Every append needs the thread's row lock, so ids commit in order within a thread and a message's id is its
place in time.
"""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.expressions import Combinable

from llm import wire as serialisation
from maxclaw import clock
from maxclaw.text import visible, visible_json
from threads import looking_back, message_grams
from threads.models import Generation, Message, Thread

# Between the text and the argument strings of one row: a literal query never matches across it.
FIELD_SEPARATOR = "\x1f"


class ThreadGone(Exception):
    """The thread was erased."""


class LeaseLost(Exception):
    """Another holder took the thread since, or nobody holds it: whoever has this token writes nothing
    more."""


class NotLocked(Exception):
    """A row was to be written without the thread's row lock: a mistake in the calling code."""


class NoLiveGeneration(Exception):
    """The thread has ended, so nothing can be appended to it."""


@dataclass(frozen=True)
class NewMessage:
    """One row to append. `wire` is canonical JSON text of content blocks, `blocks` the same before
    serialising: give one of them, or neither for a row that no model sees. `copied_from_id` is the row that
    this one is a copy of, with the same wire; `id` one from `take_ids`, for a row that names itself."""

    role: str
    text: str = ""
    blocks: list[dict[str, Any]] | None = None
    wire: str | None = None
    model: str = ""
    tool_call_id: str = ""
    is_error: bool = False
    model_visible: bool = True
    meta: dict[str, Any] = field(default_factory=dict)
    created: datetime | None = None
    copied_from_id: int | None = None
    id: int | None = None


def locked_rows() -> QuerySet[Thread]:
    """Threads under their row locks, each with its owner. The lock leaves other tables free to refer to the row."""
    return Thread.objects.select_for_update(no_key=True, of=("self",)).select_related("owner")


def lock_thread(thread_id: int, lease_token: UUID | None = None, **also: Combinable) -> Thread:
    """Lock the thread's row until the transaction ends, and return it as it is now, its owner with it.

    With a `lease_token`, the caller writes as the holder of the thread's lease, which ends when its time is over, swept
    or not: a holder that stalled and woke writes nothing more. `also` are annotations, read in the
    same statement: where it had to wait for the lock they may be older than the row, so they may only save work that
    a ring will ask for again. Raises ThreadGone, LeaseLost, and TransactionManagementError outside a transaction.
    """
    try:
        thread = locked_rows().annotate(**also).get(pk=thread_id)
    except Thread.DoesNotExist:
        raise ThreadGone(thread_id) from None
    if lease_token is not None and (thread.lease_token != lease_token or lapsed(thread)):
        raise LeaseLost(thread_id)
    mark_locked(thread)
    return thread


def lapsed(thread: Thread) -> bool:
    """Whether the thread's holder has not renewed in time."""
    return thread.lease_until is None or thread.lease_until < clock.now()


def mark_locked(thread: Thread) -> None:
    """Remember that this transaction has the row to itself: it locked it, or made it."""
    blocks = transaction.get_connection().atomic_blocks
    thread.locked_in = blocks[0] if blocks else None


def check_locked(thread: Thread) -> None:
    """Raise NotLocked unless the running transaction locked this thread's row."""
    blocks = transaction.get_connection().atomic_blocks
    if not blocks or thread.locked_in is not blocks[0]:
        raise NotLocked(thread.pk)


def live_generation(thread: Thread) -> Generation:
    """The generation that a new row belongs to. Raises NoLiveGeneration when the thread has ended."""
    try:
        return Generation.objects.get(thread_id=thread.pk, ended__isnull=True)
    except Generation.DoesNotExist:
        raise NoLiveGeneration(thread.pk) from None


def append(
    thread: Thread,
    generation: Generation,
    role: str,
    *,
    text: str = "",
    blocks: list[dict[str, Any]] | None = None,
    wire: str | None = None,
    model: str = "",
    tool_call_id: str = "",
    is_error: bool = False,
    model_visible: bool = True,
    meta: dict[str, Any] | None = None,
    created: datetime | None = None,
    id: int | None = None,
) -> Message:
    """Append one row to a locked thread, in one insert. Text and blocks are made visible first (no NUL, no
    lone surrogate), so that the database and every model take them. `id` is one that this transaction took from the
    sequence under the lock, for a row that names itself."""
    row = NewMessage(
        role=role,
        text=text,
        blocks=blocks,
        wire=wire,
        model=model,
        tool_call_id=tool_call_id,
        is_error=is_error,
        model_visible=model_visible,
        meta=meta or {},
        created=created,
    )
    check_locked(thread)
    message = _message_of(thread, generation, row)
    message.pk = id
    message.save(force_insert=True)
    message_grams.index([message])
    return message


def append_many(thread: Thread, generation: Generation, rows: Sequence[NewMessage]) -> list[Message]:
    """Append rows to a locked thread, their ids in the given order: either all of them bring one, or none."""
    check_locked(thread)
    return write_rows([_message_of(thread, generation, row) for row in rows])


def write_rows(messages: Sequence[Message]) -> list[Message]:
    """Insert whole rows of a locked thread, in order, with their part of the index of long texts."""
    written = Message.objects.bulk_create(messages, batch_size=1000)
    message_grams.index(written)
    return written


def take_ids(thread: Thread, count: int) -> list[int]:
    """The next `count` ids of messages, ascending, for rows of a locked thread: in order because of the lock."""
    check_locked(thread)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence('threads_message', 'id')) FROM generate_series(1, %s)", [count]
        )
        return sorted(row[0] for row in cursor.fetchall())


def finish_answer(
    message: Message,
    *,
    text: str,
    wire: str | None,
    model: str | None = None,
    meta: dict[str, Any] | None = None,
) -> None:
    """Give an assistant row its words, once, in one update. `wire` None or without blocks: the row is never
    sent. `model` names who said it, where that is not the model that the answer was begun with."""
    fields = ["text", "wire", "search_text"]
    message.text = visible(text)
    message.wire = None if wire == "[]" else wire
    message.search_text = search_text_of(message.text, arguments_in(message.wire))
    if model is not None:
        message.model = model
        fields.append("model")
    if meta is not None or looking_back.only_looks_back(message.wire):
        message.meta = _marked(message.meta if meta is None else meta, message.wire)
        fields.append("meta")
    message.save(update_fields=fields)
    message_grams.index([message])


def text_block(text: str) -> dict[str, Any]:
    """A content block of text."""
    return {"type": "text", "text": text}


def fold(text: str) -> str:
    """Text as literal search compares it: without case where the script has case, in NFC."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def search_text_of(text: str, arguments: Any = None) -> str:
    """What literal search reads of a row: its text and every string leaf of its tool calls' arguments,
    folded."""
    return FIELD_SEPARATOR.join(fold(part) for part in (text, *string_leaves(arguments)))


def string_leaves(value: Any) -> Iterator[str]:
    """Every string in a JSON value, keys excepted, in the order in which it is written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from string_leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from string_leaves(item)


def arguments_in(wire: str | None) -> list[Any]:
    """The arguments of the tool calls among a row's content blocks."""
    return list(tool_calls_in(wire).values())


def tool_calls_in(wire: str | None) -> dict[str, Any]:
    """Call id to arguments of the tool calls among a row's content blocks, in their order."""
    if wire is None or '"tool_use"' not in wire:
        return {}
    return {block.get("id"): block.get("input") for block in json.loads(wire) if block.get("type") == "tool_use"}


def tool_calls_labelled(wire: str | None) -> Iterator[tuple[str, str]]:
    """Every string leaf of the arguments of the tool calls among a row's content blocks, in the order of
    `search_text_of`, with where it stands: the tool's name and the keys that lead to it, such as `look.path`."""
    if wire is None or '"tool_use"' not in wire:
        return
    for block in json.loads(wire):
        if block.get("type") == "tool_use":
            yield from _labelled(str(block.get("name")), block.get("input"))


def _labelled(label: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield label, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _labelled(f"{label}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            yield from _labelled(label, item)


def _marked(meta: dict[str, Any], wire: str | None) -> dict[str, Any]:
    """What a row says about itself, and whether it only calls tools that look back."""
    mark = {looking_back.MARK: True} if looking_back.only_looks_back(wire) else {}
    return {**visible_json(meta), **mark}


def _message_of(thread: Thread, generation: Generation, row: NewMessage) -> Message:
    if row.blocks is not None and row.wire is not None:
        raise ValueError("Give blocks or wire, not both: they are the same content.")
    wire = row.wire
    if row.blocks is not None:
        wire = serialisation.canonical(visible_json(row.blocks))
    text = visible(row.text)
    return Message(
        pk=row.id,
        thread_id=thread.pk,
        owner_id=thread.owner_id,
        generation_id=generation.pk,
        role=row.role,
        text=text,
        search_text=search_text_of(text, arguments_in(wire)),
        wire=wire,
        model=row.model,
        tool_call_id=row.tool_call_id,
        is_error=row.is_error,
        model_visible=row.model_visible,
        copied_from_id=row.copied_from_id,
        meta=_marked(row.meta, wire),
        created=row.created or clock.now(),
    )
