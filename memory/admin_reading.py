"""What staff read of a fact, once it is noted: its words, what it rests on, what became of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from accounts.models import User
from memory.models import Fact, FactLog
from memory.standing import with_said
from memory.surroundings import rows_of, surroundings
from threads.admin import said
from threads.models import PrivateReading
from threads.private_reading import record_reading

SHOWN_PROOFS = 12
SHOWN_VERSIONS = 20
SHOWN_LOG = 50


@dataclass(frozen=True)
class ShownRow:
    """A message as staff read it. `proves`: it is the evidence, the others stand around it."""

    message: Any
    text: str
    proves: bool


@dataclass(frozen=True)
class ShownProof:
    """One piece of evidence, of a fact or a proposal, with the rows around it; none where a whole generation is the
    evidence."""

    evidence: Any
    rows: list[ShownRow]


def note_facts(reader: User, facts: Iterable[Fact]) -> None:
    """Note that `reader` is about to see the words of these facts. Raises PermissionDenied."""
    for fact in facts:
        record_reading(
            reader,
            owner_id=fact.owner_id,
            thread=None,
            what=PrivateReading.What.FACT,
            first_id=fact.pk,
            last_id=fact.pk,
        )


def words_of(facts: Iterable[Fact]) -> list[Fact]:
    """The same facts with their words and the day on which these were `said`, in the person's own zone, oldest first:
    to be called when the reading is noted."""
    ids = [fact.pk for fact in facts]
    rows = with_said(Fact.objects.filter(pk__in=ids)).select_related("owner").defer("embedding").order_by("pk")
    read = list(rows)
    for fact in read:
        vars(fact)["said"] = fact.owner.local(vars(fact)["said"]).date()
    return read


def read_fact(reader: User, fact: Fact) -> dict[str, Any]:
    """Note the reading of a fact, its versions and the conversations around its evidence; then what the page shows.
    Raises PermissionDenied."""
    versions = Fact.objects.filter(Q(pk=fact.superseded_by_id) | Q(superseded_by_id=fact.pk)).only("owner")
    shown = list(versions.order_by("-pk")[:SHOWN_VERSIONS])
    note_facts(reader, [fact, *shown])
    words = {read.pk: read for read in words_of([fact, *shown])}
    return {
        "fact": words.pop(fact.pk),
        "newer": [read for pk, read in words.items() if pk == fact.superseded_by_id],
        "older": [read for pk, read in words.items() if pk != fact.superseded_by_id],
        "proofs": read_proofs(reader, fact.owner_id, evidence_of(fact)),
        "log": list(log_of(fact)[:SHOWN_LOG]),
    }


def log_of(fact: Fact) -> QuerySet[FactLog]:
    """What was done to a fact or gave it, newest first."""
    rows = FactLog.objects.filter(owner_id=fact.owner_id).select_related("actor")
    named = Q(before__contains=[fact.pk]) | Q(after__contains=[fact.pk])
    return rows.filter(named).order_by("-pk")


def evidence_of(row: Any) -> QuerySet[Any]:
    """The evidence of a fact, or of a proposal, with the places that it points at, and without a word of them."""
    places = ("message", "message__thread", "accepted_by", "accepted_by__thread", "generation", "generation__thread")
    words = [f"{name}__{column}" for name in ("message", "accepted_by") for column in ("text", "wire", "search_text")]
    words += [f"generation__{column}" for column in ("opening", "summary", "summary_before", "standing")]
    evidence: QuerySet[Any] = row.evidence.select_related(*places).defer(*words).order_by("pk")
    return evidence


def read_proofs(reader: User, owner_id: int, pieces: QuerySet[Any]) -> list[ShownProof]:
    """Evidence (`evidence_of`) in its surroundings. Each stretch of a conversation is noted before it is fetched."""
    evidence = list(pieces[:SHOWN_PROOFS])
    anchors = [message for proof in evidence for message in (proof.message, proof.accepted_by) if message is not None]
    around = surroundings(owner_id, [message.pk for message in anchors])
    for message in anchors:
        ids = around.get(message.pk, [message.pk])
        record_reading(
            reader,
            owner_id=owner_id,
            thread=message.thread,
            what=PrivateReading.What.CONVERSATION,
            first_id=ids[0],
            last_id=ids[-1],
        )
    messages = rows_of(sorted({pk for ids in around.values() for pk in ids}))
    shown = []
    for proof in evidence:
        proving = {pk for pk in (proof.message_id, proof.accepted_by_id) if pk is not None}
        ids = sorted({near for pk in proving for near in around.get(pk, [])})
        rows = [ShownRow(messages[pk], said(messages[pk]), pk in proving) for pk in ids if pk in messages]
        shown.append(ShownProof(proof, rows))
    return shown
