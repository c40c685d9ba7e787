"""What was rewound is folded: a page holds as much of what stands, and says the number of what it leaves out."""

import pytest

from agent.folds import STRETCH_ROWS, folded_views
from agent.projection import message_views
from tests.chat.records import say, say_many
from threads import copying
from threads.lifecycle import create_thread

pytestmark = pytest.mark.django_db

TAKEN_OUT = 12


@pytest.fixture
def thread(alice):
    """Three rows that stand, twelve that were rewound, five that stand, two that were rewound, one that stands."""
    thread = create_thread(alice)
    rows = say_many(thread, 3 + TAKEN_OUT)
    copying.rewind(thread, rows[2], acting_user=alice)
    since = [say(thread, f"since {number}") for number in range(7)]
    copying.rewind(thread, since[4], acting_user=alice)
    say(thread, "last")
    return thread


def standing(views):
    return [view["text"] for view in views if not view["superseded"]]


def folds(views):
    """(number of the stretch, how many of its rows are here) of each."""
    return [
        (count, sum(view["fold"] == {"first": first, "last": last, "count": count} for view in views))
        for first, last, count in dict.fromkeys(tuple(view["fold"].values()) for view in views if view["fold"])
    ]


def test_a_page_counts_what_stands_and_says_the_number_of_each_stretch(thread):
    views, more = folded_views(thread, limit=4)
    assert standing(views) == ["since 2", "since 3", "since 4", "last"]
    assert (folds(views), more) == ([(2, 2)], True)
    before, more = folded_views(thread, before_id=views[0]["id"], limit=4)
    assert standing(before) == ["message 1", "message 2", "since 0", "since 1"]
    assert (folds(before), more) == ([(TAKEN_OUT, STRETCH_ROWS)], True)
    assert [view["text"] for view in before if view["superseded"]] == ["message 12", "message 13", "message 14"]
    assert standing(folded_views(thread, before_id=before[0]["id"], limit=4)[0]) == ["message 0"]
    whole = folded_views(thread, limit=9)
    assert (len(standing(whole[0])), whole[1]) == (9, False)
    assert all(view["superseded"] == bool(view["fold"]) for view in whole[0])


def test_a_page_that_begins_or_ends_within_a_stretch_tells_all_of_it(thread):
    everything = message_views(thread)
    inside = next(view["id"] for view in everything if view["text"] == "message 8")
    before, _more = folded_views(thread, before_id=inside + 1, limit=2)
    assert before[-1]["id"] == inside
    assert folds(before) == [(TAKEN_OUT, STRETCH_ROWS)]
    after, more = folded_views(thread, after_id=inside, limit=2)
    # What follows goes on where the reader's rows end.
    assert after[0]["text"] == "message 9"
    assert (standing(after), folds(after), more) == (["since 0", "since 1"], [(TAKEN_OUT, STRETCH_ROWS)], True)
    assert folded_views(thread, after_id=everything[-1]["id"], limit=2) == ([], False)


def test_a_thread_that_was_rewound_whole_has_a_fold_alone(alice):
    thread = create_thread(alice)
    rows = say_many(thread, 5)
    copying.rewind(thread, rows[0], acting_user=alice, keep=False)
    views, more = folded_views(thread, limit=2)
    assert (standing(views), folds(views), more) == ([], [(5, STRETCH_ROWS)], False)
