"""What sending a quote stores, what it refuses whole, and what a repeated send is."""

import json
import sys

import pytest
from django.db import DatabaseError, transaction

from agent import revising
from agent.models import InboxItem, TaskFrame, ToolCall
from agent.refusals import Refused
from llm import catalog
from quotes import ingress
from tests.quotes.records import at, send, stored, take_in
from tests.threads.records import exchange, say
from threads.lifecycle import create_thread, erase, narrow
from threads.models import Message, Thread

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("model")]


@pytest.fixture
def source(alice):
    return create_thread(alice, title="Boats")


@pytest.fixture
def target(alice):
    return create_thread(alice, title="Lakes")


@pytest.fixture
def answer(source):
    return exchange(source, answer="Forty metres.")[1]


def code_of(send_it) -> str:
    with pytest.raises(Refused) as refused:
        send_it()
    return refused.value.code


def test_the_users_row_keeps_the_users_words_and_the_quote_beside_them(source, target, answer):
    item = send(target, at(source, answer), "Is that so?", client_key="k")
    (row,) = take_in(target)
    assert (row.role, row.text, row.search_text) == ("user", "Is that so?", "is that so?")
    assert row.meta == {"key": "k", "quote": item.quote}
    note, words = json.loads(row.wire)
    assert "<quote>\nForty metres.\n</quote>" in note["text"]
    assert words == {"type": "text", "text": "Is that so?"}


def test_a_row_without_a_quote_is_what_it_was_before_there_were_quotes(target):
    send(target, None, "Hello", client_key="k")
    (row,) = take_in(target)
    assert row.wire == '[{"type":"text","text":"Hello"}]'
    assert row.meta == {"key": "k"}


def test_the_quote_of_a_row_never_changes(source, target, answer):
    send(target, at(source, answer))
    (row,) = take_in(target)
    for changed in ({**row.meta, "quote": {**row.meta["quote"], "needs_confirm": True}}, {"key": "k"}):
        with pytest.raises(DatabaseError, match="frozen"), transaction.atomic():
            Message.objects.filter(pk=row.pk).update(meta=changed)


def test_a_source_that_became_isolated_after_the_preview_is_refused(alice, source, target, answer):
    assert not ingress.preview(alice, target.channel, at(source, answer))["needs_confirm"]
    narrow(source, acting_user=alice, scope="isolated")
    before = stored(target)
    for quote in (at(source, answer), at(source)):
        assert code_of(lambda quote=quote: send(target, quote)) == "confirm-needed"
    assert stored(target) == before


def test_a_confirmation_holds_for_the_boundaries_that_the_person_saw(alice, source, target, answer):
    narrow(source, acting_user=alice, category="work")
    seen = ingress.preview(alice, target.channel, at(source, answer))["confirm_text"]
    narrow(source, acting_user=alice, scope="isolated")
    before = stored(target)
    for sentence in (seen, "", None, True, [seen]):
        with pytest.raises(Refused) as refused:
            send(target, at(source, answer), confirmed=True, confirm_text=sentence)
        assert refused.value.code == "confirm-needed"
        assert "isolated" in refused.value.sentence and "work" in refused.value.sentence
        assert stored(target) == before
    # What is refused is said in the sentence that can be confirmed; it, and the levels, are what is kept.
    frozen = send(target, at(source, answer), confirmed=True, confirm_text=refused.value.sentence).quote
    assert frozen["confirm_text"] == refused.value.sentence != seen
    assert (frozen["source_scope"], frozen["source_category"]) == ("isolated", "work")


def test_a_confirmation_for_one_conversation_is_none_for_another(alice, source, target, answer):
    narrow(source, acting_user=alice, scope="isolated")
    seen = ingress.preview(alice, create_thread(alice, title="Rivers").channel, at(source, answer))["confirm_text"]
    assert code_of(lambda: send(target, at(source, answer), confirmed=True, confirm_text=seen)) == "confirm-needed"


@pytest.mark.parametrize("level", [{}, {"scope": "isolated"}, {"category": "work"}])
def test_a_conversation_that_does_not_exist_yet_is_asked_for_as_it_will_be(alice, source, answer, level):
    narrow(source, acting_user=alice, scope="isolated", category="work")
    threads = Thread.objects.count()
    seen = ingress.preview(alice, "", at(source, answer), **level)
    assert Thread.objects.count() == threads
    begun = create_thread(alice, **level)
    assert ingress.preview(alice, begun.channel, at(source, answer)) == seen
    assert ("category" in seen["confirm_text"]) is ("category" not in level)
    assert send(begun, at(source, answer), confirmed=True, confirm_text=seen["confirm_text"]).quote


def test_a_message_that_vanished_after_the_preview_is_refused(alice, source, target, answer):
    ingress.preview(alice, target.channel, at(source, answer))
    Message.objects.filter(pk=answer.pk).delete()
    before = stored(target)
    assert code_of(lambda: send(target, at(source, answer))) == "no-such-source"
    erase(source, acting_user=alice)
    assert code_of(lambda: send(target, at(source))) == "no-such-source"
    assert stored(target) == before


def test_a_repeated_send_is_the_same_send_whatever_became_of_the_source(alice, source, target, answer):
    quote = at(source, answer)
    first = send(target, quote, "words", client_key="k")
    before = stored(target)
    erase(source, acting_user=alice)
    assert send(target, quote, "words", client_key="k").pk == first.pk
    assert stored(target) == before


def test_a_key_belongs_to_its_words_and_its_quote(source, target, answer):
    send(target, at(source, answer), "words", client_key="k")
    assert code_of(lambda: send(target, at(source, answer), "others", client_key="k")) == "key-reused"
    assert code_of(lambda: send(target, at(source), "words", client_key="k")) == "key-reused"
    assert code_of(lambda: send(target, None, "words", client_key="k")) == "key-reused"
    assert InboxItem.objects.get(thread=target).quote["message_id"] == answer.pk


def test_a_quote_without_words_is_refused(source, target, answer):
    assert code_of(lambda: send(target, at(source, answer), "  ")) == "empty"


def test_words_and_quote_together_stay_within_what_one_message_may_take(source, target, monkeypatch):
    quoted = say(source, "user", "字" * 32_000)
    model = catalog.get("emulator-main")
    words = "word " * int(model.context_budget * 0.3)
    send(target, None, words)
    assert code_of(lambda: send(target, at(source, quoted), words)) == "too-long"


def test_a_quote_is_no_answer_to_a_question(alice, source, target, answer):
    asked = say(target, "assistant", "Which?")
    frame = TaskFrame.objects.create(thread=target, owner=alice, state="waiting")
    ToolCall.objects.create(
        message=asked, thread=target, owner=alice, frame=frame, call_id="c", tool="ask_user_question", status="waiting"
    )
    Thread.objects.filter(pk=target.pk).update(state="waiting")
    before = stored(target)
    assert code_of(lambda: send(target, at(source, answer))) == "question-open"
    assert stored(target) == before


def test_editing_and_retrying_keep_the_quote(alice, source, target, answer):
    item = send(target, at(source, answer))
    (row,) = take_in(target)
    edited = revising.edit(alice, target.channel, row.pk, "Other words", client_key="edit")
    assert (edited.text, edited.quote) == ("Other words", item.quote)
    take_in(target)
    assert revising.retry(alice, target.channel, client_key="retry").quote == item.quote


def test_words_that_are_taken_back_come_with_their_card(alice, source, target, answer):
    item = send(target, at(source, answer))
    revising.withdraw(alice, target.channel, item.pk)
    (event,) = target.events.filter(kind="unqueued")
    assert event.body["withdrawn"]["quote"] == {**at(source, answer), "title": "Boats"}


def test_sending_without_a_quote_never_comes_near_this_app(target, monkeypatch):
    def fail(*_args):
        raise AssertionError("not asked for")

    monkeypatch.setattr(ingress, "parse", fail)
    monkeypatch.setattr(ingress, "_accept", fail)
    assert send(target, None).quote is None
    assert "quotes.ingress" in sys.modules
