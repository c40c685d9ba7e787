"""Importing conversations that were held elsewhere, from JSON lines (`import_lines.py` says what a line holds).

- A conversation of the file becomes one thread of the owner's, with the original times. The order of its lines is the
  order of the conversation; lines of several may be mixed.
- Importing again adds nothing. A message is the same one when it has the same `id` in the same conversation; without
  an id, when conversation, role, speaker, text and time are the same, the n-th of several such lines being the n-th.
- A file that grew adds what is new, after what is there. If the conversation was continued in MaxClaw meanwhile, the
  new messages stand after that too, with a note to the person and to the model that they come from elsewhere; they
  keep their own times. A conversation that is at work or has ended is left out, and said so.
- A conversation that was deleted here is imported anew.
- One transaction a conversation: an import can be stopped at any time and run again.
- A history larger than the model's context budget is dealt into generations, see `import_rows.py`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from django.db import IntegrityError, transaction

from accounts.models import User
from agent import import_rows
from agent.import_index import ConversationIndex, Lines, NewLine
from agent.import_keys import key_of
from agent.models import ImportedConversation
from agent.rules import refine
from llm import router
from maxclaw.sentences import Told
from maxclaw.sentences import sentence as _
from threads.lifecycle import clean_title, create_thread, title_from
from threads.models import Message, Thread
from threads.transcript import ThreadGone, lock_thread

FORMAT = ImportedConversation.Format.LINES


class NotImported(Told):
    """Why one conversation was left out: a sentence for the person. Nothing of it was stored."""


@dataclass
class Outcome:
    """What became of one conversation: the channel of its thread, how many messages were added or there already, how
    many new branches. `repeated` are the numbers of lines whose id an earlier line has."""

    channel: str = ""
    is_new: bool = False
    branches: int = 0
    added: int = 0
    already_there: int = 0
    generations: int = 0
    repeated: list[int] = field(default_factory=list)


def import_conversation(
    owner: User,
    file: IO[bytes],
    conversation: ConversationIndex,
    *,
    title_prefix: str = "",
    dry_run: bool = False,
    on_messages: Callable[[int], None] = lambda _count: None,
) -> Outcome:
    """Bring one conversation of an indexed file into the owner's records, in one transaction; with `dry_run` only say
    what would be added.

    `on_messages(count)` is told of each batch of rows. Raises NotImported and FileChanged, with nothing stored.
    """
    return once_more_after_another(
        lambda _again: _import_once(owner, file, conversation, title_prefix, dry_run, on_messages)
    )


def _import_once(
    owner: User,
    file: IO[bytes],
    conversation: ConversationIndex,
    title_prefix: str,
    dry_run: bool,
    on_messages: Callable[[int], None],
) -> Outcome:
    with transaction.atomic():
        threads = find_threads(owner, FORMAT, conversation.source, lock=not dry_run)
        thread = threads.get("")
        new, outcome = _what_is_new(conversation, set() if thread is None else _known_keys(thread))
        outcome.is_new = thread is None
        if new and not dry_run:
            if thread is None:
                thread = _new_thread(owner, conversation, title_prefix)
            else:
                check_takes_rows(thread)
            try:
                outcome.generations = import_rows.add(
                    thread, Lines(file, conversation, new), grows=not outcome.is_new, on_messages=on_messages
                )
            except router.NoModelForCategory as error:
                raise NotImported(str(error)) from None
        outcome.channel = "" if thread is None else thread.channel
    return outcome


def find_threads(owner: User, format: str, source: str, *, lock: bool) -> dict[str, Thread]:
    """The threads that a conversation was imported into, by branch, in the order in which they were made; with `lock`
    locked. A deleted one is not among them: importing makes it anew instead of bringing it back."""
    imported = ImportedConversation.objects.filter(owner=owner, format=format, source=source)
    if not lock:
        there = imported.filter(thread__deleted__isnull=True).select_related("thread").order_by("thread_id")
        return {row.branch: row.thread for row in there}
    while True:
        found: dict[str, Thread] = {}
        for row in list(imported.order_by("thread_id")):
            try:
                # Two imports that both found it would both find the same messages new: the second waits here.
                thread = lock_thread(row.thread_id)
            except ThreadGone:
                continue
            if thread.deleted is None:
                found[row.branch] = thread
            else:
                imported.filter(pk=row.pk, thread_id=row.thread_id).delete()
        # Whoever was waited for may have made others.
        if not found or set(imported.values_list("thread_id", flat=True)) == {one.pk for one in found.values()}:
            return found


def _known_keys(thread: Thread) -> set[str]:
    rows = Message.objects.filter(thread=thread, owner_id=thread.owner_id, meta__has_key="import")
    return set(rows.values_list("meta__import__key", flat=True))


def _what_is_new(conversation: ConversationIndex, known: set[str]) -> tuple[list[NewLine], Outcome]:
    """The lines to add, and the outcome that adding them has."""
    outcome = Outcome()
    new: list[NewLine] = []
    seen: Counter[bytes] = Counter()
    for position in range(len(conversation)):
        digest = conversation.digest(position)
        seen[digest] += 1
        if seen[digest] > 1 and conversation.has_id[position]:
            outcome.repeated.append(conversation.line_numbers[position])
            continue
        key = key_of(digest)
        if seen[digest] > 1:
            key = f"{key}/{seen[digest]}"
        if key in known:
            outcome.already_there += 1
        else:
            new.append(NewLine(position, key))
    outcome.added = len(new)
    return new, outcome


def _new_thread(owner: User, conversation: ConversationIndex, title_prefix: str) -> Thread:
    title = conversation.title.strip() or title_from(conversation.first_words)
    title = clean_title(f"{title_prefix}{title}")
    thread = create_thread(owner, title=title, created=conversation.first, updated=conversation.last)
    # Before the rows: a second import of the same conversation waits here, and then finds it.
    ImportedConversation.objects.create(thread=thread, owner=owner, format=FORMAT, source=conversation.source)
    return thread


def check_takes_rows(thread: Thread) -> None:
    """Raise NotImported for a locked thread that nothing can be appended to now."""
    if thread.status == Thread.Status.ENDED:
        raise NotImported(_("It has ended in MaxClaw, so its new messages were left out."))
    if thread.state != Thread.State.IDLE:
        raise NotImported(_("It is at work in MaxClaw, so its new messages were left out. Import again when it rests."))


def once_more_after_another(import_once: Callable[[bool], Outcome]) -> Outcome:
    """Run an import of one conversation, told whether it runs again: when another import of the same one committed
    first, so that what that brought is found."""
    try:
        return import_once(False)
    except IntegrityError as error:
        violation = refine(error)
        if violation is None or violation.name != "importedconversation_once_per_owner":
            raise
    return import_once(True)
