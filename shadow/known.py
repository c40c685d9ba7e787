"""What memory knows already, for the end of a shadow's question: the facts of this conversation and those near to the
page's words, and what shadows of this conversation proposed before. All of it through the conversation's own Viewer."""

from bisect import bisect_right
from itertools import accumulate

from django.db.models import Exists, OuterRef, QuerySet

from llm.estimates import estimate_tokens
from maxclaw.database_threads import in_database
from memory import fact_lines
from memory import known as known_facts
from memory.standing import when_said
from shadow.models import ShadowFactProposal, ShadowProposalEvidence
from threads.models import Thread

# The newest: these lines are most of what a hot run pays for beside its prefix.
PROPOSALS_MAX = 50
LINES_MAX_CHARS = 16_000
HEADING = (
    "# What memory knows already, each with its id. Do not repeat it. Where it has changed, propose the new fact with "
    "the old one's id as its `replaces`. What is not about the same thing, or does not apply to the same thing, stands "
    "beside it: leave `replaces` out."
)


async def rendered(thread: Thread, words: str, most: int) -> str:
    """The lines, those of facts first, as many as fit into `most` tokens by the general estimate; blank where nothing
    is known. `words` are those of the page."""
    facts = await known_facts.known(thread, words)
    proposals = await in_database(lambda: list(standing_proposals(thread).select_related("owner")[:PROPOSALS_MAX]))
    lines = known_facts.lines(facts)
    lines += fact_lines.within(map(line, proposals), LINES_MAX_CHARS)
    taken = list(accumulate(estimate_tokens(f"{one}\n") for one in (HEADING, *lines)))
    lines = lines[: bisect_right(taken, most) - 1] if taken[0] <= most else []
    return "\n".join([HEADING, *lines]) if lines else ""


def standing_proposals(thread: Thread) -> QuerySet[ShadowFactProposal]:
    """The valid proposals of a conversation that no newer one replaced and that did not become facts, newest first,
    with when what they cite was `said`."""
    valid = ShadowFactProposal.objects.filter(thread=thread, owner_id=thread.owner_id, validation_error="")
    newer = valid.filter(replaces_proposal=OuterRef("pk"))
    again = valid.filter(fingerprint=OuterRef("fingerprint"), pk__gt=OuterRef("pk"))
    standing = valid.filter(~Exists(newer), ~Exists(again), fact__isnull=True).order_by("-pk")
    return standing.annotate(said=when_said(ShadowProposalEvidence.objects.filter(proposal=OuterRef("pk"))))


def line(proposal: ShadowFactProposal) -> str:
    """One proposal (of `standing_proposals`) as a model reads it, like a fact."""
    return fact_lines.described(
        f"p:{proposal.pk}",
        proposal.text,
        said=proposal.owner.local(vars(proposal).get("said") or proposal.created),
        tone=proposal.tone,
        sort=proposal.aspect or proposal.kind,
        applies_to=proposal.applies_to,
    )
