"""A page of a conversation in which what was rewound is folded: a stretch of rewound rows stands for itself with a few
of them and its number, so that however much was taken out, a page holds as much of what stands.

"fold" of a rewound row's view: {"first", "last": ids at the ends of the stretch, "count": its rows}. A stretch is rows
that follow each other in what a person sees; its rows that are no part of a page are read by `message_views`.
"""

from bisect import bisect
from itertools import groupby
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from agent.projection import View, row_views, shown_rows
from threads.models import Message, Thread

STRETCH_ROWS = 3  # of each stretch on a page: however many there are, most of a page is what stands


def folded_views(
    thread: Thread, *, before_id: int | None = None, after_id: int | None = None, limit: int = 100
) -> tuple[list[View], bool]:
    """(views ascending, whether there are more in that direction): the newest `limit` standing rows older than
    `before_id`, or with `after_id` the oldest newer than that, and of each stretch rewound between them the newest
    STRETCH_ROWS. Six queries at most, and one for each streaming answer."""
    rows = shown_rows(thread)
    taken_out = Q(left_because=Message.LeftBecause.SUPERSEDED) & ~Exists(_standing_copies(thread))
    standing, rewound = rows.exclude(taken_out), rows.filter(taken_out)
    if after_id is not None:
        found = list(standing.filter(id__gt=after_id).select_related("generation").order_by("id")[: limit + 1])
        page, more = found[:limit], len(found) > limit
        # A stretch may have begun before the edge: its number is that of all of it.
        lower = standing.filter(id__lte=after_id).order_by("-id").values_list("id", flat=True).first()
        upper = page[-1].pk if more else None
    else:
        older = standing if before_id is None else standing.filter(id__lt=before_id)
        found = list(older.select_related("generation").order_by("-id")[: limit + 1])
        page, more = found[:limit][::-1], len(found) > limit
        lower = page[0].pk if more else None
        upper = None
        if before_id is not None:
            upper = standing.filter(id__gte=before_id).order_by("id").values_list("id", flat=True).first()
    within = rewound.filter(id__gt=lower or 0)
    if upper is not None:
        within = within.filter(id__lt=upper)
    folds = _folds([row.pk for row in page], list(within.order_by("id").values_list("id", flat=True)))
    of_row: dict[int, View] = {}
    for fold in folds:
        told = {"first": fold[0], "last": fold[-1], "count": len(fold)}
        if after_id is not None and fold[0] <= after_id:
            chosen = [pk for pk in fold if pk > after_id][:STRETCH_ROWS]  # goes on where the reader's rows end
        else:
            chosen = [pk for pk in fold if before_id is None or pk < before_id][-STRETCH_ROWS:]
        of_row |= dict.fromkeys(chosen, told)
    if of_row:
        page += Message.objects.filter(pk__in=of_row).select_related("generation")
        page.sort(key=lambda row: row.pk)
    return row_views(page, of_row, of_row), more


def _standing_copies(thread: Thread) -> QuerySet[Message]:
    copies = Message.objects.filter(thread=thread, copied_from_id=OuterRef("pk"))
    return copies.exclude(left_because=Message.LeftBecause.SUPERSEDED)


def _folds(standing: list[int], rewound: list[int]) -> list[list[Any]]:
    """The rewound ids, ascending, as stretches between the standing ones."""
    return [list(fold) for _place, fold in groupby(rewound, key=lambda pk: bisect(standing, pk))]
