"""That facts are used: found by a search, or told to a generation when it opens."""

from collections.abc import Iterable

from django.db import connection

from memory.models import Fact, FactUse
from threads.models import Generation, Message


def use_facts(
    owner_id: int,
    fact_ids: Iterable[int],
    how: FactUse.How,
    *,
    message: Message | None = None,
    generation: Generation | None = None,
) -> list[Fact]:
    """Note that facts are used, in the caller's transaction, and return those that are still there and active, in the
    given order: whoever shows facts asks this first and shows what comes back.

    Their rows stay locked until the transaction ends, so that forgetting one waits, and then knows where it was told.
    """
    wanted = list(dict.fromkeys(fact_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM memory_fact WHERE owner_id = %s AND id = ANY(%s) AND status = 'active' ORDER BY id"
            " FOR KEY SHARE",
            [owner_id, wanted],
        )
        found = Fact.objects.in_bulk([row[0] for row in cursor.fetchall()])
    facts = [found[pk] for pk in wanted if pk in found]
    FactUse.objects.bulk_create(
        [FactUse(fact=fact, owner_id=owner_id, how=how, message=message, generation=generation) for fact in facts],
        ignore_conflicts=True,
    )
    return facts
