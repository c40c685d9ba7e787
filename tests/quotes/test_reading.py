"""What was quoted is the target conversation's since: whoever may read that reads it, whatever became of the source."""

import pytest

from agent import summarizing
from llm import catalog
from tests.quotes.records import at, send, take_in
from tests.threads.records import exchange
from threads.history import read_page
from threads.lifecycle import create_thread, erase
from threads.reading import message_context_read
from threads.visibility import Viewer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("model")]


@pytest.fixture
def rows(alice):
    """A quoted message and a quoted conversation in one target; the source is erased since."""
    source, target = create_thread(alice, title="Boats"), create_thread(alice, title="Lakes")
    _question, answer = exchange(source, answer="Forty metres.")
    send(target, at(source, answer), "Look at this")
    send(target, at(source), "And at this")
    found = take_in(target)
    erase(source, acting_user=alice)
    return found


def test_opening_a_row_shows_what_it_quoted(rows):
    viewer = Viewer.of_thread(rows[0].thread)
    message, conversation = (message_context_read(viewer, row.pk) for row in rows)
    quote = rows[0].meta["quote"]
    assert (
        f"Look at this\n\n[quoted with it: m:{quote['message_id']} of conversation {quote['channel']}]\nForty metres."
        in message
    )
    assert f"And at this\n\n[quoted with it: the conversation {quote['channel']}, generation" in conversation


def test_the_history_says_that_a_row_quotes(rows):
    page = read_page(Viewer.of_thread(rows[0].thread), channel=rows[0].thread.channel).text
    quote = rows[0].meta["quote"]
    assert (
        f"[quotes m:{quote['message_id']} of conversation {quote['channel']}: "
        f"message_context_read(message_id={rows[0].pk}) shows it]" in page
    )
    assert (
        f"[quotes the conversation {quote['channel']}: message_context_read(message_id={rows[1].pk}) shows it]" in page
    )
    assert "Forty metres." not in page


def test_a_summary_by_pages_is_made_of_the_quotes_too(rows):
    (page,) = summarizing.pages(rows, catalog.get("emulator-main"))
    assert "Look at this\n<framework>\nThe user attached a quote" in page.text
    assert "Forty metres." in page.text
