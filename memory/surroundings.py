"""Messages in their surroundings: what was said just before and just after them."""

from collections.abc import Sequence
from itertools import groupby

from django.db import connection

from threads.models import Message

AROUND = 3

_AROUND = """
    SELECT anchor.id, near.id FROM threads_message anchor
    CROSS JOIN LATERAL (
        (SELECT id FROM threads_message WHERE thread_id = anchor.thread_id AND id <= anchor.id
         ORDER BY id DESC LIMIT %(before)s)
        UNION ALL
        (SELECT id FROM threads_message WHERE thread_id = anchor.thread_id AND id > anchor.id
         ORDER BY id LIMIT %(after)s)
    ) near
    WHERE anchor.owner_id = %(owner)s AND anchor.id = ANY(%(anchors)s)
    ORDER BY 1, 2
"""


def surroundings(owner_id: int, message_ids: Sequence[int], *, around: int = AROUND) -> dict[int, list[int]]:
    """For each of these messages of the owner's: its own id among those of up to `around` rows of its conversation
    before it and as many after, oldest first. One query for all of them."""
    with connection.cursor() as cursor:
        cursor.execute(
            _AROUND, {"owner": owner_id, "anchors": list(message_ids), "before": around + 1, "after": around}
        )
        found = cursor.fetchall()
    return {anchor: [near for _anchor, near in rows] for anchor, rows in groupby(found, key=lambda row: row[0])}


def rows_of(ids: Sequence[int]) -> dict[int, Message]:
    """The messages themselves, as they are shown: with their generation, without what repeats their text."""
    rows = Message.objects.filter(pk__in=ids).select_related("generation", "thread").defer("search_text")
    return {message.pk: message for message in rows}
