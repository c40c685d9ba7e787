"""How what shadows keep of a person goes, and what of it is exported."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import ngettext

from accounts import erasing
from accounts.models import User
from memory import forgotten, secrets
from memory.models import Fact
from shadow import cancelling
from shadow.models import ShadowBaseline, ShadowCursor, ShadowFactProposal, ShadowProposalEvidence, ShadowRun
from threads.models import Thread


def export(user: User) -> Iterator[dict[str, Any]]:
    """Cursors, runs, and proposals with their evidence and verdicts, oldest first."""
    for cursor in ShadowCursor.objects.filter(owner=user).order_by("pk").iterator():
        baselines = ShadowBaseline.objects.filter(thread=cursor.thread_id).order_by("pk")
        yield {
            "record": "shadow_cursor",
            "thread": f"t:{cursor.thread_id}",
            "initialization": cursor.initialization,
            "created": cursor.created.isoformat(),
            "baselines": [
                {"generation": row.generation_id, "baseline": row.baseline, "created": row.created.isoformat()}
                for row in baselines
            ],
        }
    for run in erasing.in_batches(ShadowRun.objects.filter(owner=user)):
        yield {
            "record": "shadow_run",
            "id": run.pk,
            "thread": f"t:{run.thread_id}",
            "generation": run.generation_id,
            "reason": run.reason,
            "path": run.path,
            "path_reason": run.path_reason,
            "model": run.model,
            "status": run.status,
            "error": run.error,
            "not_before": run.not_before and run.not_before.isoformat(),
            "through_seq": run.through_seq,
            "call": run.call,
            "input_tokens": run.input_tokens,
            "output_tokens": run.output_tokens,
            "cache_read_tokens": run.cache_read_tokens,
            "cache_write_5m_tokens": run.cache_write_5m_tokens,
            "cache_write_1h_tokens": run.cache_write_1h_tokens,
            "duration_ms": run.duration_ms,
            "prices": run.prices,
            "cost": None if run.cost is None else str(run.cost),
            "created": run.created.isoformat(),
            "started": run.started and run.started.isoformat(),
            "ended": run.ended and run.ended.isoformat(),
        }
    proposals = ShadowFactProposal.objects.filter(owner=user).select_related("review").prefetch_related("evidence")
    for proposal in erasing.in_batches(proposals):
        yield _exported(proposal)


def _exported(proposal: ShadowFactProposal) -> dict[str, Any]:
    review = getattr(proposal, "review", None)
    return {
        "record": "shadow_proposal",
        "id": f"p:{proposal.pk}",
        "run": proposal.run_id,
        "thread": f"t:{proposal.thread_id}",
        "position": proposal.position,
        "text": secrets.redact(proposal.text),
        "kind": proposal.kind,
        "aspect": proposal.aspect,
        "applies_to": secrets.redact(proposal.applies_to),
        "tone": proposal.tone,
        "replaces_fact": proposal.replaces_fact_id and f"f:{proposal.replaces_fact_id}",
        "replaces_proposal": proposal.replaces_proposal_id and f"p:{proposal.replaces_proposal_id}",
        "validation_error": secrets.redact(proposal.validation_error),
        "raw": secrets.redact_leaves(proposal.raw),
        "category": proposal.category,
        "fact": proposal.fact_id and f"f:{proposal.fact_id}",
        "created": proposal.created.isoformat(),
        "evidence": [
            {
                "kind": row.kind,
                "message": row.message_id,
                "generation": row.generation_id,
                "accepted_by": row.accepted_by_id,
            }
            for row in sorted(proposal.evidence.all(), key=lambda row: row.pk)
        ],
        "verdict": review and {"verdict": review.verdict, "note": review.note, "created": review.created.isoformat()},
    }


def holdings(user: User) -> Iterator[str]:
    proposals = ShadowFactProposal.objects.filter(owner=user).count()
    if proposals:
        yield ngettext("%(count)d proposal for memory", "%(count)d proposals for memory", proposals) % {
            "count": proposals
        }


def erase_thread(thread: Thread) -> None:
    _delete(ShadowFactProposal.objects.filter(thread=thread))
    ShadowRun.objects.filter(thread=thread).delete()
    ShadowBaseline.objects.filter(thread=thread).delete()
    ShadowCursor.objects.filter(thread=thread).delete()


def erase_user(user: User) -> None:
    _delete(ShadowFactProposal.objects.filter(owner=user))
    ShadowRun.objects.filter(owner=user).delete()
    ShadowBaseline.objects.filter(owner=user).delete()
    ShadowCursor.objects.filter(owner=user).delete()


def narrow_thread(thread: Thread) -> None:
    """What is being asked of the conversation was meant for a model that may not read it any more, and ends. An
    isolated one keeps no proposals; into a category they go along. What was rejected elsewhere points here no more."""
    proposals = ShadowFactProposal.objects.filter(thread=thread)
    here = Q(message__thread=thread) | Q(accepted_by__thread=thread) | Q(generation__thread=thread)
    ShadowProposalEvidence.objects.filter(here).exclude(proposal__thread=thread).delete()
    isolated = thread.scope == Thread.Scope.ISOLATED
    cancelling.cancel(thread.pk, cancelling.ISOLATED if isolated else cancelling.CATEGORY_CHANGED)
    if isolated:
        _delete(proposals)
    else:
        proposals.update(category=thread.category)


def forget_fact(fact: Fact) -> None:
    """What says the same, what became this fact, and what would replace either goes, rejected or not; so does what
    cites the same words, because it may say the same in others, unless another fact stands that says it too."""
    same_words = Q(fingerprint=fact.fingerprint) | Q(text=fact.text)
    going = ShadowFactProposal.objects.filter(owner_id=fact.owner_id)
    teachers = forgotten.teachers(fact.owner_id, [fact]).values("pk")
    cited = Q(message__in=teachers) | Q(accepted_by__in=teachers) | Q(generation__in=forgotten.generations_of([fact]))
    citing = ShadowProposalEvidence.objects.filter(cited, owner_id=fact.owner_id).values("proposal")
    others = Fact.objects.filter(owner_id=fact.owner_id, status=Fact.Status.ACTIVE).exclude(pk=fact.pk)
    said_too = Q(fact__in=others) | Q(Exists(others.filter(fingerprint=OuterRef("fingerprint"))))
    same = list(going.filter(same_words | Q(fact=fact)).values_list("pk", flat=True))
    # What was rejected holds no reference, and names what it would replace all the same.
    replacing = (
        Q(replaces_fact=fact) | Q(replaces_proposal__in=same) | Q(names_fact=fact.pk) | Q(names_proposal__in=same)
    )
    _delete(going.filter(Q(pk__in=same) | replacing | (Q(pk__in=citing) & ~said_too)))


def _delete(proposals: QuerySet[ShadowFactProposal]) -> None:
    ids = list(proposals.values_list("pk", flat=True))
    erasing.empty_admin_log(ShadowFactProposal, ids)
    ShadowFactProposal.objects.filter(pk__in=ids).delete()
