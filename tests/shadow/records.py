"""Runs and proposals by hand, unchecked."""

from django.db import transaction

from maxclaw import clock
from memory.fact_drafts import fingerprint_of
from shadow.models import ShadowFactProposal, ShadowProposalEvidence, ShadowRun
from tests.threads.records import live
from threads.models import Generation


def run_row(thread, generation=None, status="completed", **fields):
    """A cold run of a thread that reads its live generation."""
    over = status in ("completed", "failed", "cancelled")
    values = {
        "reason": "idle-or-ended",
        "path": "cold",
        "path_reason": "no-prefix",
        "through_seq": 1,
        "started": clock.now(),
        "ended": clock.now() if over else None,
    } | fields
    generation = generation or thread.generations.get(ended__isnull=True)
    return ShadowRun.objects.create(
        thread=thread, owner_id=thread.owner_id, generation=generation, status=status, **values
    )


def next_generation_of(thread):
    """End the live generation of a thread and begin another one."""
    before = live(thread)
    Generation.objects.filter(pk=before.pk).update(ended=before.started, end_reason="manual")
    return Generation.objects.create(thread=thread, owner_id=thread.owner_id, ordinal=before.ordinal + 1)


@transaction.atomic
def proposal_row(message, text="Prefers tea.", run=None, position=0, **fields):
    """A proposal of the message's thread, proved by it; with a validation error it has no evidence."""
    thread = message.thread
    values = {"kind": "about-user", "aspect": "preference", "tone": "remark", "raw": {"text": text}} | fields
    proposal = ShadowFactProposal.objects.create(
        run=run or run_row(thread),
        thread=thread,
        owner_id=thread.owner_id,
        position=position,
        text=text,
        fingerprint=fingerprint_of(text),
        **values,
    )
    if not proposal.validation_error:
        ShadowProposalEvidence.objects.create(
            proposal=proposal, owner_id=thread.owner_id, kind="max-stated", message=message
        )
    return proposal
