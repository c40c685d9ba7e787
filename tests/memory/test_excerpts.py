"""The list of excerpts: however the days of messages follow each other, it keeps to its room."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory.excerpts import EXCERPT_LEAST_CHARS, EXCERPT_MAX_CHARS, WHOLE_ROOM_CHARS, excerpt_chars, render
from memory.meaning_search import MeaningHit

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def hit(message_id, day, generation_id=1, chars=40):
    return MeaningHit(
        message_id=message_id,
        generation_id=generation_id,
        thread_id=1,
        channel="here",
        title="",
        role="user",
        created=BEGAN + timedelta(days=day),
        offset=0,
        text=f"needle {message_id} ".ljust(chars, "x"),
        cosine=0.5,
    )


@given(
    placed=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2), st.integers(10, 90)), min_size=20, max_size=40),
    room=st.integers(200, 2_000),
    named=st.booleans(),
)
def test_the_list_keeps_to_its_room_in_whatever_order_its_days_were_stored(placed, room, named):
    hits = [hit(number, day, generation, chars) for number, (day, generation, chars) in enumerate(placed, 1)]
    listed = render(hits, "needle", room, channel="here" if named else None)
    assert len(listed.text) <= room
    assert listed.text.count("needle") + listed.left_out == len(hits)


def test_each_day_has_one_heading_and_its_messages_in_order():
    listed = render([hit(3, 0), hit(2, 1), hit(1, 0)], "needle", 2_000, channel="here").text
    assert [line.split(" user")[0] for line in listed.splitlines() if line] == [
        "# 2026-01-01, generation 1",
        "m:1",
        "m:3",
        "# 2026-01-02",
        "m:2",
    ]


def test_excerpts_shrink_with_their_rank_and_with_the_room_so_that_about_as_many_fit():
    sizes = [excerpt_chars(rank, WHOLE_ROOM_CHARS) for rank in range(80)]
    assert sizes[0] == EXCERPT_MAX_CHARS and sizes == sorted(sizes, reverse=True)
    assert excerpt_chars(0, WHOLE_ROOM_CHARS // 2) == EXCERPT_MAX_CHARS // 2
    assert excerpt_chars(79, 1_000) == EXCERPT_LEAST_CHARS
    hits = [hit(number, 0, chars=400) for number in range(1, 200)]
    whole, half = (
        render(hits, "needle", room, channel="here").text.count("user: ")
        for room in (WHOLE_ROOM_CHARS, WHOLE_ROOM_CHARS // 2)
    )
    assert half > 0.6 * whole
