"""What memory knows already, for the end of a shadow's question: the facts of this conversation and those near to the
page's words, and what shadows of this conversation proposed before. All of it through the conversation's own Viewer."""

from collections.abc import Sequence

from django.db.models import Exists, OuterRef, QuerySet

from maxclaw.database_threads import in_database
from maxclaw.text import head
from memory import known as known_facts
from memory.fact_drafts import APPLIES_TO_MAX_CHARS, TEXT_MAX_CHARS
from shadow.models import ShadowFactProposal
from threads.models import Thread

PROPOSALS_MAX = 60
LINES_MAX_CHARS = 16_000
_TONES = {"decision": "a decision", "remark": "a passing remark"}
HEADING = (
    "# What memory knows already, each with its id. Do not repeat it. Where it has changed, propose the new fact with "
    "the old one's id as its `replaces`. What is not about the same thing, or does not apply to the same thing, stands "
    "beside it: leave `replaces` out."
)


async def rendered(thread: Thread, words: str) -> str:
    """The lines, those of facts first; blank where nothing is known. `words` are those of the page."""
    facts = await known_facts.known(thread, words)
    proposals = await in_database(lambda: list(standing_proposals(thread)[:PROPOSALS_MAX]))
    lines = known_facts.lines(facts)
    lines += _within(proposals, LINES_MAX_CHARS)
    return "\n".join([HEADING, *lines]) if lines else ""


def standing_proposals(thread: Thread) -> QuerySet[ShadowFactProposal]:
    """The valid proposals of a conversation that no newer one replaced and that did not become facts, newest first."""
    valid = ShadowFactProposal.objects.filter(thread=thread, owner_id=thread.owner_id, validation_error="")
    newer = valid.filter(replaces_proposal=OuterRef("pk"))
    again = valid.filter(fingerprint=OuterRef("fingerprint"), pk__gt=OuterRef("pk"))
    return valid.filter(~Exists(newer), ~Exists(again), fact__isnull=True).order_by("-pk")


def line(proposal: ShadowFactProposal) -> str:
    """One proposal as a model reads it, like a fact."""
    applies = head(proposal.applies_to, APPLIES_TO_MAX_CHARS)
    about = [
        f"{proposal.created:%Y-%m-%d}",
        _TONES[proposal.tone],
        proposal.aspect or proposal.kind,
        f"applies to: {applies}" if applies else "applies in general",
    ]
    return f"p:{proposal.pk} [{'; '.join(about)}] {head(proposal.text, TEXT_MAX_CHARS)}"


def _within(proposals: Sequence[ShadowFactProposal], room: int) -> list[str]:
    lines: list[str] = []
    for proposal in proposals:
        text = line(proposal)
        room -= len(text) + 1
        if room < 0:
            break
        lines.append(text)
    return lines
