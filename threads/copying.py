"""Forking, rewinding and undoing a rewind: one function, a new generation with copies.

A copy has the same wire as its source and points at it, so the same prefix goes out again and evidence is
found. Rows that a rewind leaves behind stay in the record as superseded, in every generation; earlier
requests can still be rebuilt from them. Nothing returns by itself what left: undoing a rewind makes copies
too.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, Max, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from accounts.models import User
from maxclaw import clock
from threads.access import NoSuchMessage
from threads.lifecycle import LifecycleRefused, check_owner, create_thread, settle
from threads.models import Generation, Message, Thread
from threads.request import in_call
from threads.signals import SettledReason
from threads.transcript import append, check_locked, live_generation, lock_thread, tool_calls_in, write_rows

COLD, SUPERSEDED = Message.LeftBecause.COLD, Message.LeftBecause.SUPERSEDED


def copy_into_new_generation(thread: Thread, upto_message: Message, *, reason: str) -> Generation:
    """End the live generation of a locked thread and begin one with copies of the opening and the live rows
    of `upto_message`'s generation, that message included."""
    source = upto_message.generation
    return _next_generation(thread, source, upto_message.pk, _cut_before_leaving(upto_message), reason)


def fork(owner: User, source_thread: Thread, upto_message: Message, *, acting_user: User) -> Thread:
    """A conversation of its own that begins with copies of what the source's context held up to a message. It
    stands on the source's island and in its category. Raises LifecycleRefused in the middle of a round of
    tool calls."""
    check_owner(source_thread, acting_user)
    if upto_message.thread_id != source_thread.pk:
        raise NoSuchMessage
    with transaction.atomic():
        source_thread = lock_thread(source_thread.pk)
        target = _standing(source_thread, upto_message)
        thread = create_thread(owner, title=source_thread.title, copied_from=target, model=source_thread.model)
        _fill(thread, live_generation(thread), target.generation, target.pk, _cut_before_leaving(target))
    return thread


def rewind(thread: Thread, to_message: Message, *, acting_user: User, keep: bool = True) -> Generation:
    """Go back to a message: it becomes the last of the context (`keep` False: it goes too), and every later row of
    the thread is superseded.

    Within the live generation that is a cut; into an earlier one, or to a row that went cold, it copies into
    a new one. Returns the live generation. Raises LifecycleRefused while a turn runs, in the middle of a
    round of tool calls, and for a row that was rewound away itself.
    """
    check_owner(thread, acting_user)
    if to_message.thread_id != thread.pk:
        raise NoSuchMessage
    with transaction.atomic():
        locked = _at_rest(thread)
        generation = live_generation(locked)
        target = _standing(locked, to_message)
        cut = _cut_before_leaving(target)
        last_id, root_id = (target.pk, _root_id(target)) if keep else (target.pk - 1, _root_id(target) - 1)
        _check_round_closed(_rows(target.generation_id, last_id, cut))
        later = _after(locked, root_id)
        in_context = target.generation_id == generation.pk and target.left_at_cut is None
        notes = Q(role=Message.Role.EVENT, model_visible=False)
        if in_context and not later.exclude(left_because=SUPERSEDED).exclude(notes).exists():
            return generation
        record = _supersede(locked, generation, later)
        if not in_context:
            reason = Generation.EndReason.REWIND
            generation = _next_generation(locked, target.generation, last_id, cut, reason)
        generation.refresh_from_db()
        text = _("The conversation was rewound to an earlier message.")
        _note(locked, generation, text, {"rewind": {"to": target.pk, "kept": keep, **record}})
    return generation


def undo_rewind(thread: Thread, *, acting_user: User) -> Generation:
    """Bring back, as copies, what the newest rewind that still stands left behind; what was said since is
    superseded. Returns the live generation. Raises LifecycleRefused when there is none, or while a turn
    runs."""
    check_owner(thread, acting_user)
    with transaction.atomic():
        locked = _at_rest(thread)
        event = _newest_rewind(locked)
        if event is None:
            raise LifecycleRefused(_("There is no rewind to undo."))
        record = event.meta["rewind"]
        _supersede(locked, live_generation(locked), _after(locked, record["last"]))
        reason = Generation.EndReason.REWIND
        generation = live_generation(locked)
        for source_id, cut in record["cuts"]:
            source = Generation.objects.get(pk=source_id)
            generation = _next_generation(locked, source, record["last"], cut, reason)
            _copy_cold(generation, Message.objects.filter(generation=source, pk__in=record["cold"]))
            generation.summary = source.summary
            generation.save(update_fields=["summary"])
        _note(locked, generation, _("The rewind was undone."), {"undone_rewind": event.pk})
    return generation


def rewound_to(thread: Thread) -> int | None:
    """Id of the last row that stood when the newest rewind that can be undone was made; None without one."""
    event = _newest_rewind(thread)
    return None if event is None else int(event.meta["rewind"]["last"])


def with_live_copy(thread_id: int) -> Q:
    """Superseded rows of a thread that count as live, because a copy of theirs in the same thread is."""
    return Q(left_because=SUPERSEDED) & Q(
        pk__in=Message.objects.filter(
            thread_id=thread_id, copied_from__thread_id=thread_id, left_at_cut__isnull=True
        ).values("copied_from_id")
    )


def _at_rest(thread: Thread) -> Thread:
    locked = lock_thread(thread.pk)
    if locked.state != Thread.State.IDLE:
        raise LifecycleRefused(_("The conversation is at work. Stop it or let it finish first."))
    if locked.status == Thread.Status.ENDED:
        raise LifecycleRefused(_("This conversation has ended."))
    return locked


def _root_id(message: Message) -> int:
    """The row that a copy inside one thread goes back to: its place in the conversation."""
    source = message.copied_from
    return source.pk if source is not None and source.thread_id == message.thread_id else message.pk


def _standing(thread: Thread, message: Message) -> Message:
    """The row to go back to for a row that a person sees: its copy in the live context where there is one."""
    root_id = _root_id(message)
    candidates = Message.objects.filter(Q(pk=root_id) | Q(copied_from_id=root_id), thread=thread)
    standing = candidates.exclude(left_because=SUPERSEDED).order_by(F("left_at_cut").asc(nulls_first=True), "-pk")
    found = standing.select_related("generation", "copied_from").first()
    if found is None:
        raise LifecycleRefused(_("That message was rewound. Undo the rewind to return to it."))
    return found


def _cut_before_leaving(message: Message) -> int:
    """The cut at which the context held the message: the present one, or for a cold row the one before it left."""
    if message.left_at_cut is None:
        return message.generation.cut
    return message.left_at_cut - 1


def _after(thread: Thread, root_id: int) -> QuerySet[Message]:
    """The rows of a thread later than a place in it. A copy made later of an earlier row is not later."""
    return Message.objects.filter(thread=thread, pk__gt=root_id).exclude(
        copied_from__thread=thread, copied_from_id__lte=root_id
    )


def _supersede(thread: Thread, live: Generation, later: QuerySet[Message]) -> dict[str, Any]:
    """Mark rows superseded, as one cut of each generation that they leave. Returns what undoing needs: the
    last row, each such generation with its cut before, the live one last, and the rows that were cold."""
    ids = list(later.exclude(left_because=SUPERSEDED).values_list("pk", "left_at_cut", "generation_id"))
    leaving = [pk for pk, left_at_cut, _generation in ids if left_at_cut is None]
    cold = [pk for pk, left_at_cut, _generation in ids if left_at_cut is not None]
    touched = {generation_id for _pk, _left, generation_id in ids} | {live.pk}
    generations = Generation.objects.filter(pk__in=touched)
    record = {
        "last": Message.objects.filter(thread=thread).aggregate(last=Max("pk"))["last"],
        "cuts": [list(pair) for pair in generations.order_by("ordinal").values_list("pk", "cut")],
        "cold": cold,
    }
    generations.update(cut=F("cut") + 1)
    cut_now = Generation.objects.filter(pk=OuterRef("generation_id")).values("cut")
    Message.objects.filter(pk__in=leaving).update(left_at_cut=Subquery(cut_now), left_because=SUPERSEDED)
    Message.objects.filter(pk__in=cold).update(left_because=SUPERSEDED)
    return record


def _rows(generation_id: int, last_id: int, cut: int) -> list[Message]:
    rows = Message.objects.filter(in_call(generation_id, last_id, cut))
    return list(rows.order_by("pk").select_related("copied_from"))


def _check_round_closed(rows: Sequence[Message]) -> None:
    """A tool call goes with its result or not at all: no model takes the one without the other."""
    answered = set()
    for row in reversed(rows):
        if row.role == Message.Role.TOOL:
            answered.add(row.tool_call_id)
        elif row.role == Message.Role.ASSISTANT:
            if set(tool_calls_in(row.wire)) - answered:
                raise LifecycleRefused(
                    _("That message is in the middle of tool calls. Choose the one before or after them.")
                )
            return


def _next_generation(thread: Thread, source: Generation, last_id: int, cut: int, reason: str) -> Generation:
    check_locked(thread)
    ended = live_generation(thread)
    ended.ended, ended.end_reason = clock.now(), reason
    ended.save(update_fields=["ended", "end_reason"])
    generation = Generation.objects.create(thread=thread, owner_id=thread.owner_id, ordinal=ended.ordinal + 1)
    _fill(thread, generation, source, last_id, cut)
    settle(thread, SettledReason.GENERATION_ENDED)
    return generation


def _fill(thread: Thread, generation: Generation, source: Generation, last_id: int, cut: int) -> None:
    """Copy the opening and the rows of a context into an empty generation, with the header that their
    thinking is bound to."""
    check_locked(thread)
    rows = _rows(source.pk, last_id, cut)
    _check_round_closed(rows)
    copies = write_rows([_copy(row, generation) for row in rows])
    kept = [copy.pk for row, copy in zip(rows, copies, strict=True) if row.pk >= source.thinking_from]
    generation.opening = source.opening
    generation.summary_before = source.summary_before
    generation.header_id = source.header_id
    generation.standing = source.standing
    if copies and source.thinking_from:
        generation.thinking_from = kept[0] if kept else copies[-1].pk + 1
    generation.save(update_fields=["opening", "summary_before", "header", "standing", "thinking_from"])


def _copy_cold(generation: Generation, rows: QuerySet[Message]) -> None:
    """Copies of rows that had gone cold: found by search again, and in no request."""
    cold = [_copy(row, generation) for row in rows.order_by("pk").select_related("copied_from")]
    for copy in cold:
        copy.left_at_cut, copy.left_because = 0, COLD
    write_rows(cold)


def _copy(row: Message, generation: Generation) -> Message:
    return Message(
        thread_id=generation.thread_id,
        owner_id=generation.owner_id,
        generation=generation,
        role=row.role,
        text=row.text,
        search_text=row.search_text,
        wire=row.wire,
        model=row.model,
        tool_call_id=row.tool_call_id,
        is_error=row.is_error,
        model_visible=row.model_visible,
        meta=row.meta,
        created=row.created,
        copied_from_id=_root_id(row),
    )


def _note(thread: Thread, generation: Generation, text: str, meta: dict[str, Any]) -> None:
    """What happened, as a row of the record that people see and no model does."""
    append(thread, generation, Message.Role.EVENT, text=text, model_visible=False, meta=meta)


def _newest_rewind(thread: Thread) -> Message | None:
    events = Message.objects.filter(thread=thread, role=Message.Role.EVENT)
    undone = events.filter(meta__has_key="undone_rewind").values_list("meta__undone_rewind", flat=True)
    rewinds = events.filter(meta__has_key="rewind").exclude(pk__in=list(undone))
    return rewinds.order_by("-pk").first()
