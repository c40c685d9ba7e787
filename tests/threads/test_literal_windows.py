"""However many matches there are and however long, the windows around them stay within their bound."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from threads.excerpts import WINDOW_MAX_CHARS, Folded
from threads.literal_windows import LITERAL_MAX_CHARS, Field, Place, fill, rendered
from threads.search_range import SearchRow

LENGTHS = st.integers(20, 900)
# Rows of one length reach the last characters of the room more often than mixed ones do.
ROWS = st.lists(LENGTHS, min_size=1, max_size=120) | st.builds(lambda size, count: [size] * count, LENGTHS, st.just(80))


def places(lengths, first_id, name):
    said = datetime(2026, 1, 1, tzinfo=UTC)
    for number, length in enumerate(lengths):
        text = ("needle " + "x" * length)[:length]
        row = SearchRow(first_id + number, first_id // 7, "assistant", text, None, said)
        yield Place(row, Field(name, Folded(text), 0), 0, 6)


@given(
    lengths=ROWS,
    first_id=st.sampled_from([1, 999, 54_321, 10**12]),
    name=st.sampled_from(["text", "look.path", "x" * 200]),
    total=st.integers(0, 10**6),
    exact=st.booleans(),
)
@example(lengths=[119] * 80, first_id=1, name="text", total=10**6, exact=False)
@example(lengths=[118] * 80, first_id=999, name="text", total=10**6, exact=False)
def test_the_bound_holds_for_any_lengths_of_rows(lengths, first_id, name, total, exact):
    hits = fill(places(lengths, first_id, name))
    text = rendered(hits, max(total, len(lengths)) - len(hits), exact=exact)
    assert len(text) <= LITERAL_MAX_CHARS
    assert all(len(hit.window.text) <= WINDOW_MAX_CHARS for hit in hits)
    # Nothing is left out while a window of the usual least size would fit.
    assert len(hits) == len(lengths) or len(text) > LITERAL_MAX_CHARS - 600


def test_a_row_that_was_shown_whole_is_shortened_for_the_last_of_the_room():
    lengths = [180] * 60
    hits = fill(places(lengths, 54_321, "text"))
    assert len(hits) < len(lengths)
    assert all(hit.window.is_whole for hit in hits[:-1])
    assert all(hit.window.is_whole or "[part of it: message_context_read" in hit.text for hit in hits)
