"""One message is opened by its id, page by page, by whom it may be."""

import re

import pytest

from agent.registry import ToolContext, ToolError, get
from maxclaw import clock
from tests.threads.records import call_tool, exchange, give_result, say, thread_of
from threads import copying
from threads.history import NO_SUCH_BEFORE, SEARCH_RESULT_MAX_CHARS, HistoryRefused, read_page
from threads.literal_search import literal_search
from threads.models import Message
from threads.reading import message_context_read
from threads.visibility import Level, Viewer

pytestmark = pytest.mark.django_db


def read(thread, message_id, **options):
    return message_context_read(Viewer.of_thread(thread), message_id, **options)


def refusal(thread, message_id, viewer=None, **options):
    with pytest.raises(HistoryRefused) as caught:
        message_context_read(viewer or Viewer.of_thread(thread), message_id, **options)
    return str(caught.value)


def body(page):
    """What stands between the heading of a page and the line that says where it is."""
    lines = page.split(":\n", 1)[1]
    return lines.rpartition("\n[characters ")[0] or lines


@pytest.fixture
def thread(alice):
    return thread_of(alice)


def test_a_short_message_is_shown_whole(thread):
    row = say(thread, "user", "a few words")
    page = read(thread, row.pk)
    assert page.startswith(f"Historical evidence from conversation {thread.channel}.")
    assert f"[m:{row.pk}] user, generation {row.generation_id}, " in page
    assert page.endswith(":\na few words")


def test_arguments_of_tool_calls_are_shown_with_their_place(thread):
    row = call_tool(thread, arguments={"command": 'echo "C:\\Users"', "more": ["x"]}, text="I look")
    assert body(read(thread, row.pk)) == (
        'I look\n\n[argument look.command]\necho "C:\\Users"\n\n[argument look.more]\nx'
    )


@pytest.mark.parametrize("piece", ["x", "中", "👩\u200d👩\u200d👧\u200d👦", "e\u0301"])
def test_pages_together_are_the_original(thread, piece):
    call_tool(thread)
    row = give_result(thread, text=piece * (30_000 // len(piece)))
    pages, offset = [], 0
    while True:
        page = read(thread, row.pk, offset=offset)
        assert len(page) <= SEARCH_RESULT_MAX_CHARS
        pages.append(body(page))
        if "this is the end" in page:
            break
        offset = int(page.rpartition("offset=")[2].rstrip(")]"))
    assert "".join(pages) == row.text
    assert len(pages) == 3


def test_a_window_of_a_search_says_where_to_open(thread):
    call_tool(thread)
    give_result(thread, text="x" * 40_000 + "needle" + "x" * 40_000)
    row, offset = shown_place(thread, "needle")
    assert "needle" in body(read(thread, row, offset=offset))[:300]
    call_tool(thread, call_id="toolu_2", arguments={"a": "y" * 5_000, "b": "z" * 5_000 + "pin" + "z" * 5_000})
    row, offset = shown_place(thread, "zpinz")
    assert body(read(thread, row, offset=offset)).index("pin") <= 210


def shown_place(thread, query):
    """The message and the offset that the only window of a search names."""
    (hit,) = literal_search(Viewer.of_thread(thread), thread.channel, query).hits
    named = re.search(r"message_context_read m:(\d+) offset (\d+)\]$", hit.text)
    return int(named[1]), int(named[2])


def test_a_cut_never_splits_a_sign(thread):
    call_tool(thread)
    row = give_result(thread, text="👩\u200d👧" * 20_000)
    assert body(read(thread, row.pk, offset=1)).startswith("👩\u200d👧")


def test_an_offset_out_of_range_is_told_what_is_in_range(thread):
    row = say(thread, "user", "a few words")
    for offset in (-1, 11, 10**12):
        assert "has 11 characters. Give an offset from 0 to 10." in refusal(thread, row.pk, offset=offset)
    assert body(read(thread, row.pk, offset=10)) == "s"


def test_the_unknown_and_the_unseen_answer_identically(alice, bob):
    thread, foreign = thread_of(alice), thread_of(bob)
    deleted = thread_of(alice)
    kept, gone = exchange(thread)
    rewound = say(thread, "user", "gone")
    unseen = [
        say(foreign, "user").pk,
        say(thread, "event", model_visible=False).pk,
        say(thread, "event", meta={"source": "framework"}).pk,
        say(thread, "event", meta={"source": "kernel/overflow"}).pk,
        say(deleted, "user").pk,
        rewound.pk,
    ]
    deleted.deleted = clock.now()
    deleted.save()
    copying.rewind(thread, gone, acting_user=alice)
    nonsense = [0, -5, 10**12, 2**70, "x", None, True, 1.5, ""]
    answers = {refusal(thread, message_id) for message_id in [*unseen, *nonsense]}
    assert len(answers) == 1
    assert "There is no such message. Give" in answers.pop()
    assert read(thread, kept.pk)


def test_a_rewound_message_with_a_living_copy_is_shown(alice):
    thread = thread_of(alice)
    _first, answer = exchange(thread)
    second, _answer = exchange(thread, "second")
    copying.rewind(thread, answer, acting_user=alice)
    copying.undo_rewind(thread, acting_user=alice)
    assert "second" in read(thread, second.pk)


def test_ones_own_forbidden_thread_answers_with_its_existence_and_level_alone(alice):
    isolated, other = thread_of(alice, scope="isolated"), thread_of(alice)
    row = say(isolated, "user", "a secret")
    answer = refusal(other, row.pk)
    assert isolated.channel in answer
    assert "isolated" in answer
    assert "secret" not in answer
    assert refusal(other, row.pk, Viewer(alice.pk, None, Level())) == answer
    assert "a secret" in read(isolated, row.pk)


def test_another_view_is_told_which_there_is(thread):
    row = say(thread, "user")
    assert 'Use view="audit"' in refusal(thread, row.pk, view="raw" * 100)
    assert read(thread, row.pk, view="audit") == read(thread, row.pk)


def test_the_tool_reads_for_the_thread_that_calls(alice, bob):
    thread, foreign = thread_of(alice), thread_of(bob)
    row, other = say(thread, "user", "a few words"), say(foreign, "user", "not yours")
    tool = get("message_context_read")
    context = ToolContext(thread_id=thread.pk, owner_id=alice.pk, frame_id=1, call_id=1)
    assert "a few words" in tool.run(context, {"message_id": row.pk, "view": "audit", "offset": 0}).text
    with pytest.raises(ToolError, match="There is no such message"):
        tool.run(context, {"message_id": other.pk})
    assert tool.objection({"message_id": 1, "offset": -1})
    assert tool.objection({}) is not None
    assert Message.objects.count() == 2


def test_a_page_of_history_starts_from_a_message_that_it_may_show(alice, bob):
    thread, other, foreign = thread_of(alice), thread_of(alice), thread_of(bob)
    _first, answer = exchange(thread, "first", "answer")
    elsewhere, theirs = say(other, "user", "elsewhere"), say(foreign, "user", "theirs")
    gone, _answer = exchange(thread, "gone", "too")
    hidden = say(thread, "event", "hidden", model_visible=False)
    copying.rewind(thread, answer, acting_user=alice)
    viewer = Viewer.of_thread(thread)
    page = read_page(viewer, channel=thread.channel, before=answer.pk)
    assert "first" in page.text and "answer" not in page.text
    for before in (elsewhere.pk, theirs.pk, gone.pk, hidden.pk, 10**9, 0, -1, 10**30):
        with pytest.raises(HistoryRefused) as refused:
            read_page(viewer, channel=thread.channel, before=before)
        assert str(refused.value) == NO_SUCH_BEFORE.format(before=before)


def test_no_page_of_history_shows_what_the_framework_wrote_into_the_conversation(alice):
    thread = thread_of(alice)
    say(thread, "event", "of the framework", meta={"source": "framework"})
    say(thread, "event", "of the kernel", meta={"source": "kernel/overflow"})
    say(thread, "event", "a result", meta={"source": "task/abc"})
    text = read_page(Viewer.of_thread(thread), channel=thread.channel).text
    assert "a result" in text
    assert "of the framework" not in text and "of the kernel" not in text
