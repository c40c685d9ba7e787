"""Appending imported messages to a thread, dealt into generations where they are more than a context holds.

The live generation holds at most half of the model's budget (system, tools and opening counted), the newest exchanges
first of all; the earlier ones have ended with the reason "import" and hold no more. Every later opening is rendered
and frozen at once; it says that earlier messages are read with `message_history_read`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from django.db.models import Max
from django.utils.translation import ngettext

from agent import opening, prompts, registry
from agent.dealing import GENERATION_BUDGET_SHARE, deal
from agent.events import Event, emit_all
from agent.import_index import ConversationIndex, read_again
from agent.import_lines import ImportLine
from agent.projection import message_view, thread_view, turn_view
from agent.safe_point import append_note, append_notice
from llm import router
from llm.estimates import estimate_tokens, ratio
from llm.wire import canonical
from maxclaw import clock
from threads.models import Generation, Message, Thread
from threads.request import rows_of_call
from threads.transcript import NewMessage, append_many, live_generation

BATCH_MESSAGES = 500
# What the opening of a later generation says beyond that of the present one.
OPENING_MARGIN_TOKENS = 200
LAST_ROW = 2**63 - 1


@dataclass(frozen=True)
class NewRow:
    """A line to append: its place among the conversation's lines, and the key by which a later import knows it."""

    position: int
    key: str


def add(
    thread: Thread,
    file: IO[bytes],
    conversation: ConversationIndex,
    new: Sequence[NewRow],
    *,
    grows: bool,
    on_messages: Callable[[int], None],
) -> int:
    """Append lines to a locked, resting thread. Returns over how many generations they were dealt.

    `grows`: the thread was there before, so somebody may have it open and is told of each row. Raises FileChanged and
    NoModelForCategory.
    """
    generation = live_generation(thread)
    if grows:
        _note_if_continued(thread, generation, conversation, len(new))
    cuts = _cuts(thread, generation, conversation, new)
    begins, ends = [0, *cuts], [*cuts, len(new)]
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        starts = read_again(file, conversation, new[min(begin, len(new) - 1)].position).created
        if number:
            generation = _next_generation(thread, generation, starts)
        elif not grows:
            generation.started = starts
            generation.save(update_fields=["started"])
        for first in range(begin, end, BATCH_MESSAGES):
            batch = new[first : min(first + BATCH_MESSAGES, end)]
            rows = append_many(thread, generation, list(_messages(file, conversation, batch)))
            if grows:
                emit_all(thread.pk, thread.owner_id, _views(rows, generation))
            on_messages(len(batch))
    if grows:
        thread.updated = max(thread.updated, conversation.last)
        thread.save(update_fields=["updated"])
        state: Event = ("state", {"thread": thread_view(thread), "turn": turn_view(thread)})
        emit_all(thread.pk, thread.owner_id, [state])
    return len(begins)


def _messages(file: IO[bytes], conversation: ConversationIndex, batch: Sequence[NewRow]) -> Iterator[NewMessage]:
    for row in batch:
        line = read_again(file, conversation, row.position)
        yield NewMessage(
            role=line.role, text=line.text, wire=line.wire, meta=_meta(line, row.key), created=line.created
        )


def _meta(line: ImportLine, key: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"import": {"key": key, "id": line.id} if line.id else {"key": key}}
    if line.name:
        meta["name"] = line.name
    return meta


def _views(rows: Sequence[Message], generation: Generation) -> Iterator[Event]:
    for row in rows:
        if row.role != Message.Role.TOOL:
            yield ("message", {"message": message_view(row, generation.ordinal)})


def _cuts(thread: Thread, generation: Generation, conversation: ConversationIndex, new: Sequence[NewRow]) -> list[int]:
    """Indexes into `new` at which a new generation begins."""
    model = router.candidates("main", thread.category, thread.model)[0]
    live = [row.wire for row in rows_of_call(generation.pk, LAST_ROW, generation.cut)]
    fixed = [
        prompts.SYSTEM_TEXT,
        canonical([tool.wire() for tool in registry.all_tools()]),
        generation.opening or opening.render(thread, generation),
    ]
    taken = sum(estimate_tokens(text, model) for text in fixed) + OPENING_MARGIN_TOKENS
    held = sum(estimate_tokens(wire, model) for wire in live)
    correction = ratio(model)
    room = int(model.context_budget * GENERATION_BUDGET_SHARE) - taken
    return deal(
        [round(conversation.tokens[row.position] * correction) for row in new],
        [conversation.begins_exchange[row.position] for row in new],
        room=room,
        undealt_room=model.context_budget - taken - held,
        first_room=max(room - held, 0) if live else None,
    )


def _next_generation(thread: Thread, ended: Generation, starts: datetime) -> Generation:
    """End a generation where the next one's first message stands, and open that one for good."""
    starts = max(starts, ended.started)
    ended.ended, ended.end_reason = starts, Generation.EndReason.IMPORT
    ended.save(update_fields=["ended", "end_reason"])
    generation = Generation.objects.create(
        thread=thread, owner_id=thread.owner_id, ordinal=ended.ordinal + 1, started=starts
    )
    generation.opening = opening.render(thread, generation)
    generation.save(update_fields=["opening"])
    return generation


def _note_if_continued(thread: Thread, generation: Generation, conversation: ConversationIndex, count: int) -> None:
    """Words that were said elsewhere come after words that were said here: tell the person and the model."""
    rows = Message.objects.filter(thread=thread, owner_id=thread.owner_id)
    last_imported = rows.filter(meta__has_key="import").aggregate(last=Max("pk"))["last"] or 0
    said_here = rows.filter(pk__gt=last_imported, role__in=[Message.Role.USER, Message.Role.ASSISTANT])
    if not said_here.exists():
        return
    day = f"{clock.now():%Y-%m-%d}"
    sentence = ngettext(
        "The next message was imported on %(day)s. It was said elsewhere, at the time that it shows.",
        "The next %(count)s messages were imported on %(day)s. They were said elsewhere, at the times that they show.",
        count,
    ) % {"count": f"{count:,}", "day": day}
    emit_all(thread.pk, thread.owner_id, [append_notice(thread, generation, sentence, "imported")])
    append_note(
        thread,
        generation,
        f"The next {count:,} messages were imported on {day} from a record of this conversation kept elsewhere, which "
        f"ends on {conversation.last:%Y-%m-%d}. They may be older than what stands above.",
    )
