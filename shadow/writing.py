"""The switch from comparing to writing: while shadows write memory, what holds becomes facts as soon as it is stored.

The steward then reads main conversations alone. Nothing is written twice over: the one entry for facts judges the same
evidence again, and the same words add evidence to the fact that says so already.
"""

from collections.abc import Iterable

from django.conf import settings

from memory.claims import Claim
from memory.fact_drafts import FactDraft
from memory.models import Fact, FactEvidence
from memory.refusals import FactRefused
from memory.writing import write_fact
from shadow.models import ShadowFactProposal
from threads.models import Thread


def write_facts(thread: Thread, proposals: Iterable[ShadowFactProposal]) -> None:
    """Facts of valid proposals, in the transaction that stores them. What is refused now, because memory
    changed since, is kept with the reason like any other proposal that does not hold."""
    if settings.MEMORY_WRITER != "shadow":
        return
    tried = []
    for proposal in proposals:
        try:
            proposal.fact = _write(thread, proposal)
        except FactRefused as refusal:
            proposal.validation_error = str(refusal)
        tried.append(proposal)
    ShadowFactProposal.objects.bulk_update(tried, ["fact", "validation_error"])


def _write(thread: Thread, proposal: ShadowFactProposal) -> Fact:
    draft = FactDraft(
        text=proposal.text,
        kind=proposal.kind,
        aspect=proposal.aspect,
        applies_to=proposal.applies_to,
        tone=proposal.tone,
    )
    claims = [
        Claim(FactEvidence.Kind(row.kind), row.message_id, row.generation_id, row.accepted_by_id)
        for row in proposal.evidence.order_by("pk")
    ]
    return write_fact(
        thread.owner_id,
        draft,
        claims,
        writer=Fact.Writer.SHADOW,
        thread=thread,
        replaces=_replaced(proposal),
        within=thread,
    ).fact


def _replaced(proposal: ShadowFactProposal) -> int | None:
    """The fact that it replaces: the one it names, or what the proposal it names became, while that is active."""
    if proposal.replaces_fact_id is not None or proposal.replaces_proposal is None:
        return proposal.replaces_fact_id
    became = proposal.replaces_proposal.fact
    return became.pk if became is not None and became.status == Fact.Status.ACTIVE else None
