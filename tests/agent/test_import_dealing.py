"""Imported words beyond what a message or a context takes: whole, and dealt into generations."""

from itertools import pairwise

import pytest
from asgiref.sync import async_to_sync

from agent.models import InboxItem
from llm.catalog import get
from llm.emulator.client import text
from llm.estimates import estimate_tokens
from tests.agent.imported import exchange, line, only_thread, texts
from tests.agent.world import running_world
from threads.history import read_page
from threads.models import Generation
from threads.verification import verify_thread
from threads.visibility import Viewer

pytestmark = pytest.mark.django_db


def generations(thread):
    return list(Generation.objects.filter(thread=thread).order_by("ordinal"))


def texts_of(generation):
    return list(generation.messages.order_by("id").values_list("text", flat=True))


def long_history(count, tokens_each=500):
    """`count` exchanges of about 2 x `tokens_each` tokens."""
    words = "lorem ipsum " * (tokens_each * 5 // 12)
    lines = []
    for number in range(count):
        lines += [{**item, "text": f"{number} {words}"} for item in exchange(number)]
    return lines


def test_an_oversized_text_is_accepted_whole(run, alice):
    words = "Long words. " * 100_000
    run(line(0, words=words), line(1, role="assistant"))
    thread = only_thread(alice)
    assert texts(thread) == [words, "Words 1"]
    assert [texts_of(generation) for generation in generations(thread)] == [[words], ["Words 1"]]


def test_a_history_within_the_budget_is_one_generation(run, alice):
    run(*long_history(60))
    [generation] = generations(only_thread(alice))
    assert generation.opening is None


def test_a_history_larger_than_the_budget_is_dealt_into_generations(run, alice):
    run(*long_history(150))
    thread = only_thread(alice)
    dealt = generations(thread)
    budget = get("emulator-main").context_budget
    assert len(dealt) >= 3
    assert [generation.ordinal for generation in dealt] == list(range(1, len(dealt) + 1))
    for generation in dealt:
        rows = list(generation.messages.order_by("id"))
        assert rows[0].role == "user"
        assert rows[-1].role == "assistant"
        assert sum(estimate_tokens(row.wire) for row in rows) <= budget / 2
    assert sum(estimate_tokens(row.wire) for row in dealt[-1].messages.all()) > budget / 2 - 10_000
    assert [generation.end_reason for generation in dealt] == ["import"] * (len(dealt) - 1) + [""]
    for before, after in pairwise(dealt):
        assert before.ended == after.started == after.messages.order_by("id")[0].created
    for between in dealt[1:-1]:
        assert "message_history_read" in between.opening
        assert thread.channel in between.opening
    assert dealt[-1].opening is None
    assert texts(thread) == [item["text"] for item in long_history(150)]


def test_the_earlier_generations_are_read_page_by_page(run, alice):
    run(*long_history(150))
    thread = only_thread(alice)
    page = read_page(Viewer.of_thread(thread), channel=thread.channel)
    oldest = page
    while oldest.before is not None:
        oldest = read_page(Viewer.of_thread(thread), channel=thread.channel, before=oldest.before)
    assert "149 lorem" in page.text
    assert "0 lorem" in oldest.text


def test_a_file_that_grew_beyond_the_budget_deals_only_what_is_new(run, alice):
    run(*long_history(60))
    run(*long_history(130))
    thread = only_thread(alice)
    first, *later = generations(thread)
    assert len(texts_of(first)) == 120
    assert first.end_reason == "import"
    assert len(later) >= 2
    assert texts(thread) == [item["text"] for item in long_history(130)]


@pytest.mark.django_db(transaction=True)
def test_an_imported_conversation_is_continued_by_a_turn(run, emulator, alice):
    run(*long_history(150), line(301, words="The meeting is on Tuesday.", name="Caroline"))
    thread = only_thread(alice)
    emulator.answer(text("On Tuesday."))

    async def scenario():
        async with running_world(emulator) as world:
            return await world.ask(thread, "When is the meeting?")

    rows = async_to_sync(scenario)()
    assert [row.text for row in rows[-2:]] == ["When is the meeting?", "On Tuesday."]
    [body] = emulator.bodies()
    sent = [block["text"] for message in body["messages"] for block in message["content"]]
    assert "message_history_read" in sent[0]
    assert sent[-2:] == ["Caroline: The meeting is on Tuesday.", "When is the meeting?"]
    assert emulator.last_request()["usage"]["input_tokens"] >= 0
    assert not InboxItem.objects.filter(state="waiting").exists()
    assert verify_thread(thread).proved == 1
