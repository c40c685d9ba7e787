"""The only place where a turn takes in what waits: before its first request and after each round of tools."""

from collections.abc import Sequence

from django.db.models import Exists, FilteredRelation, OuterRef, Q

from agent.events import Event
from agent.models import InboxItem
from agent.projection import message_view
from agent.prompts import framework_block
from agent.quoting import blocks
from threads.models import Generation, Message, Thread
from threads.transcript import append, text_block


def absorb(thread: Thread, generation: Generation, items: Sequence[InboxItem]) -> list[Event]:
    """Make each item a row, in order: the user's words a user row, everything else an event row. The thread is locked.
    Returns the events that say so."""
    events = rows_of(thread, generation, items)
    if items:
        InboxItem.objects.bulk_update(items, ["state", "message"])
    return events


def rows_of(thread: Thread, generation: Generation, items: Sequence[InboxItem]) -> list[Event]:
    """`absorb` without writing what became of the items: the caller does, with what else it has to write."""
    events: list[Event] = []
    for item in items:
        if item.source == "user":
            row = append(
                thread,
                generation,
                Message.Role.USER,
                text=item.text,
                blocks=blocks(item.text, item.quote),
                meta={"key": item.client_key} | ({} if item.quote is None else {"quote": item.quote}),
            )
            events.append(("unqueued", {"item": item.pk}))
        else:
            row = append(
                thread,
                generation,
                Message.Role.EVENT,
                text=item.text,
                blocks=[text_block(framework_block(item.text))],
                meta={"source": item.source},
            )
        item.state = InboxItem.State.TAKEN
        item.message = row
        if item.source == "user":
            events.append(("message", {"message": message_view(row, generation.ordinal)}))
    return events


def append_note(thread: Thread, generation: Generation, text: str) -> Message:
    """A line of the framework's own for the model, which the person does not see."""
    return append(
        thread,
        generation,
        Message.Role.EVENT,
        text=text,
        blocks=[text_block(framework_block(text))],
        meta={"source": "framework"},
    )


def append_notice(thread: Thread, generation: Generation, sentence: str, code: str) -> Event:
    """A sentence of the server's for the person, which never enters a prompt."""
    row = append(
        thread,
        generation,
        Message.Role.EVENT,
        text=sentence,
        model_visible=False,
        meta={"notice": code},
    )
    return ("message", {"message": message_view(row, generation.ordinal)})


def waiting_exists() -> Exists:
    """Annotation of a thread: whether anything waits for its next safe point."""
    return Exists(InboxItem.objects.filter(thread=OuterRef("pk"), state=InboxItem.State.WAITING))


def waiting_items(thread: Thread) -> list[InboxItem]:
    """What waits for the thread's next safe point, in order."""
    return list(InboxItem.objects.filter(thread=thread, state=InboxItem.State.WAITING).order_by("id"))


def waiting_for(thread: Thread) -> tuple[list[InboxItem], Generation | None]:
    """The same with the live generation, which they are for, in one statement: None where nothing waits."""
    live = FilteredRelation("thread__generations", condition=Q(thread__generations__ended__isnull=True))
    waiting = InboxItem.objects.filter(thread=thread, state=InboxItem.State.WAITING).annotate(live=live)
    found = waiting.select_related("live").order_by("id")  # type: ignore[misc]  # unknown to the plugin
    items: list[InboxItem] = list(found)
    return items, vars(items[0])["live"] if items else None
