"""Changing what is remembered: each change leaves the old fact as it was, closed, and an entry in the log."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from accounts.models import User
from maxclaw import clock
from memory.fact_drafts import FactDraft, check_no_secret, clean, dated, fingerprint_of
from memory.fact_rows import add_rows_of, close, create, level_of, locked, log, same_fact, supersede
from memory.models import Fact, FactLog
from memory.refusals import FactRefused
from threads.visibility import Viewer


def retire(
    fact: Fact,
    *,
    reason: str,
    writer: str,
    actor: User | None = None,
    viewer: Viewer | None = None,
    as_of: datetime | None = None,
) -> Fact:
    """Take an active fact, one that the viewer may see if one is given, out of what is remembered. `as_of`: when the
    words were said for which that is done, now if not given; older ones do not bring it back. Raises FactRefused."""
    with transaction.atomic():
        [fact] = locked([fact], viewer)
        close(fact, Fact.Status.RETIRED, reason)
        log(fact.owner_id, FactLog.Action.RETIRE, [fact], [], writer=writer, actor=actor, reason=reason, as_of=as_of)
        return fact


def restore(fact: Fact, *, reason: str, writer: str, actor: User | None = None) -> Fact:
    """Remember again what was superseded or retired: a new fact with the evidence, or the one that says the same by
    now. Raises FactRefused."""
    with transaction.atomic():
        [fact] = locked([fact], active=False)
        draft, level = draft_of(fact), level_of(fact)
        restored = same_fact(fact.owner_id, draft, level)
        restored = restored or create(fact.owner_id, draft, level, writer, legacy=fact.legacy)
        add_rows_of(restored, [fact])
        log(fact.owner_id, FactLog.Action.RESTORE, [fact], [restored], writer=writer, actor=actor, reason=reason)
        return restored


def merge(facts: Sequence[Fact], text: str, *, reason: str, writer: str, actor: User | None = None) -> Fact:
    """Make one fact of several that say the same: a new one, in the words of `text` and otherwise as the first, with
    the evidence of all. Raises FactRefused."""
    facts = list({fact.pk: fact for fact in facts}.values())
    if len(facts) < 2:
        raise FactRefused("Choose at least two facts.")
    if len({fact.owner_id for fact in facts}) > 1:
        raise FactRefused("These facts are of different people.")
    with transaction.atomic():
        olds = locked(facts)
        first = olds[0]
        if any(level_of(fact) != level_of(first) for fact in olds):
            raise FactRefused("These facts are not seen in the same places, so they cannot become one.")
        of = {(fact.kind, fact.aspect, fingerprint_of(fact.applies_to)) for fact in olds}
        if len(of) > 1:
            raise FactRefused(
                "These facts are of different kinds or apply to different things: they stand side by side."
            )
        decided = any(fact.tone == Fact.Tone.DECISION for fact in olds)
        draft = replace(draft_of(first), text=text, tone=Fact.Tone.DECISION if decided else first.tone)
        new = _rewrite(olds, draft, writer, reason)
        log(first.owner_id, FactLog.Action.MERGE, olds, [new], writer=writer, actor=actor, reason=reason)
        return new


def correct(
    fact: Fact, draft: FactDraft, *, reason: str, writer: str, actor: User | None = None, viewer: Viewer | None = None
) -> Fact:
    """Put a fact right: a new one in its place with its evidence. For a person or staff, who answer for the words; a
    model writes with evidence of its own. Raises FactRefused."""
    with transaction.atomic():
        [fact] = locked([fact], viewer)
        new = _rewrite([fact], draft, writer, reason)
        log(fact.owner_id, FactLog.Action.CORRECT, [fact], [new], writer=writer, actor=actor, reason=reason)
        return new


def _rewrite(olds: Sequence[Fact], draft: FactDraft, writer: str, reason: str) -> Fact:
    """A new fact in place of active ones, with the evidence of all; one that says the same already becomes it too."""
    draft = clean(draft)
    check_no_secret(draft)
    first = olds[0]
    now = clock.now()
    # New words are said now. Where an old fact holds such a time too, nobody knows from when that one is seen.
    if all(dated(old, now, first.owner) == old for old in map(draft_of, olds)):
        draft = dated(draft, now, first.owner)
    known = same_fact(first.owner_id, draft, level_of(first))
    if known is not None and known.pk not in {old.pk for old in olds}:
        olds = [*olds, known]
    new = create(first.owner_id, draft, level_of(first), writer, legacy=all(old.legacy for old in olds))
    add_rows_of(new, olds)
    for old in olds:
        supersede(old, new, reason)
    return new


def draft_of(fact: Fact) -> FactDraft:
    """What a fact says, to be written again."""
    return FactDraft(
        text=fact.text,
        kind=fact.kind,
        aspect=fact.aspect,
        applies_to=fact.applies_to,
        tone=fact.tone,
        project=fact.project,
    )
