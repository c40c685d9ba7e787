"""How what memory keeps of a person goes, and what of it is exported. Vectors are no words of anybody's, so they are
not exported; secrets are kept out of facts, and out of exports once more."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import ngettext

from accounts import erasing
from accounts.models import User
from memory import forgetting, forgotten, secrets
from memory.fact_rows import level_of, lock_facts
from memory.models import (
    Digest,
    EmbeddedThread,
    Episode,
    Fact,
    FactEvidence,
    FactLog,
    FactUse,
    MessageChunk,
    ReadingPause,
)
from memory.standing import with_said
from threads.lifecycle import descendants
from threads.models import Thread
from threads.visibility import Level, can_flow

# Writers whose reasons are a model's words.
MODELS = (Fact.Writer.STEWARD, Fact.Writer.REMEMBER, Fact.Writer.SHADOW)


def export(user: User) -> Iterator[dict[str, Any]]:
    """Facts with their evidence and uses, and what was done to them, oldest first."""
    facts = with_said(Fact.objects.filter(owner=user)).prefetch_related("evidence", "uses")
    for fact in erasing.in_batches(facts):
        yield {
            "record": "fact",
            "id": f"f:{fact.pk}",
            "text": secrets.redact(fact.text),
            "kind": fact.kind,
            "aspect": fact.aspect,
            "applies_to": secrets.redact(fact.applies_to),
            "tone": fact.tone,
            "project": secrets.redact(fact.project),
            "scope": fact.scope,
            "island": fact.island_id and f"t:{fact.island_id}",
            "category": fact.category,
            "status": fact.status,
            "superseded_by": fact.superseded_by_id and f"f:{fact.superseded_by_id}",
            "writer": fact.writer,
            "legacy": fact.legacy,
            "graduated_rule": secrets.redact(fact.graduated_rule),
            "graduated_commit": fact.graduated_commit,
            "why": secrets.redact(fact.why),
            "said": user.local(vars(fact)["said"]).isoformat(),
            "created": fact.created.isoformat(),
            "changed": fact.changed.isoformat(),
            "evidence": [
                {
                    "kind": row.kind,
                    "message": row.message_id,
                    "generation": row.generation_id,
                    "accepted_by": row.accepted_by_id,
                }
                for row in sorted(fact.evidence.all(), key=lambda row: row.pk)
            ],
            "uses": [
                {"how": use.how, "message": use.message_id, "generation": use.generation_id}
                for use in sorted(fact.uses.all(), key=lambda use: use.pk)
            ],
        }
    for entry in erasing.in_batches(FactLog.objects.filter(owner=user).select_related("actor")):
        yield {
            "record": "memory_log",
            "action": entry.action,
            "writer": entry.writer,
            "by": entry.actor and entry.actor.username,
            "reason": secrets.redact(entry.reason),
            "before": [f"f:{pk}" for pk in entry.before],
            "after": [f"f:{pk}" for pk in entry.after],
            "created": entry.created.isoformat(),
        }


def holdings(user: User) -> Iterator[str]:
    facts = Fact.objects.filter(owner=user).count()
    if facts:
        yield ngettext("%(count)d fact", "%(count)d facts", facts) % {"count": facts}


def erase_thread(thread: Thread) -> None:
    """Take the conversation's evidence along, the facts whose every evidence went with it, those of an island on which
    nothing is left, and the reasons that may quote it."""
    lock_facts(thread.owner_id)
    _empty_reasons(thread)
    forgotten.name_copies(thread)
    going = _evidence_of([thread.pk])
    touched = set(going.values_list("fact_id", flat=True))
    going.delete()
    proved = set(FactEvidence.objects.filter(fact__in=touched).values_list("fact_id", flat=True))
    island = Fact.objects.filter(owner_id=thread.owner_id, island=thread)
    left_alone = not Thread.objects.filter(island=thread).exclude(pk=thread.pk).exists()
    ids = touched - proved | (set(island.values_list("pk", flat=True)) if left_alone else set())
    going_facts = Fact.objects.select_for_update().filter(pk__in=ids).only("pk", "text").order_by("pk")
    forgetting.end_told(thread.owner_id, list(going_facts))
    delete_facts(thread.owner_id, ids)
    FactUse.objects.filter(Q(message__thread=thread) | Q(generation__thread=thread)).delete()
    Digest.objects.filter(message__thread=thread).delete()
    Episode.objects.filter(thread=thread).delete()
    MessageChunk.objects.filter(thread=thread).delete()
    EmbeddedThread.objects.filter(thread=thread).delete()


def erase_user(user: User) -> None:
    lock_facts(user.pk)
    delete_facts(user.pk, set(Fact.objects.filter(owner=user).values_list("pk", flat=True)))
    FactLog.objects.filter(owner=user).delete()
    Digest.objects.filter(owner=user).delete()
    Episode.objects.filter(owner=user).delete()
    ReadingPause.objects.filter(owner=user).delete()
    MessageChunk.objects.filter(owner=user).delete()
    EmbeddedThread.objects.filter(owner=user).delete()


def narrow_thread(thread: Thread) -> None:
    """Facts that are proved by this conversation alone, or by its tasks and branches which come along, get its level on
    top of their own. Where other conversations prove a fact too, it stays, without this one's evidence."""
    lock_facts(thread.owner_id)
    level = Level.of_thread(thread)
    here, in_family = _evidence_of([thread.pk]), _evidence_of([thread.pk, *descendants(thread)])
    for fact in Fact.objects.filter(pk__in=here.values("fact_id")).order_by("pk"):
        if can_flow(level, level_of(fact)):
            continue
        if fact.evidence.exclude(pk__in=in_family.values("pk")).exists():
            here.filter(fact=fact).delete()
            continue
        stricter = _both(level, level_of(fact))
        if stricter is None:
            # Nobody may see both.
            delete_facts(thread.owner_id, [fact.pk])
            continue
        fact.scope, fact.island_id, fact.category = stricter.scope, stricter.island_id, stricter.category
        fact.save(update_fields=["scope", "island", "category"])


def move_island(old_id: int, new_id: int) -> None:
    Fact.objects.filter(island_id=old_id).update(island_id=new_id)


def forget_fact(fact: Fact) -> None:
    lock_facts(fact.owner_id)
    delete_facts(fact.owner_id, {fact.pk})


def delete_facts(owner_id: int, ids: Iterable[int]) -> None:
    """Delete facts of an owner's with their evidence and uses. The log keeps that something was done to them; reasons
    may repeat their words, so these go."""
    ids = list(ids)
    entries = FactLog.objects.filter(owner_id=owner_id)
    entries.filter(Q(before__overlap=ids) | Q(after__overlap=ids)).update(reason="")
    Fact.objects.filter(owner_id=owner_id, superseded_by__in=ids).update(why="")
    erasing.empty_admin_log(Fact, ids)
    Fact.objects.filter(owner_id=owner_id, pk__in=ids).delete()


def _empty_reasons(thread: Thread) -> None:
    """A model that reads a conversation may retire or replace what others prove, and says why in its words. Where it
    read is not kept, so every reason that a model gave since the conversation began goes; a person's own stay."""
    given = FactLog.objects.filter(owner_id=thread.owner_id).exclude(reason="")
    by_models = given.filter(writer__in=MODELS, created__gte=thread.created)
    facts = Fact.objects.filter(owner_id=thread.owner_id, why__in=by_models.values("reason"))
    facts.filter(changed__gte=thread.created).update(why="")
    by_models.update(reason="")


def _both(one: Level, other: Level) -> Level | None:
    """The level of what may go only where both may go. None: nowhere."""
    islands = {level.island_id for level in (one, other) if level.island_id is not None}
    categories = {level.category for level in (one, other) if level.category}
    if len(islands) > 1 or len(categories) > 1:
        return None
    scope = Thread.Scope.ISOLATED if islands else Thread.Scope.OPEN
    return Level(scope, next(iter(islands), None), next(iter(categories), ""))


def _evidence_of(thread_ids: list[int]) -> QuerySet[FactEvidence]:
    return FactEvidence.objects.filter(
        Q(message__thread__in=thread_ids) | Q(generation__thread__in=thread_ids) | Q(accepted_by__thread__in=thread_ids)
    )
