"""Appending imported messages to a thread, dealt into generations where they are more than a context holds.

The live generation holds at most half of the model's budget (system, tools and opening counted), the newest exchanges
first of all; the earlier ones have ended with the reason "import" and hold no more. The openings of those between are
rendered and frozen at once, for branches that copy them; the last one's at its first turn, as in every conversation, so
that it says what is remembered then. From the second on they say that earlier messages are read with
`message_history_read`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Protocol

from django.db.models import Max
from django.utils.translation import ngettext

from agent import opening, prompts, registry
from agent.dealing import GENERATION_BUDGET_SHARE, deal
from agent.events import Event, emit_all
from agent.frames import turn_view
from agent.models import ToolCall
from agent.projection import message_view, thread_view
from agent.prompts import framework_block
from agent.safe_point import append_note, append_notice
from llm import router
from llm.catalog import Model
from llm.estimates import estimate_tokens, ratio
from llm.wire import canonical
from maxclaw import clock
from threads.models import Generation, Message, Thread
from threads.request import rows_of_call
from threads.transcript import NewMessage, append_many, live_generation, take_ids, text_block

BATCH_MESSAGES = 500
# What the opening of a later generation says beyond that of the present one.
OPENING_MARGIN_TOKENS = 200
# A history that takes no more of the budget is one generation, whatever its opening says.
SMALL_SHARE = 0.25
LAST_ROW = 2**63 - 1


class Passage(Protocol):
    """Messages to append, in their order, by their place from 0. Reading one may read a file, and may raise what
    reading raises."""

    @property
    def last(self) -> datetime:
        """When the conversation was last spoken in."""

    def __len__(self) -> int: ...

    def tokens(self, place: int, model: Model) -> int:
        """About how many tokens of the model's it has."""

    def begins_exchange(self, place: int) -> bool:
        """Whether it is the user's words: a generation may begin with it."""

    def goes_with_the_one_before(self, place: int) -> bool:
        """Whether no model takes it without the one before: a tool's result without its call."""

    def created(self, place: int) -> datetime: ...

    def names_itself(self, place: int, model: Model) -> bool:
        """Whether its wire holds its own id."""

    def message(self, place: int, row_id: int | None, model: Model) -> NewMessage: ...

    def calls(self, first: int, rows: Sequence[Message]) -> list[ToolCall]:
        """The tool calls of rows that were just appended, of which `first` is the place of the first, unsaved."""


def orphan_output_wire(text: str) -> str:
    """The content blocks of a tool's output whose call is unknown: a model takes a tool result only after the call that
    it answers, so these are the server's words."""
    return canonical([text_block(framework_block(f"Output of a tool, imported:\n{text}"))])


def add(
    thread: Thread,
    passage: Passage,
    *,
    grows: bool,
    holds_copies: bool = False,
    on_messages: Callable[[int], None],
) -> int:
    """Append a passage to a locked, resting thread. Returns over how many generations it was dealt.

    `grows`: the thread was there before, so somebody may have it open and is told of each row. `holds_copies`: it is
    new, and begins with copies. Raises NoModelForCategory, and what reading the passage raises.
    """
    begun = None if grows or holds_copies else thread.begun_with
    generation = begun or live_generation(thread)
    if grows:
        _note_if_continued(thread, generation, passage)
    model = router.candidates("main", thread.category, thread.model)[0]
    cuts = _cuts(thread, generation, passage, model, is_empty=not (grows or holds_copies))
    begins, ends = [0, *cuts], [*cuts, len(passage)]
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        starts = passage.created(min(begin, len(passage) - 1))
        if number:
            generation = _next_generation(thread, generation, starts, is_last=number == len(begins) - 1)
        elif not grows and not holds_copies and generation.started != starts:
            generation.started = starts
            generation.save(update_fields=["started"])
        for first, after in _batches(passage, begin, end):
            rows, calls = _append(thread, generation, passage, first, after, model)
            if grows:
                emit_all(thread.pk, thread.owner_id, _views(rows, calls, generation))
            on_messages(after - first)
    if grows:
        thread.updated = max(thread.updated, passage.last)
        thread.save(update_fields=["updated"])
        state: Event = ("state", {"thread": thread_view(thread), "turn": turn_view(thread)})
        emit_all(thread.pk, thread.owner_id, [state])
    return len(begins)


def _batches(passage: Passage, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Places at which a batch begins and ends; a call is in one with its results."""
    while begin < end:
        after = min(begin + BATCH_MESSAGES, end)
        while after < end and passage.goes_with_the_one_before(after):
            after += 1
        yield begin, after
        begin = after


def _append(
    thread: Thread, generation: Generation, passage: Passage, first: int, after: int, model: Model
) -> tuple[list[Message], list[ToolCall]]:
    places = range(first, after)
    ids: Sequence[int | None] = [None] * len(places)
    if any(passage.names_itself(place, model) for place in places):
        ids = take_ids(thread, len(places))
    messages = [passage.message(place, row_id, model) for place, row_id in zip(places, ids, strict=True)]
    rows = append_many(thread, generation, messages)
    calls = passage.calls(first, rows)
    if calls:
        ToolCall.objects.bulk_create(calls, batch_size=1000)
    return rows, calls


def _views(rows: Sequence[Message], calls: Sequence[ToolCall], generation: Generation) -> Iterator[Event]:
    by_message: Mapping[int, list[ToolCall]] = {
        row.pk: [call for call in calls if call.message_id == row.pk] for row in (rows if calls else [])
    }
    for row in rows:
        if row.role != Message.Role.TOOL:
            yield ("message", {"message": message_view(row, generation.ordinal, by_message.get(row.pk, []))})


def _cuts(thread: Thread, generation: Generation, passage: Passage, model: Model, *, is_empty: bool) -> list[int]:
    """Places at which a new generation begins."""
    tokens = [passage.tokens(place, model) for place in range(len(passage))]
    live = [] if is_empty else [row.wire for row in rows_of_call(generation.pk, LAST_ROW, generation.cut)]
    held = sum(estimate_tokens(wire, model) for wire in live)
    taken = _tokens_before_opening(model) + OPENING_MARGIN_TOKENS
    if taken + held + sum(tokens) <= model.context_budget * SMALL_SHARE:
        return []
    taken += estimate_tokens(generation.opening or opening.render(thread, generation), model)
    room = int(model.context_budget * GENERATION_BUDGET_SHARE) - taken
    # What goes with the one before is dealt with it, as one.
    heads = [place for place in range(len(passage)) if not (place and passage.goes_with_the_one_before(place))]
    sums = [sum(tokens[head:after]) for head, after in zip(heads, [*heads[1:], len(passage)], strict=True)]
    cuts = deal(
        sums,
        [passage.begins_exchange(head) for head in heads],
        room=room,
        undealt_room=model.context_budget - taken - held,
        first_room=max(room - held, 0) if live else None,
    )
    return [heads[cut] if cut < len(heads) else len(passage) for cut in cuts]


def _tokens_before_opening(model: Model) -> int:
    fixed = prompts.system_text() + canonical([tool.wire() for tool in registry.all_tools()])
    return round(_tokens(fixed) * ratio(model))


@lru_cache(maxsize=1)
def _tokens(text: str) -> int:
    """Counted once for all conversations of an export: most are shorter than this text."""
    return estimate_tokens(text)


def _next_generation(thread: Thread, ended: Generation, starts: datetime, *, is_last: bool) -> Generation:
    """End a generation where the next one's first message stands, and begin that one."""
    starts = max(starts, ended.started)
    ended.ended, ended.end_reason = starts, Generation.EndReason.IMPORT
    ended.save(update_fields=["ended", "end_reason"])
    generation = Generation.objects.create(
        thread=thread, owner_id=thread.owner_id, ordinal=ended.ordinal + 1, started=starts
    )
    if not is_last:
        generation.opening = opening.render(thread, generation)
        generation.save(update_fields=["opening"])
    return generation


def _note_if_continued(thread: Thread, generation: Generation, passage: Passage) -> None:
    """Words that were said elsewhere come after words that were said here: tell the person and the model."""
    count = len(passage)
    rows = Message.objects.filter(thread=thread, owner_id=thread.owner_id)
    last_imported = rows.filter(meta__has_key="import").aggregate(last=Max("pk"))["last"] or 0
    said_here = rows.filter(pk__gt=last_imported, role__in=[Message.Role.USER, Message.Role.ASSISTANT])
    if not said_here.exists():
        return
    owner = thread.owner
    day = f"{owner.local(clock.now()):%Y-%m-%d}"
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
        f"ends on {owner.local(passage.last):%Y-%m-%d}. They may be older than what stands above.",
    )
