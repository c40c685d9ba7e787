"""Rows of facts: their locks, and the few writes that every change of a fact is made of."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Coalesce
from django_q.tasks import async_task

from accounts.models import User
from maxclaw import clock
from maxclaw.text import visible
from memory import evidence, secrets
from memory.evidence import Proof
from memory.fact_drafts import FactDraft, fingerprint_of
from memory.forgotten import marks_of
from memory.models import Fact, FactEvidence, FactLog
from memory.refusals import FactRefused
from threads.visibility import Level, Viewer, thread_filter


def level_of(fact: Fact) -> Level:
    """Where a fact may go."""
    return Level(fact.scope, fact.island_id, fact.category)


def visible_facts(viewer: Viewer) -> QuerySet[Fact]:
    """The facts that a viewer may see, whatever their status: the only door to rows of facts for whoever reads."""
    return Fact.objects.filter(thread_filter(viewer))


def lock_facts(owner_id: int) -> None:
    """Keep every other writer of this owner's facts waiting until the transaction ends. Conversations are locked
    before. Raises TransactionManagementError outside a transaction."""
    transaction.get_connection().validate_no_broken_transaction()
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("Facts are locked within a transaction.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('memory.facts', %s))", [owner_id])


def facts_are_wanted(owner_id: int) -> bool:
    """Whether anybody waits for this owner's facts."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT EXISTS (
                SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objsubid = 1
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                    AND (classid::bigint << 32) | objid::bigint = hashtextextended('memory.facts', %s)
            )
            """,
            [owner_id],
        )
        return bool(cursor.fetchone()[0])


def lock_threads(owner_id: int, thread_ids: Iterable[int]) -> None:
    """Keep the levels of these conversations as they are until the transaction ends, and them from being erased."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM threads_thread WHERE owner_id = %s AND id = ANY(%s) ORDER BY id FOR SHARE",
            [owner_id, sorted(thread_ids)],
        )
        if len(cursor.fetchall()) < len(set(thread_ids)):
            raise FactRefused("The conversation is gone.")


def hold_threads(owner_id: int) -> None:
    """Keep an owner's conversations from being erased until the transaction ends, by id as whoever erases locks them.
    Turns go on. To be taken before the facts by whoever ends contexts, which writes rows that refer to them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM threads_thread WHERE owner_id = %s ORDER BY id FOR KEY SHARE", [owner_id])


def lock_threads_and_facts(owner_id: int, thread_ids: Iterable[int]) -> None:
    """Both locks, in their order, without holding the conversations while the facts are waited for: somebody may want
    to speak in one of them. Raises FactRefused."""
    threads = set(thread_ids)
    while True:
        both = transaction.savepoint()
        lock_threads(owner_id, threads)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended('memory.facts', %s))", [owner_id])
            if cursor.fetchone()[0]:
                transaction.savepoint_commit(both)
                return
        # Going back lets go of the conversations; of the facts too, once they were waited for.
        transaction.savepoint_rollback(both)
        waited = transaction.savepoint()
        lock_facts(owner_id)
        transaction.savepoint_rollback(waited)


def locked(facts: Sequence[Fact], viewer: Viewer | None = None, *, active: bool = True) -> list[Fact]:
    """Facts of one owner as they are under the owner's lock, in the given order, all of them active or none, as asked.
    Raises FactRefused."""
    owner_id = facts[0].owner_id
    evidence_rows = FactEvidence.objects.filter(fact__in=[fact.pk for fact in facts])
    threads: set[int] = set()
    for path in ("message__thread", "generation__thread", "accepted_by__thread"):
        threads |= set(evidence_rows.filter(**{f"{path}__isnull": False}).values_list(path, flat=True))
    lock_threads_and_facts(owner_id, threads)
    rows = Fact.objects.filter(owner_id=owner_id) if viewer is None else visible_facts(viewer)
    found = rows.in_bulk([fact.pk for fact in facts])
    for fact in facts:
        if fact.pk not in found:
            raise FactRefused(f"There is no fact {fact.pk}.")
        if (found[fact.pk].status == Fact.Status.ACTIVE) != active:
            raise FactRefused(f"Fact {fact.pk} is {found[fact.pk].status}.")
    return [found[fact.pk] for fact in facts]


def same_fact(owner_id: int, draft: FactDraft, level: Level) -> Fact | None:
    """The active fact that says the same of the same, at the same visibility."""
    candidates = _saying(owner_id, draft, level).filter(status=Fact.Status.ACTIVE)
    return next((fact for fact in candidates.order_by("pk") if _of_same(fact, draft)), None)


def _saying(owner_id: int, draft: FactDraft, level: Level) -> QuerySet[Fact]:
    return _at(owner_id, level).filter(fingerprint=fingerprint_of(draft.text), kind=draft.kind)


def _at(owner_id: int, level: Level) -> QuerySet[Fact]:
    return Fact.objects.filter(
        owner_id=owner_id, scope=level.scope, island_id=level.island_id, category=level.category
    ).defer("embedding")


def _of_same(fact: Fact, draft: FactDraft) -> bool:
    return fingerprint_of(fact.applies_to) == fingerprint_of(draft.applies_to)


def of_same_thing(owner_id: int, draft: FactDraft, level: Level) -> QuerySet[Fact]:
    """Active facts about the person of the same aspect that name the same thing that they apply to, at the same
    visibility; none for what applies in general, or is not about the person: events stand side by side."""
    alike = _at(owner_id, level).filter(kind=draft.kind, aspect=draft.aspect, status=Fact.Status.ACTIVE)
    if draft.kind != Fact.Kind.ABOUT_USER or not draft.applies_to:
        return alike.none()
    named = alike.exclude(applies_to="").order_by().values_list("applies_to", flat=True).distinct()
    wanted = fingerprint_of(draft.applies_to)
    return alike.filter(applies_to__in=[name for name in named if fingerprint_of(name) == wanted])


def successors(owner_id: int, draft: FactDraft, level: Level) -> QuerySet[Fact]:
    """Active facts that superseded, at last, one that said the same of the same, at the same visibility."""
    facts = Fact.objects.filter(owner_id=owner_id)
    said = _saying(owner_id, draft, level).filter(status=Fact.Status.SUPERSEDED)
    ids: set[int] = set()
    waiting = {fact.superseded_by_id for fact in said if _of_same(fact, draft) and fact.superseded_by_id is not None}
    while waiting:
        ids |= waiting
        after = facts.filter(pk__in=waiting, superseded_by__isnull=False).values_list("superseded_by_id", flat=True)
        waiting = {pk for pk in after if pk is not None} - ids
    return facts.filter(pk__in=ids, status=Fact.Status.ACTIVE)


def taken_back(owner_id: int, draft: FactDraft, level: Level) -> datetime | None:
    """Of when it is that what said the same was last taken back, None if it never was: a fact that said the same of the
    same, at the same visibility, retired by anybody, or put right or merged by the person or staff; or one in the same
    words, wherever it was seen, forgotten."""
    said = [
        fact for fact in _saying(owner_id, draft, level).exclude(status=Fact.Status.ACTIVE) if _of_same(fact, draft)
    ]
    closed = [fact.pk for fact in said]
    retired = [fact.pk for fact in said if fact.status == Fact.Status.RETIRED]
    by_hand = Q(writer__in=Fact.BY_HAND, before__overlap=closed) & ~Q(action=FactLog.Action.RESTORE)
    by_anybody = Q(action=FactLog.Action.RETIRE, before__overlap=retired)
    marks = marks_of(owner_id, fingerprint_of(draft.text))
    forgotten = Q(action=FactLog.Action.FORGET, forgotten__overlap=marks)
    entries = FactLog.objects.filter(by_hand | by_anybody | forgotten, owner_id=owner_id)
    return entries.aggregate(last=Max(Coalesce("as_of", "created")))["last"]


def create(owner_id: int, draft: FactDraft, level: Level, writer: str, *, legacy: bool = False) -> Fact:
    fact = Fact.objects.create(
        owner_id=owner_id,
        text=draft.text,
        kind=draft.kind,
        aspect=draft.aspect,
        applies_to=draft.applies_to,
        tone=draft.tone,
        project=draft.project,
        scope=level.scope,
        island_id=level.island_id,
        category=level.category,
        writer=writer,
        legacy=legacy,
        fingerprint=fingerprint_of(draft.text),
    )
    # The tick finds what this did not reach: a crash in between costs a minute.
    transaction.on_commit(partial(async_task, "memory.tasks.embed_facts", owner_id), robust=True)
    return fact


def add(fact: Fact, proofs: Sequence[Proof]) -> None:
    FactEvidence.objects.bulk_create(evidence.rows_of(proofs, fact), ignore_conflicts=True)


def add_rows_of(fact: Fact, others: Sequence[Fact]) -> None:
    """Give a fact the evidence of others, as rows of its own."""
    rows = FactEvidence.objects.filter(fact__in=[other.pk for other in others]).order_by("pk")
    copies = [
        FactEvidence(
            fact=fact,
            owner_id=fact.owner_id,
            kind=row.kind,
            message_id=row.message_id,
            generation_id=row.generation_id,
            accepted_by_id=row.accepted_by_id,
            created=row.created,
        )
        for row in rows
    ]
    FactEvidence.objects.bulk_create(copies, ignore_conflicts=True)


def supersede(old: Fact, new: Fact, reason: str) -> None:
    old.superseded_by = new
    close(old, Fact.Status.SUPERSEDED, reason)


def close(fact: Fact, status: Fact.Status, reason: str) -> None:
    fact.status, fact.why, fact.changed = status, secrets.redact(visible(reason)), clock.now()
    # Nobody searches for it any more.
    fact.embedding, fact.embedding_model = None, ""
    fact.save(update_fields=["status", "why", "changed", "superseded_by", "embedding", "embedding_model"])


def log(
    owner_id: int,
    action: str,
    before: Iterable[Fact],
    after: Iterable[Fact],
    *,
    writer: str,
    actor: User | None = None,
    reason: str = "",
    as_of: datetime | None = None,
    **forgotten: Sequence[str] | Sequence[int],
) -> FactLog:
    """Write down what was done to facts, and why; `as_of` is when the words were said that led to it, `forgotten` the
    log's fields of what is not to come back."""
    return FactLog.objects.create(
        owner_id=owner_id,
        actor=actor,
        writer=writer,
        action=action,
        reason=secrets.redact(visible(reason)),
        before=[fact.pk for fact in before],
        after=[fact.pk for fact in after],
        as_of=as_of,
        **forgotten,
    )
