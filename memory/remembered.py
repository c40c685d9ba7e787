"""What is remembered of a person, as they read it themselves: facts with the words that prove them, page by page.

The page and the REST API show the same. No number of facts is counted: pages follow each other by id, newest first.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet
from django.db.models.functions import Left
from django.utils.translation import gettext

from accounts.models import User
from maxclaw.text import head, visible
from memory.access import visible_to
from memory.models import Fact, FactEvidence, FactUse
from memory.standing import with_said
from threads.models import Thread

PAGE_FACTS = 25
QUERY_MAX_CHARS = 200
EXCERPT_CHARS = 400
NOW, EARLIER = "now", "earlier"
# What a person chooses from: kinds, and the aspects of what is about them.
SORTS = (*(kind for kind in Fact.Kind.values if kind != Fact.Kind.ABOUT_USER), *Fact.Aspect.values)


def name_of(title: str, in_main: bool) -> str:
    """What people call a conversation, with a title or without."""
    return title or (gettext("Main") if in_main else gettext("New conversation"))


@dataclass(frozen=True)
class Words:
    """A message that proves something: where it stands, and how it begins."""

    message_id: int
    channel: str
    title: str
    in_main: bool
    role: str
    excerpt: str
    created: datetime

    @property
    def name(self) -> str:
        """What people call the conversation."""
        return name_of(self.title, self.in_main)


@dataclass(frozen=True)
class Proof:
    """One piece of evidence: words, with where the person accepted what they say, or generation `ordinal` of the
    conversation `channel` as a whole. All are None where the conversation was deleted."""

    kind: str
    words: Words | None
    accepted: Words | None
    ordinal: int | None
    channel: str | None


@dataclass
class Remembered:
    """One fact with what proves it, and when that was said (`standing.with_said`)."""

    fact: Fact
    said: datetime
    proofs: list[Proof] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """A page of facts. `next_before` leads to the one after it, None at the end."""

    facts: list[Remembered]
    next_before: int | None


def remembered(
    user: User,
    *,
    query: str = "",
    sort: str = "",
    shown: str = NOW,
    before: int | None = None,
    limit: int = PAGE_FACTS,
) -> Page:
    """A page of a person's facts, newest first.

    Args:
        query: words that stand in the text, in what it applies to or in the project's name, without regard to case.
        sort: one of SORTS, or blank for all.
        shown: NOW for what holds, EARLIER for what was superseded or set aside.
        before: id of the last fact of the page before.
    """
    rows = visible_to(user)
    rows = rows.filter(status=Fact.Status.ACTIVE) if shown == NOW else rows.exclude(status=Fact.Status.ACTIVE)
    words = visible(query).strip()[:QUERY_MAX_CHARS]
    if words:
        rows = rows.filter(Q(text__icontains=words) | Q(applies_to__icontains=words) | Q(project__icontains=words))
    if sort in Fact.Aspect.values:
        rows = rows.filter(aspect=sort)
    elif sort in SORTS:
        rows = rows.filter(kind=sort)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: limit + 1])
    facts = with_proofs(user, found[:limit])
    return Page(facts, facts[-1].fact.pk if len(found) > limit else None)


def with_proofs(user: User, facts: Iterable[Fact]) -> list[Remembered]:
    """The facts in their order, each with its evidence, in two more queries however many they are."""
    facts = list(facts)
    rows = with_said(Fact.objects.filter(pk__in=[fact.pk for fact in facts], owner_id=user.pk))
    said = {row.pk: vars(row)["said"] for row in rows.only("pk")}
    shown = {fact.pk: Remembered(fact, said.get(fact.pk, fact.created)) for fact in facts}
    for row in _evidence(user, list(shown)):
        shown[row["fact_id"]].proofs.append(
            Proof(
                row["kind"],
                _words(row, "message"),
                _words(row, "accepted_by"),
                None if row["generation__thread__deleted"] else row["generation__ordinal"],
                None if row["generation__thread__deleted"] else row["generation__thread__channel"],
            )
        )
    return list(shown.values())


def history(user: User, fact: Fact) -> tuple[Fact | None, list[Fact]]:
    """What superseded a fact, None where nothing did, and what it superseded itself, newest first."""
    own = visible_to(user)
    newer = own.filter(pk=fact.superseded_by_id).first() if fact.superseded_by_id else None
    return newer, list(own.filter(superseded_by_id=fact.pk).order_by("-pk")[:PAGE_FACTS])


def uses(fact: Fact) -> dict[str, Any]:
    """How often a fact was found or briefed: {"number", "last"}, `last` None where it never was."""
    return FactUse.objects.filter(fact_id=fact.pk).aggregate(number=Count("pk"), last=Max("created"))


def _evidence(user: User, ids: list[int]) -> QuerySet[FactEvidence, dict[str, Any]]:
    columns = ["fact_id", "kind", "generation__ordinal"]
    columns += [f"generation__thread__{column}" for column in ("channel", "deleted")]
    derived: dict[str, Any] = {}
    for name in ("message", "accepted_by"):
        columns += [f"{name}_id", f"{name}__role", f"{name}__created"]
        columns += [f"{name}__thread__{column}" for column in ("channel", "title", "kind", "deleted")]
        # One sign more than is shown says whether there is more; a tool's output can be a million long.
        derived[f"{name}_start"] = Left(F(f"{name}__text"), EXCERPT_CHARS + 1)
    rows = FactEvidence.objects.filter(fact_id__in=ids, owner_id=user.pk).order_by("pk")
    return rows.values(*columns, **derived)


def _words(row: dict[str, Any], name: str) -> Words | None:
    if row[f"{name}_id"] is None or row[f"{name}__thread__deleted"] is not None:
        return None
    start = row[f"{name}_start"]
    return Words(
        row[f"{name}_id"],
        row[f"{name}__thread__channel"],
        row[f"{name}__thread__title"],
        row[f"{name}__thread__kind"] == Thread.Kind.MAIN,
        row[f"{name}__role"],
        start if len(start) <= EXCERPT_CHARS else head(start, EXCERPT_CHARS - 1) + "…",
        row[f"{name}__created"],
    )
