"""Forgetting one fact: out of everything that remembers, with a report of where its words stay.

Conversations are frozen words: what was said, and what a generation opened with, stays until the conversation is
deleted. A live generation that opened with the fact ends at the next turn boundary. The steward reads no row from
which it would learn the fact again, and none of them proves anything more (`memory/forgotten.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from accounts import erasing
from accounts.models import User
from agent import renewal
from memory import forgotten, steward_work, told
from memory.fact_rows import hold_threads, lock_threads_and_facts, log, visible_facts
from memory.models import Fact, FactEvidence, FactLog, FactUse
from memory.refusals import FactRefused
from threads.models import Generation, Message
from threads.visibility import Viewer

LISTED_MAX = 200


@dataclass(frozen=True)
class Forgotten:
    """What went and what stays: ids of the facts that are gone, of the messages that hold or prove the words, of the
    generations whose opening or summary does, and of those of them that end now. `more`: how many older messages and
    generations hold the words too, those of deleted conversations not counted."""

    facts: list[int]
    messages: list[int]
    generations: list[int]
    ending: list[int]
    more: int = 0


def forget(fact: Fact, *, writer: str, actor: User | None = None, viewer: Viewer | None = None) -> Forgotten:
    """Forget a fact, one that the viewer may see if one is given, with its earlier versions and what was retired of the
    same words. Raises FactRefused."""
    with transaction.atomic():
        hold_threads(fact.owner_id)
        threads = _threads_of(fact)
        # One that is told meanwhile is locked no more, which loses nothing.
        lock_threads_and_facts(fact.owner_id, threads)
        steward_work.interrupt(threads)
        rows = Fact.objects.filter(owner_id=fact.owner_id) if viewer is None else visible_facts(viewer)
        if not rows.filter(pk=fact.pk).exists():
            raise FactRefused(f"There is no fact {fact.pk}.")
        # Whoever is just being told of one of them is waited for.
        going = list(Fact.objects.select_for_update().filter(pk__in=_versions(fact)).order_by("pk"))
        report = _report(fact.owner_id, going)
        end_told(fact.owner_id, going)
        teachers = forgotten.teachers(fact.owner_id, going)
        steward_work.pass_over(teachers.filter(thread__in=threads))
        log(
            fact.owner_id,
            FactLog.Action.FORGET,
            going,
            [],
            writer=writer,
            actor=actor,
            forgotten=sorted({forgotten.mark_of(gone.owner_id, gone.fingerprint) for gone in going}),
            forgotten_messages=sorted(teachers.values_list("pk", flat=True)),
            forgotten_generations=forgotten.generations_of(going),
        )
        for gone in going:
            erasing.forget_fact(gone)
        return report


def foresee(fact: Fact) -> Forgotten:
    """What `forget` would report of a fact now. Nothing is forgotten."""
    return _report(fact.owner_id, list(Fact.objects.filter(pk__in=_versions(fact)).order_by("pk")))


def end_told(owner_id: int, going: Sequence[Fact]) -> None:
    """End the live generations that were told of facts which go, at the next turn boundary. The facts are locked, so
    that whoever is just being told of one was waited for."""
    live = Generation.objects.filter(owner_id=owner_id, ended__isnull=True)
    for generation in live.filter(pk__in=told.of(going, live)).select_related("thread").order_by("pk"):
        renewal.request_forgetting(generation)


def _report(owner_id: int, going: list[Fact]) -> Forgotten:
    generations = sorted(told.of(going, Generation.objects.filter(owner_id=owner_id)))
    ending = Generation.objects.filter(pk__in=generations, ended__isnull=True)
    messages, more_messages = _messages_with(owner_id, going)
    older = Generation.objects.filter(pk__in=generations[:-LISTED_MAX], thread__deleted__isnull=True)
    return Forgotten(
        facts=[gone.pk for gone in going],
        messages=messages,
        generations=generations[-LISTED_MAX:],
        ending=sorted(ending.values_list("pk", flat=True)),
        more=more_messages + older.count(),
    )


def _versions(fact: Fact) -> set[int]:
    """The fact, what it superseded, closed rows of the same owner that say the same words, and so on with these."""
    facts = Fact.objects.filter(owner_id=fact.owner_id)
    found: set[int] = set()
    waiting = {fact.pk}
    while waiting:
        found |= waiting
        words = facts.filter(pk__in=waiting).values_list("fingerprint", flat=True)
        closed = Q(fingerprint__in=list(words)) & ~Q(status=Fact.Status.ACTIVE)
        waiting = set(facts.filter(Q(superseded_by__in=waiting) | closed).values_list("pk", flat=True)) - found
    return found


def _threads_of(fact: Fact) -> list[int]:
    """Ids of the conversations that were told of a fact, and of those from which the steward would learn it again."""
    briefed = Generation.objects.filter(pk__in=FactUse.objects.filter(fact=fact).values("generation"))
    versions = list(Fact.objects.filter(pk__in=_versions(fact)))
    teach = forgotten.teachers(fact.owner_id, versions).values_list("thread_id", flat=True)
    return sorted({*briefed.values_list("thread_id", flat=True), *teach})


def _messages_with(owner_id: int, facts: Iterable[Fact]) -> tuple[list[int], int]:
    """Messages in which the words of the facts stand, the newest, and all that prove them or found them; and how many
    more there are."""
    facts = list(facts)
    ids = {pk for row in FactEvidence.objects.filter(fact__in=facts) for pk in (row.message_id, row.accepted_by_id)}
    ids |= set(FactUse.objects.filter(fact__in=facts).values_list("message_id", flat=True))
    holding = Message.objects.filter(forgotten.saying(facts), owner_id=owner_id, thread__deleted__isnull=True)
    newest = holding.order_by("-pk").values_list("pk", flat=True)[:LISTED_MAX]
    listed = {pk for pk in ids if pk is not None} | set(newest)
    return sorted(listed), holding.exclude(pk__in=listed).count()
