"""That facts are used: found by a search, or told to a generation when it opens."""

from collections.abc import Iterable

from django.db import connection
from django.db.models import QuerySet

from maxclaw import clock
from memory.models import Fact, FactUse
from threads.models import Generation, Message


def use_facts(
    owner_id: int,
    fact_ids: Iterable[int],
    how: FactUse.How,
    *,
    message: Message | None = None,
    generation: Generation | None = None,
    among: QuerySet[Fact] | None = None,
) -> set[int]:
    """Note that facts are used, in the caller's transaction, and return the ids of those that are still there and
    active (and in `among`): whoever shows facts asks this first and shows what comes back. One statement at most.

    Their rows stay locked until the transaction ends, so that forgetting one waits, and then knows where it was told.
    """
    wanted = set(fact_ids)
    if not wanted:
        return set()
    facts = Fact.objects.all() if among is None else among
    still = facts.filter(owner_id=owner_id, pk__in=wanted, status=Fact.Status.ACTIVE).order_by("pk")
    selected, parameters = still.values("id").query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            # The ORM has no lock that lets a fact be written and not be deleted.
            f"""
            WITH still AS MATERIALIZED ({selected} FOR KEY SHARE OF memory_fact),
            noted AS (
                INSERT INTO memory_factuse (fact_id, owner_id, how, message_id, generation_id, created)
                SELECT id, %s, %s, %s, %s, %s FROM still ON CONFLICT DO NOTHING
            )
            SELECT id FROM still
            """,  # noqa: S608  (the ORM's own statement, its values apart)
            [
                *parameters,
                owner_id,
                how,
                None if message is None else message.pk,
                None if generation is None else generation.pk,
                clock.now(),
            ],
        )
        return {row[0] for row in cursor.fetchall()}
