"""Dealing a history that is larger than a context into generations, none of which fills it.

Pure arithmetic over token counts; `importing.py` applies it to rows.
"""

from collections.abc import Sequence
from itertools import accumulate

# What the last generation may hold of the budget; the earlier ones hold no more, so that going back into one leaves
# room to go on.
GENERATION_BUDGET_SHARE = 0.5


def deal(
    tokens: Sequence[int],
    begins_exchange: Sequence[bool | int],
    *,
    room: int,
    undealt_room: int,
    first_room: int | None = None,
) -> list[int]:
    """Where new generations begin: indexes into the rows, ascending; none when all fit into the present generation.

    `tokens` are the rows' sizes; `begins_exchange` says which rows begin an exchange (a user's words): cuts fall before
    those, unless one exchange is larger than a generation. `room` is what a generation takes, `undealt_room` what the
    present one takes when nothing has to be dealt, `first_room` what it takes otherwise (None: it is empty, and takes
    as much as any).

    The last generation is filled from the end, so that it holds the newest exchanges; it is empty when the last row
    alone is larger than `room`. Elsewhere such a row has a generation to itself.
    """
    count = len(tokens)
    up_to = [0, *accumulate(tokens)]
    if up_to[count] <= undealt_room:
        return []
    last = _begin_of_last(up_to, begins_exchange, room)
    cuts: list[int] = []
    begin, limit, is_empty = 0, room if first_room is None else first_room, first_room is None
    while True:
        end = begin
        while end < last and up_to[end + 1] - up_to[begin] <= limit:
            end += 1
        if end == last:
            break
        if end > begin:
            cut = next((index for index in range(end, begin, -1) if begins_exchange[index]), end)
        else:
            cut = end + 1 if is_empty else end
        cuts.append(cut)
        begin, limit, is_empty = cut, room, True
    if not cuts or cuts[-1] != last:
        cuts.append(last)
    return cuts


def _begin_of_last(up_to: Sequence[int], begins_exchange: Sequence[bool | int], room: int) -> int:
    count = len(begins_exchange)
    begin = count
    while begin > 0 and up_to[count] - up_to[begin - 1] <= room:
        begin -= 1
    return next((index for index in range(begin, count) if begins_exchange[index]), begin)
