"""Words and meaning become one order, and what stands beside a good match gains by it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import ranking

UNKNOWN = float("nan")


def order(scores):
    return list(np.argsort(-scores, kind="stable"))


def test_what_has_both_comes_before_what_has_one():
    words = np.array([0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0])
    cosines = np.array([0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9])
    assert order(ranking.fused(words, cosines, [0] * 13))[0] == 3


def test_neither_scale_drowns_the_other():
    words = np.array([900.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    cosines = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
    fused = ranking.fused(words, cosines, list(range(10)))
    assert fused[0] == pytest.approx(fused[9])


def test_the_neighbour_of_a_match_comes_before_a_stranger_but_not_before_the_match():
    scores = np.array([0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 1.5])
    assert order(ranking.with_neighbours(scores, [0] * 8))[:3] == [2, 1, 3]


def test_a_neighbour_in_another_conversation_is_none():
    scores = np.array([0.0, 4.0, 0.0])
    assert list(ranking.with_neighbours(scores, [0, 0, 1])) == [2.0, 4.0, 0.0]
    assert list(ranking.near(scores > 0, [0, 0, 1])) == [True, True, False]


def test_a_poor_neighbour_tells_nothing():
    scores = np.array([-3.0, 1.0, -3.0])
    assert ranking.with_neighbours(scores, [0, 0, 0])[1] == 1.0


def test_what_has_no_vector_counts_as_average():
    assert list(ranking.standardised(np.array([1.0, 3.0, UNKNOWN]))) == [-1.0, 1.0, 0.0]
    assert list(ranking.standardised(np.array([UNKNOWN, UNKNOWN]))) == [0.0, 0.0]
    assert list(ranking.standardised(np.array([2.0, 2.0]))) == [0.0, 0.0]
    assert ranking.fused(np.array([]), np.array([]), []).size == 0


@given(st.lists(st.tuples(st.floats(0, 50), st.none() | st.floats(-1, 1), st.integers(0, 2)), max_size=30))
def test_every_score_is_a_number(rows):
    rows.sort(key=lambda row: row[2])
    words = np.array([row[0] for row in rows])
    cosines = np.array([UNKNOWN if row[1] is None else row[1] for row in rows])
    assert np.isfinite(ranking.fused(words, cosines, [row[2] for row in rows])).all()
