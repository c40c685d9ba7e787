"""What taught a fact that was forgotten, and that it teaches nothing more.

The words are frozen with their conversation, so they may be read again: by the steward that had not read them yet, by a
shadow, by whoever looks for proofs of imported facts. What is forgotten would come back from them in other words. So
the log of forgetting keeps the ids of those messages and generations, and the judge of evidence refuses them, whatever
is claimed of them; and the fingerprints of the facts, so that no older words of another conversation prove one that
says the same. Words that the person says anew are theirs to be remembered. What they said elsewhere in other words, of
which another fact would be written, nobody can tell for the same.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac

from memory.models import Fact, FactEvidence, FactLog
from threads.models import Message, Thread
from threads.transcript import fold

# Shorter words are found everywhere and say nothing.
WORDS_MIN_CHARS = 12
WORDS_MIN_CHARS_CHINESE = 5


def mark_of(owner_id: int, fingerprint: str) -> str:
    """What the log keeps of a forgotten fact's fingerprint: made with the server's key, because whoever reads the log
    could else try words until one fits."""
    return _mark(owner_id, fingerprint, settings.SECRET_KEY)


def marks_of(owner_id: int, fingerprint: str) -> list[str]:
    """All that the log may keep of a fingerprint: made with the key of now or an earlier one, and the bare fingerprint
    of what was forgotten before marks were made so."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [*(_mark(owner_id, fingerprint, key) for key in keys), fingerprint]


def _mark(owner_id: int, fingerprint: str, key: str | bytes) -> str:
    words = f"{owner_id}:{fingerprint}"
    return salted_hmac("memory.forgotten", words, secret=key, algorithm="sha256").hexdigest()


def telling(words: str) -> bool:
    """Whether some folded words are long enough to be looked for, so that whoever says them says this."""
    return len(words) >= (WORDS_MIN_CHARS if words.isascii() else WORDS_MIN_CHARS_CHINESE)


def saying(facts: Iterable[Fact]) -> Q:
    """Messages in which the words of facts stand."""
    holds = Q(pk__in=[])
    for fact in facts:
        holds |= Q(search_text__contains=fold(fact.text))
    return holds


def teachers(owner_id: int, facts: Sequence[Fact]) -> QuerySet[Message]:
    """Messages from which facts would be written again: those that prove them, with what these were copied from, every
    copy of either, and those in which their words stand. A copy forgets where it came from when that is erased, so
    each is named by itself."""
    rows = FactEvidence.objects.filter(fact__in=facts)
    cited = {pk for row in rows for pk in (row.message_id, row.accepted_by_id) if pk is not None}
    told = saying(fact for fact in facts if telling(fold(fact.text)))
    return Message.objects.filter(told | Q(pk__in=_with_copies(owner_id, cited)), owner_id=owner_id)


def _with_copies(owner_id: int, ids: Collection[int]) -> set[int]:
    """Messages, what they were copied from, and the copies of all of these, and so on."""
    found: set[int] = set()
    waiting = set(ids)
    while waiting:
        found |= waiting
        family = Message.objects.filter(Q(pk__in=waiting) | Q(copied_from__in=waiting), owner_id=owner_id)
        rows = set(family.order_by().values_list("pk", "copied_from"))
        waiting = {pk for row in rows for pk in row if pk is not None} - found
    return found


def name_copies(thread: Thread) -> None:
    """Before a conversation goes: copies elsewhere of what taught a forgotten fact, made since, are named by themselves
    from now on."""
    copies = Message.objects.filter(copied_from__thread=thread).exclude(thread=thread).order_by()
    pairs = list(copies.values_list("copied_from", "pk"))
    sources = list({source for source, _copy in pairs})
    entries = FactLog.objects.filter(owner_id=thread.owner_id, action=FactLog.Action.FORGET)
    for entry in entries.filter(forgotten_messages__overlap=sources) if sources else []:
        known = set(entry.forgotten_messages)
        entry.forgotten_messages = sorted(known | {copy for source, copy in pairs if source in known})
        entry.save(update_fields=["forgotten_messages"])


def generations_of(facts: Sequence[Fact]) -> list[int]:
    """The generations that prove facts as a whole."""
    rows = FactEvidence.objects.filter(fact__in=facts, generation__isnull=False)
    return sorted(set(rows.values_list("generation", flat=True)))


def taught_by(
    owner_id: int, message_ids: Collection[int], generation_ids: Collection[int] = ()
) -> tuple[set[int], set[int]]:
    """Those of these messages (a copy is what it was copied from) and generations that taught what was forgotten. A
    generation did too when a message in it did."""
    entries = FactLog.objects.filter(owner_id=owner_id, action=FactLog.Action.FORGET)
    copies = Message.objects.filter(pk__in=message_ids, copied_from__isnull=False)
    original = dict(copies.values_list("pk", "copied_from")) if message_ids else {}
    named = [*message_ids, *original.values()]
    of_either = Q(forgotten_messages__overlap=named) | Q(forgotten_generations__overlap=list(generation_ids))
    told = list(entries.filter(of_either).values_list("forgotten_messages", "forgotten_generations"))
    gone = set(chain.from_iterable(messages for messages, _generations in told))
    whole = set(chain.from_iterable(generations for _messages, generations in told)) & set(generation_ids)
    if generation_ids:
        taught = set(chain.from_iterable(entries.values_list("forgotten_messages", flat=True)))
        within = Message.objects.filter(generation__in=generation_ids)
        holding = within.filter(Q(pk__in=taught) | Q(copied_from__in=taught))
        whole.update(holding.order_by().values_list("generation", flat=True).distinct())
    return {pk for pk in message_ids if pk in gone or original.get(pk) in gone}, whole
