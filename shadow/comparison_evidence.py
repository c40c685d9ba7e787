"""What both sides cite, checked by the identity of its target, and what staff said of proposals."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import Q

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from memory.claims import Claim, parse
from memory.models import FactEvidence
from memory.refusals import FactRefused
from shadow.comparison_figures import Cited, Target, fits
from shadow.comparison_reading import STEWARD, Window, facts_of_steward
from shadow.models import ShadowFactProposal, ShadowProposalEvidence
from threads.models import Message, Thread

UNREADABLE = "unreadable"


def cited(window: Window) -> Iterator[Cited]:
    """Every pointer of the steward's facts and of the proposals of the window. Of a proposal that did not hold those
    count as missing that name nothing there is; of the others the rows speak."""
    facts = facts_of_steward(window).exclude(scope=Thread.Scope.ISOLATED)
    rows = FactEvidence.objects.filter(fact__in=facts.values("pk")).order_by("pk")
    for row, target in _with_targets(rows):
        yield Cited(STEWARD, "–", row.kind, True, fits(row.kind, target))
    proposals = window.of(ShadowFactProposal.objects.all())
    proved = ShadowProposalEvidence.objects.filter(proposal__in=proposals.values("pk")).order_by("pk")
    kept: dict[int, set[Claim]] = {}
    for row, target in _with_targets(proved.select_related("proposal__run")):
        run = row.proposal.run
        kept.setdefault(row.proposal_id, set()).add(
            Claim(row.kind, row.message_id, row.generation_id, row.accepted_by_id)
        )
        yield Cited(run.path, run.model, row.kind, True, fits(row.kind, target))
    for proposal in proposals.exclude(validation_error="").select_related("run").order_by("pk"):
        for kind in _missing(proposal.raw, kept.get(proposal.pk, set())):
            yield Cited(proposal.run.path, proposal.run.model, kind, False, False)


def verdicts(window: Window) -> Iterator[tuple[str, str, bool, str]]:
    """(path, model, whether it held, verdict or blank) of each proposal of the window."""
    proposals = window.of(ShadowFactProposal.objects.order_by("pk"))
    for path, model, error, verdict in proposals.values_list(
        "run__path", "run__model", "validation_error", "review__verdict"
    ):
        yield path, model, not error, verdict or ""


def _missing(raw: Any, kept: set[Claim]) -> Iterator[str]:
    """The kinds of those pointers of an item as written that name nothing which was kept."""
    listed = raw.get("evidence") if isinstance(raw, Mapping) else None
    for pointer in listed if isinstance(listed, list) else []:
        try:
            claim = parse(pointer)
        except FactRefused:
            yield UNREADABLE
            continue
        if claim not in kept:
            yield claim.kind


def _with_targets(rows: Any) -> Iterator[tuple[Any, Target]]:
    """Each piece of evidence with what it points at."""
    rows = list(rows.select_related("generation").defer("generation__opening", "generation__summary"))
    ids = {pk for row in rows for pk in (row.message_id, row.accepted_by_id) if pk is not None}
    messages = {
        pk: (role, is_error)
        for pk, role, is_error in Message.objects.filter(pk__in=ids).values_list("pk", "role", "is_error")
    }
    answered = ToolCall.objects.filter(Q(result__in=ids), tool=QUESTION_TOOL, status=ToolCall.Status.DONE)
    cards = set(answered.values_list("result_id", flat=True))
    for row in rows:
        role, is_error = messages.get(row.message_id, ("", False))
        accepted, _error = messages.get(row.accepted_by_id, ("", False))
        yield (
            row,
            Target(
                role=role,
                is_error=is_error,
                answers_card=row.message_id in cards,
                accepted_by_person=accepted == Message.Role.USER or row.accepted_by_id in cards,
                generation_ended=row.generation is not None and row.generation.ended is not None,
            ),
        )
