"""Text made safe to store, and cuts between what a reader sees as one sign."""

import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from maxclaw import text

FAMILY = "👨‍👩‍👧‍👦"
SIGNS = [
    "a", "e\u0301", "\u0301", FAMILY, "\u200d", "🇩", "🇪", "\r", "\n", "\r\n", "각", "\u1100", "\u1161", "\u11a8",
    "世", "क्ष", "\u0915", "\u094d", "😀", "\u0600", "x", "\t", "\x00", "\ufe0f", "🏽",
]  # fmt: skip
words = st.lists(st.sampled_from(SIGNS), max_size=300).map("".join)


def boundaries(value):
    return [0, *(match.end() for match in regex.finditer(r"\X", value))]


def test_nul_and_lone_surrogates_are_made_visible():
    assert text.visible("a\x00b\ud800c\udfff") == "a␀b\\ud800c\\udfff"


def test_a_torn_surrogate_pair_is_joined():
    assert text.visible("x\ud83d\ude00y") == "x😀y"


def test_text_that_needs_no_change_comes_back_itself():
    value = "日本語 😀 \\ud800"
    assert text.visible(value) is value


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=50))
def test_what_is_visible_can_be_encoded_and_holds_no_nul(value):
    shown = text.visible(value)
    assert "\x00" not in shown
    shown.encode()
    assert text.visible(shown) == shown


def test_every_leaf_and_key_of_a_json_value_is_made_visible():
    value = {"a\x00": ["\ud800", {"b": "\x00"}], "n": 1.5, "t": None}
    assert text.visible_json(value) == {"a␀": ["\\ud800", {"b": "␀"}], "n": 1.5, "t": None}


def test_keys_that_become_equal_are_kept_apart():
    assert text.visible_json({"a\x00": 1, "a␀": 2}) == {"a␀": 1, "a␀_": 2}


@given(words, st.integers(-2, 400))
def test_cuts_fall_at_the_nearest_boundary_between_grapheme_clusters(value, position):
    found = boundaries(value)
    assert text.boundary_before(value, position) == max((b for b in found if b <= position), default=0)
    assert text.boundary_after(value, position) == min((b for b in found if b >= position), default=len(value))


@given(words, st.integers(0, 400))
def test_head_and_tail_never_split_a_cluster_and_never_exceed(value, size):
    start, end = text.head(value, size), text.tail(value, size)
    assert len(start) <= size >= len(end)
    assert value.startswith(start)
    assert value.endswith(end)
    assert len(start) in boundaries(value)
    assert len(value) - len(end) in boundaries(value)


def test_an_emoji_of_seven_code_points_stays_whole():
    assert text.head("a" + FAMILY, 7) == "a"
    assert text.tail(FAMILY + "b", 7) == "b"
    assert text.head("a" + FAMILY, 8) == "a" + FAMILY


def test_a_row_of_flags_is_cut_between_flags():
    flags = "🇩🇪" * 500
    assert text.head("x" + flags, 600) == "x" + "🇩🇪" * 299


@given(words, st.integers(0, 120), st.sampled_from(["", "…", " [gap] "]))
def test_head_and_tail_fits_exactly_whatever_the_text(value, size, gap):
    result = text.head_and_tail(value, size, gap)
    assert len(result) <= size or result == ""
    if len(value) <= size:
        assert result == value


def test_the_gap_says_how_much_was_left_out():
    result = text.head_and_tail("a" * 5_000 + "b" * 5_000, 1_000, lambda count: f"[{count} left out]")
    start, rest = result.split("[")
    gap, end = rest.split("]")
    assert gap == f"{10_000 - len(start) - len(end)} left out"
    assert (set(start), set(end)) == ({"a"}, {"b"})
    assert 990 < len(result) <= 1_000


def test_a_gap_that_does_not_fit_leaves_the_start():
    assert text.head_and_tail("abcdefgh", 3, "[gap]") == "abc"


def test_a_gap_that_grows_still_fits():
    result = text.head_and_tail("a" * 1_000, 100, lambda count: "x" * (1_000 - count))
    assert len(result) <= 100


@pytest.mark.parametrize("unit", ["word ", "字", "e\u0301", "\u0301", "🇩", "👩\u200d"])
def test_cutting_a_million_characters_takes_no_time(unit):
    value = unit * (1_000_000 // len(unit))
    started = time.monotonic()
    text.head(value, 12_000)
    text.tail(value, 12_000)
    assert time.monotonic() - started < 2.0


@pytest.mark.parametrize(
    "nothing", ["", " \n\t\u3000", "\u200b\u200d\ufeff", "\u202e\u2066", "\u3164\u115f\u2800", "\x07"]
)
def test_signs_that_nobody_sees_are_blank(nothing):
    assert text.is_blank(nothing)
    for something in ("a", "字", FAMILY, "\u0600", text.NUL_SIGN, "\u0301"):
        assert not text.is_blank(nothing + something + nothing)
