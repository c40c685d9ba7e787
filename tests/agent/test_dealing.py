"""Dealing a history into generations, as arithmetic."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.dealing import deal


def exchanges(*sizes):
    """Rows of a user's words and an answer of that size each: (tokens, begins_exchange)."""
    return [size for size in sizes for _row in range(2)], [True, False] * len(sizes)


def test_a_history_that_fits_the_budget_is_not_dealt():
    tokens, begins = exchanges(10, 10, 10)
    assert deal(tokens, begins, room=50, undealt_room=60) == []


def test_a_larger_one_is_cut_between_exchanges_and_the_last_generation_is_filled_first():
    tokens, begins = exchanges(10, 10, 10, 10, 10)
    assert deal(tokens, begins, room=50, undealt_room=99) == [4, 6]


def test_an_exchange_larger_than_a_generation_is_cut_where_it_has_to_be():
    assert deal([30, 30, 30, 30], [True, False, False, False], room=60, undealt_room=100) == [2]


def test_a_row_larger_than_a_generation_has_one_to_itself():
    assert deal([10, 10, 200, 10], [True, False, True, False], room=50, undealt_room=100) == [2, 3]


def test_the_last_generation_is_empty_when_the_last_row_alone_is_too_large():
    assert deal([200], [True], room=50, undealt_room=100) == [1]


def test_rows_that_no_longer_fit_beside_what_is_there_begin_a_generation():
    tokens, begins = exchanges(10, 10)
    assert deal(tokens, begins, room=50, undealt_room=30, first_room=5) == [0]


def test_rows_fill_up_what_the_present_generation_has_left():
    tokens, begins = exchanges(10, 10, 10)
    assert deal(tokens, begins, room=50, undealt_room=50, first_room=25) == [2]


rows = st.lists(st.tuples(st.integers(0, 80), st.booleans()), max_size=60)


@given(rows, st.integers(1, 60), st.integers(0, 60), st.none() | st.integers(0, 60))
def test_no_generation_holds_more_than_its_room(history, room, more, first_room):
    tokens, begins = [size for size, _begin in history], [begin for _size, begin in history]
    first_room = first_room if first_room is None else min(first_room, room)
    undealt_room = (room if first_room is None else first_room) + more
    cuts = deal(tokens, begins, room=room, undealt_room=undealt_room, first_room=first_room)
    assert cuts == sorted(set(cuts))
    if not cuts:
        assert sum(tokens) <= undealt_room
        return
    bounds = [0, *cuts, len(tokens)]
    parts = [tokens[begin:end] for begin, end in pairwise(bounds)]
    assert sum(parts[-1]) <= room
    assert sum(parts[0]) <= (room if first_room is None else first_room) or (first_room is None and len(parts[0]) == 1)
    assert all(sum(part) <= room or len(part) == 1 for part in parts[1:-1])
    assert all(parts[1:-1])
    for before, cut in zip(bounds, cuts, strict=False):
        if cut < len(tokens) and not begins[cut]:
            # Within an exchange only where no beginning of one was there to cut at.
            assert not any(begins[before + 1 : cut]) or not any(begins[cut:])
