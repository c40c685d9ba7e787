"""Staff's verdicts: one proposal a page, with its evidence in context, what memory holds nearby, and why it fell.

A sitting is a list of ids that the form carries along. What is shown is private: each page is a POST, and noted.
"""

from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from maxclaw import clock
from maxclaw.text import visible
from memory import known
from memory.admin_reading import ShownProof, evidence_of, note_facts, read_proofs, words_of
from memory.models import Fact
from shadow.models import ProposalReview, ShadowFactProposal
from threads.models import PrivateReading, Thread
from threads.private_reading import record_reading
from threads.visibility import Viewer, thread_filter

SITTING = 50
NOTE_MAX_CHARS = 2_000
NEAREST_SHOWN = 6
CHOICES = {"all": _("all"), "held": _("those that held"), "rejected": _("those that were rejected")}
# Verdict and its keys: a number, and a letter of its English name.
KEYS = {
    ProposalReview.Verdict.CORRECT: ("1", "c"),
    ProposalReview.Verdict.WRONG: ("2", "w"),
    ProposalReview.Verdict.DUPLICATE: ("3", "d"),
    ProposalReview.Verdict.OUT_OF_SCOPE: ("4", "o"),
}


@dataclass(frozen=True)
class Sitting:
    """The proposals of one sitting, and the place in it, from 0."""

    ids: list[int]
    place: int

    @property
    def over(self) -> bool:
        return self.place >= len(self.ids)

    @property
    def number(self) -> int:
        return self.place + 1

    @property
    def written(self) -> str:
        """The ids as the form carries them."""
        return ",".join(map(str, self.ids))


def waiting(which: str = "all") -> QuerySet[ShadowFactProposal]:
    """Proposals without a verdict, oldest first."""
    proposals = ShadowFactProposal.objects.filter(review__isnull=True).order_by("pk")
    if which == "held":
        return proposals.filter(validation_error="")
    return proposals.exclude(validation_error="") if which == "rejected" else proposals


def begin(which: str) -> Sitting:
    """A new sitting over what waits longest."""
    return Sitting(list(waiting(which).values_list("pk", flat=True)[:SITTING]), 0)


def went_on(posted: QueryDict, reviewer: User) -> Sitting:
    """Where the sitting stands after what the form says: a verdict is written, then the next proposal is up."""
    ids = [int(word) for word in posted.get("sitting", "").split(",") if _is_id(word)][:SITTING]
    place = posted.get("place", "")
    sitting = Sitting(ids, min(int(place), len(ids)) if _is_id(place) else 0)
    if posted.get("go") == "previous":
        return Sitting(ids, max(0, sitting.place - 1))
    verdict = posted.get("verdict", "")
    if verdict in ProposalReview.Verdict.values and not sitting.over:
        judge(ids[sitting.place], verdict, posted.get("note", ""), reviewer)
    elif posted.get("go") != "next":
        return sitting
    return Sitting(ids, sitting.place + 1)


@transaction.atomic
def judge(proposal_id: int, verdict: str, note: str, reviewer: User) -> None:
    """Write a verdict, over the one that was there. A proposal that is gone needs none."""
    proposal = ShadowFactProposal.objects.select_for_update().filter(pk=proposal_id).first()
    if proposal is None:
        return
    said = {
        "owner_id": proposal.owner_id,
        "reviewer": reviewer,
        "verdict": verdict,
        "note": visible(note).strip()[:NOTE_MAX_CHARS],
        "created": clock.now(),
    }
    ProposalReview.objects.update_or_create(proposal=proposal, defaults=said)


def read_proposal(reader: User, proposal_id: int) -> dict[str, Any]:
    """Note the reading; then what the page shows of one proposal. `proposal` is None when it is gone. Raises
    PermissionDenied."""
    proposal = (
        ShadowFactProposal.objects.select_related("thread", "run", "owner", "review", "replaces_fact")
        .filter(pk=proposal_id)
        .first()
    )
    if proposal is None:
        return {"proposal": None}
    record_reading(
        reader,
        owner_id=proposal.owner_id,
        thread=proposal.thread,
        what=PrivateReading.What.PROPOSAL,
        first_id=proposal.pk,
        last_id=proposal.pk,
    )
    proofs: list[ShownProof] = read_proofs(reader, proposal.owner_id, _in_sight(proposal))
    near = known.nearest(proposal.thread, proposal.text)[:NEAREST_SHOWN] if proposal.text else []
    there = Fact.objects.defer("embedding").in_bulk([hit.fact_id for hit in near])
    facts = [there[hit.fact_id] for hit in near if hit.fact_id in there]
    replaced = proposal.replaces_fact
    note_facts(reader, {fact.pk: fact for fact in [*facts, *([replaced] if replaced else [])]}.values())
    words = {fact.pk: fact for fact in words_of(facts)}
    return {
        "proposal": proposal,
        "proofs": proofs,
        "near": [words[fact.pk] for fact in facts if fact.pk in words],
        "replaced": words_of([replaced])[0] if replaced else None,
        "review": getattr(proposal, "review", None),
    }


def _in_sight(proposal: ShadowFactProposal) -> QuerySet[Any]:
    """The evidence that the proposal's own conversation may see: words of a stricter one are shown under no other."""
    unseen = Thread.objects.filter(owner=proposal.owner_id).exclude(thread_filter(Viewer.of_thread(proposal.thread)))
    pieces = evidence_of(proposal)
    for path in ("message__thread", "accepted_by__thread", "generation__thread"):
        pieces = pieces.exclude(**{f"{path}__in": unseen})
    return pieces


def verdicts() -> list[tuple[str, Any, str, str]]:
    """(value, label, number key, letter key) of each button."""
    return [(verdict.value, verdict.label, *KEYS[verdict]) for verdict in ProposalReview.Verdict]


def _is_id(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 18
