"""Old words are found exactly, in bounded windows, and nothing that must not be seen is."""

import pytest

from tests.threads.records import call_tool, exchange, give_result, say, thread_of
from threads.literal_search import LITERAL_MAX_CHARS, literal_search
from threads.visibility import Viewer


def search(thread, query, viewer=None, **options):
    return literal_search(viewer or Viewer.of_thread(thread), thread.channel, query, **options)


def ids(result):
    return [hit.message_id for hit in result.hits]


@pytest.fixture
def thread(alice):
    return thread_of(alice)


def test_text_and_arguments_of_tool_calls_are_read(thread):
    call = call_tool(
        thread, arguments={"command": "ssh -i ~/.ssh/id_vault root@gateway", "options": ["C:\\Users\\ann"]}
    )
    result = give_result(thread, text="connected to gateway")
    assert ids(search(thread, "~/.ssh/id_vault")) == [call.pk]
    assert search(thread, "C:\\users\\ANN").hits[0].field == "look.options"
    assert ids(search(thread, "connected to")) == [result.pk]


def test_windows_are_bounded_and_what_is_left_out_is_counted(thread):
    for number in range(120):
        call_tool(thread, call_id=f"toolu_{number}")
        give_result(thread, call_id=f"toolu_{number}", text="x" * 30_000 + " needle " + "x" * 30_000)
    result = search(thread, "needle")
    assert result.total == 120 and result.exact
    assert f"{result.left_out} more hits are not shown" in result.text
    assert len(result.text) <= LITERAL_MAX_CHARS
    assert "x" * 801 not in result.text
    assert all(len(hit.window.text) <= 800 for hit in result.hits)
    assert len(result.hits) > 10
