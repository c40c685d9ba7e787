"""Bringing one conversation of an export into the records: `import_history.py` says what is read of it.

- The way to the present message becomes a thread with the original times. Every other end of the tree becomes a branch:
  a thread of its own, which begins with copies of what the context held where it departs.
- Importing again adds nothing, and a newer export what is new: after what is there where it follows on from the last
  message imported, else as a branch. What was said in MaxClaw meanwhile stays before it, with a note.
- A message that is known stays as it is, and so does what stands before it: nothing is put between old messages.
- One transaction a conversation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agent import import_rows
from agent.copied_calls import copy_tool_calls
from agent.import_history import Call, History
from agent.import_passage import HistoryPassage
from agent.import_tree import Segment, segments
from agent.importing import NotImported, Outcome, check_takes_rows, find_threads, once_more_after_another
from agent.models import ImportedConversation
from agent.revising import name_branch
from llm import router
from threads import copying
from threads.lifecycle import LifecycleRefused, clean_title, create_thread, title_from
from threads.models import Generation, Message, Thread

NOT_SPOKEN = (Message.Role.EVENT,)


def import_history(
    owner: User,
    history: History,
    *,
    title_prefix: str = "",
    dry_run: bool = False,
    is_known: bool = True,
    on_messages: Callable[[int], None] = lambda _count: None,
) -> Outcome:
    """Bring one conversation of an export into the owner's records, in one transaction; with `dry_run` only say what
    would be added. `is_known` False: as far as the caller knows it was never imported, so it is not looked for first.
    Raises NotImported, with nothing stored."""
    if not history.nodes:
        return Outcome()
    return once_more_after_another(
        lambda again: _import_once(owner, history, title_prefix, dry_run, on_messages, look=is_known or again)
    )


@dataclass
class _There:
    """What the records hold of the conversation: its threads, the first and last row of each known message, the last
    message of each thread."""

    threads: dict[int, Thread] = field(default_factory=dict)
    branches: set[str] = field(default_factory=set)
    rows: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # key: (thread, first row, last row)
    last_key: dict[int, str] = field(default_factory=dict)


def _import_once(
    owner: User,
    history: History,
    title_prefix: str,
    dry_run: bool,
    on_messages: Callable[[int], None],
    *,
    look: bool,
) -> Outcome:
    # Most conversations of a newer export are known whole: then nothing is locked and nothing written.
    there = _look(owner, history, lock=False) if look else _There()
    outcome = _outcome(history, there)
    if not dry_run and outcome.added:
        with transaction.atomic():
            if there.threads:
                there = _look(owner, history, lock=True)
                outcome = _outcome(history, there)
            writing = _Writing(owner, history, there, title_prefix, on_messages)
            try:
                outcome.generations = sum(writing.write(part) for part in _new_parts(history, there))
            except router.NoModelForCategory as error:
                raise NotImported(str(error)) from None
    outcome.channel = next((thread.channel for thread in there.threads.values()), "")
    return outcome


def _new_parts(history: History, there: _There) -> list[Segment]:
    known = [node_id for node_id in history.nodes if history.key(node_id) in there.rows]
    return segments(history.parents, history.current, known)


def _outcome(history: History, there: _There) -> Outcome:
    """What importing it now comes to."""
    parts = _new_parts(history, there)
    return Outcome(
        is_new=not there.threads,
        added=sum(len(part.nodes) for part in parts),
        already_there=sum(history.key(node_id) in there.rows for node_id in history.nodes),
        branches=sum(part.departs_from is not None and not _follows_on(history, there, part) for part in parts),
    )


def _look(owner: User, history: History, *, lock: bool) -> _There:
    found = find_threads(owner, history.format, history.source, lock=lock)
    there = _There(threads={thread.pk: thread for thread in found.values()}, branches=set(found))
    if there.threads:
        rows = Message.objects.filter(thread_id__in=list(there.threads), owner=owner, copied_from__isnull=True)
        keys = rows.filter(meta__has_key="import").order_by("id").values_list("id", "thread_id", "meta__import__key")
        for row_id, thread_id, key in keys:
            home, first, _last = there.rows.get(key, (thread_id, row_id, row_id))
            there.last_key[thread_id] = key
            if home == thread_id:  # in others stand copies whose original was erased
                there.rows[key] = (thread_id, first, row_id)
    return there


def _follows_on(history: History, there: _There, part: Segment) -> bool:
    """Whether a segment goes on where a thread ends, rather than departing from the middle of it. Nothing follows on
    from the present message."""
    if part.departs_from is None or part.departs_from == history.current:
        return False
    key = history.key(part.departs_from)
    return key in there.rows and there.last_key[there.rows[key][0]] == key


@dataclass
class _Writing:
    """Writes segments one after the other, and remembers what stands where."""

    owner: User
    history: History
    there: _There
    title_prefix: str
    on_messages: Callable[[int], None]
    made: set[int] = field(default_factory=set)
    # All rows of each thread that this import made and that one generation holds: nothing else is in its context.
    rows: dict[int, list[Message]] = field(default_factory=dict)

    def write(self, part: Segment) -> int:
        """Store a segment. Returns over how many generations it was dealt."""
        if part.departs_from is None:
            thread, passage = self._new(part), self._passage(part, ())
            grows, holds_copies = False, False
        elif _follows_on(self.history, self.there, part):
            thread = self.there.threads[self.there.rows[self.history.key(part.departs_from)][0]]
            check_takes_rows(thread)
            passage, grows, holds_copies = self._passage(part, ()), thread.pk not in self.made, False
        else:
            thread, copies, open_calls, holds_copies = self._branch(part)
            passage, grows = self._passage(part, open_calls, copies), False
        count = import_rows.add(thread, passage, grows=grows, holds_copies=holds_copies, on_messages=self.on_messages)
        if holds_copies or any(row.copied_from_id and '"tool_use"' in (row.wire or "") for row in passage.written):
            copy_tool_calls(thread)
        before = self.rows.pop(thread.pk, None if grows or holds_copies else [])
        if before is not None and count == 1:
            self.rows[thread.pk] = [*before, *passage.written]
        for key, first, last in passage.stored:
            self.there.rows[key] = (thread.pk, first, last)
            self.there.last_key[thread.pk] = key
        return count

    def _passage(
        self, part: Segment, open_calls: tuple[Call, ...], copies: list[Message] | None = None
    ) -> HistoryPassage:
        return HistoryPassage(self.history, part.nodes, open_calls=open_calls, copies=copies or [])

    def _new(self, part: Segment) -> Thread:
        title = self.history.title.strip() or title_from(self.history.first_words)
        created, updated = self._times(part)
        title = clean_title(f"{self.title_prefix}{title}")
        thread = self._put_away(create_thread(self.owner, title=title, created=created, updated=updated))
        return self._remember(thread, "" if "" not in self.there.branches else self.history.key(part.nodes[0]))

    def _times(self, part: Segment) -> tuple[datetime, datetime]:
        times = [self.history.nodes[node_id].created for node_id in part.nodes]
        return times[0], max(times)

    def _branch(self, part: Segment) -> tuple[Thread, list[Message], tuple[Call, ...], bool]:
        """The thread of a branch; rows to copy into it, and the calls which those leave open; whether it holds others
        already, as copies of what the context held where it departs."""
        node = self.history.nodes[part.departs_from or ""]
        source_id, first, last = self.there.rows[self.history.key(node.id)]
        source = self.there.threads[source_id]
        if source_id in self.rows:
            # An open call goes along, and gets the result that it has here.
            copies = [row for row in self.rows[source_id] if row.pk <= (first if node.open_calls else last)]
            return self._branch_of_new(part, source, copies, bool(node.open_calls)), copies, node.open_calls, False
        rows = Message.objects.filter(thread=source, owner=self.owner).select_related("generation")
        copies = []
        if node.open_calls:
            copies = list(rows.filter(pk=first))
            upto = rows.filter(pk__lt=first).exclude(role__in=NOT_SPOKEN).order_by("-pk").first()
        else:
            upto = rows.get(pk=last)
        thread = self._forked(source, upto)
        if thread is None:
            thread = create_thread(self.owner, copied_from=upto or copies[0], model=source.model)
            if upto is not None:
                # What was rewound here is no context to fork; it is copied all the same.
                held = upto.generation
                Generation.objects.filter(thread=thread).update(
                    opening=held.opening, summary_before=held.summary_before, standing=held.standing
                )
                before = rows.filter(generation=upto.generation, pk__lte=upto.pk).exclude(role__in=NOT_SPOKEN)
                copies = [*before.filter(model_visible=True).order_by("pk"), *copies]
        origin = (upto or copies[0]).generation
        Generation.objects.filter(thread=thread).update(started=origin.started)
        if upto is not None and origin.opening is not None:
            name_branch(thread, source)
        thread.title = self._branch_title()
        thread.created, thread.updated = self._times(part)
        thread.save(update_fields=["title", "created", "updated"])
        return self._remember(self._put_away(thread), self.history.key(part.nodes[0])), copies, node.open_calls, True

    def _branch_of_new(self, part: Segment, source: Thread, copies: list[Message], ends_open: bool) -> Thread:
        """A branch of a thread that this import made itself: all of its rows are at hand, so nothing is read."""
        departs = copies[-2] if ends_open and len(copies) > 1 else copies[-1]
        departs.thread = source
        created, updated = self._times(part)
        thread = create_thread(
            self.owner,
            title=self._branch_title(),
            copied_from=departs,
            model=source.model,
            created=created,
            updated=updated,
        )
        return self._remember(self._put_away(thread), self.history.key(part.nodes[0]))

    def _forked(self, source: Thread, upto: Message | None) -> Thread | None:
        if upto is None:
            return None
        try:
            return copying.fork(self.owner, source, upto, acting_user=self.owner)
        except LifecycleRefused:
            return None

    def _branch_title(self) -> str:
        first = next(iter(self.there.threads.values()))
        title = _("%(title)s · branch %(number)s") % {"title": first.title, "number": len(self.there.branches)}
        return clean_title(title)

    def _put_away(self, thread: Thread) -> Thread:
        """As the export says."""
        if self.history.archived:
            thread.status = Thread.Status.ARCHIVED
            thread.save(update_fields=["status"])
        return thread

    def _remember(self, thread: Thread, branch: str) -> Thread:
        # Before the rows: a second import of the same conversation waits here, and then finds it.
        ImportedConversation.objects.create(
            thread=thread, owner=self.owner, format=self.history.format, source=self.history.source, branch=branch
        )
        self.there.threads[thread.pk] = thread
        self.there.branches.add(branch)
        self.made.add(thread.pk)
        return thread
