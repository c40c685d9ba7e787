"""What a pointer leads to, and what cannot be quoted."""

import json

import pytest
from django.db import transaction

from agent import conversations as whole
from agent.refusals import Refused
from agent.safe_point import append_note, append_notice
from quotes import ingress
from quotes.pointers import parse
from tests.quotes.records import at, send, stored, take_in
from tests.threads.records import call_tool, exchange, give_result, live, say
from threads import copying
from threads.lifecycle import archive, create_thread
from threads.models import Message, Thread
from threads.transcript import live_generation, lock_thread

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("model")]


@pytest.fixture
def source(alice):
    return create_thread(alice, title="Boats")


@pytest.fixture
def target(alice):
    return create_thread(alice, title="Lakes")


def refusal(target: Thread, quote) -> str:
    """The code with which previewing and sending refuse alike, and store nothing."""
    before = stored(target)
    with pytest.raises(Refused) as previewed:
        ingress.preview(target.owner, target.channel, quote)
    with pytest.raises(Refused) as sent:
        send(target, quote, confirmed=True)
    assert sent.value.code == previewed.value.code
    assert sent.value.sentence == previewed.value.sentence
    assert stored(target) == before
    return sent.value.code


@pytest.mark.parametrize(
    "value",
    [
        False,
        "",
        "message",
        [],
        {},
        {"kind": "message"},
        {"kind": "message", "channel": "aaaabbbbcccc"},
        {"kind": "message", "channel": "aaaabbbbcccc", "message_id": "12"},
        {"kind": "message", "channel": "aaaabbbbcccc", "message_id": True},
        {"kind": "message", "channel": "aaaabbbbcccc", "message_id": 12.0},
        {"kind": "message", "channel": "aaaabbbbcccc", "message_id": 12, "text": "mine"},
        {"kind": "message", "channel": 7, "message_id": 12},
        {"kind": "channel", "channel": "aaaabbbbcccc", "message_id": 12},
        {"kind": "channel", "channel": "aaaabbbbcccc", "title": "mine"},
        {"kind": "thread", "channel": "aaaabbbbcccc"},
        {"kind": ["message"], "channel": "aaaabbbbcccc", "message_id": 12},
    ],
)
def test_a_pointer_that_is_none_is_refused(target, value):
    assert refusal(target, value) == "bad-quote"


@pytest.mark.parametrize("message_id", [0, -1, 2**63, 10**40])
def test_an_id_that_no_message_can_have_is_unknown(source, target, message_id):
    assert refusal(target, {"kind": "message", "channel": source.channel, "message_id": message_id}) == "no-such-source"


@pytest.mark.parametrize("channel", ["", "zzzzyyyyxxxx", "../admin", "a\x00b", "\ud800", "A" * 500])
def test_an_unknown_conversation_is_refused(target, channel):
    assert refusal(target, {"kind": "channel", "channel": channel}) == "no-such-source"


def test_a_real_message_under_a_wrong_channel_is_refused(alice, source, target):
    hidden = say(create_thread(alice, scope="isolated"), "user", "secret")
    assert refusal(target, at(source, hidden)) == "no-such-source"
    assert refusal(target, at(target, hidden)) == "no-such-source"


def test_another_owners_conversation_is_refused_like_an_unknown_one(bob, target):
    theirs = create_thread(bob, title="Bobs")
    message = say(theirs, "user", "bob's words")
    assert refusal(target, at(theirs)) == "no-such-source"
    assert refusal(target, at(theirs, message)) == "no-such-source"


def test_a_target_that_is_another_owners_is_refused_like_an_unknown_one(alice, bob, source):
    theirs = create_thread(bob, title="Bobs")
    sentences = []
    for channel in (theirs.channel, "zzzzyyyyxxxx"):
        with pytest.raises(Refused) as refused:
            ingress.send(alice, channel, "words", client_key="k", quote=at(source), confirmed=True)
        assert refused.value.code == "no-such-thread"
        sentences.append(refused.value.sentence)
    assert sentences[0] == sentences[1]
    assert stored(theirs) == [("InboxItem", 0), ("Message", 0), ("TurnEvent", 0)]


def test_main_and_tasks_cannot_be_quoted(alice, source, target):
    main = Thread.objects.get(owner=alice, kind="main")
    task = create_thread(alice, kind="task", parent=source)
    for thread in (main, task):
        message = say(thread, "assistant", "result")
        assert refusal(target, at(thread)) == "not-quotable"
        assert refusal(target, at(thread, message)) == "not-quotable"


def test_framework_events_cannot_be_quoted(source, target):
    with transaction.atomic():
        locked = lock_thread(source.pk)
        generation = live_generation(locked)
        note = append_note(locked, generation, "a note for the model")
        append_notice(locked, generation, "a notice for the person", "stopped")
    notice = Message.objects.get(meta__notice="stopped")
    task_result = say(source, "event", "Task finished", meta={"source": "task/abc"})
    for row in (note, notice, task_result):
        assert refusal(target, at(source, row)) == "not-quotable"


def test_rows_hidden_from_models_cannot_be_quoted(source, target):
    assert refusal(target, at(source, say(source, "user", "hidden", model_visible=False))) == "not-quotable"


def test_an_answer_that_has_no_words_yet_cannot_be_quoted(source, target):
    with transaction.atomic():
        locked = lock_thread(source.pk)
        from threads.transcript import append

        streaming = append(locked, live_generation(locked), "assistant", meta={"state": "streaming"})
    assert refusal(target, at(source, streaming)) == "not-quotable"
    assert refusal(target, at(source, call_tool(source))) == "not-quotable"


def test_superseded_rows_cannot_be_quoted_until_the_rewind_is_undone(alice, source, target):
    question, answer = exchange(source)
    copying.rewind(source, question, acting_user=alice)
    assert refusal(target, at(source, answer)) == "not-quotable"
    assert ingress.preview(alice, target.channel, at(source, question))
    copying.undo_rewind(source, acting_user=alice)
    assert send(target, at(source, answer)).quote["text"] == answer.text


def test_what_is_out_of_the_context_can_still_be_quoted(alice, source, target):
    cold, _answer = exchange(source, "an old question")
    Message.objects.filter(pk=cold.pk).update(left_at_cut=1, left_because="cold")
    assert send(target, at(source, cold)).quote["text"] == "an old question"
    archive(source, acting_user=alice)
    assert send(target, at(source)).quote["title"] == "Boats"


def test_a_tools_result_can_be_quoted(source, target):
    call_tool(source)
    assert send(target, at(source, give_result(source, text="found it"))).quote["text"] == "found it"


def test_a_deleted_conversation_is_refused_like_an_unknown_one(alice, source, target):
    _question, answer = exchange(source)
    whole.delete(alice, source.channel)
    assert refusal(target, at(source)) == "no-such-source"
    assert refusal(target, at(source, answer)) == "no-such-source"


def test_an_archived_target_takes_no_quote(alice, source, target):
    archive(target, acting_user=alice)
    assert refusal(target, at(source)) == "not-active"


def test_everything_but_the_pointer_is_the_servers(alice, source, target):
    _question, answer = exchange(source, answer="Forty metres.")
    first, second = send(target, at(source, answer)).quote, send(target, at(source)).quote
    ids = {first.pop("id"), second.pop("id")}
    assert len(ids) == 2 and all(len(one) == 32 for one in ids)
    assert first == {
        "kind": "message",
        "channel": source.channel,
        "message_id": answer.pk,
        "title": "Boats",
        "generation": answer.generation_id,
        "text": "Forty metres.",
        "text_length": 13,
        "source_scope": "open",
        "source_category": "",
        "target_scope": "open",
        "target_category": "",
        "needs_confirm": False,
        "confirm_text": "",
        "confirmed_at": None,
    }
    assert second == {
        "kind": "channel",
        "channel": source.channel,
        "title": "Boats",
        "generation": live(source).pk,
        "source_scope": "open",
        "source_category": "",
        "target_scope": "open",
        "target_category": "",
        "needs_confirm": False,
        "confirm_text": "",
        "confirmed_at": None,
    }


@pytest.mark.parametrize("sign", ["x", "字"])
def test_32_000_characters_are_kept_whole_and_32_001_are_cut_with_the_length_noted(alice, source, target, sign):
    whole_text = sign * 32_000
    short = send(target, at(source, say(source, "user", whole_text))).quote
    assert (short["text"], short["text_length"]) == (whole_text, 32_000)
    longer = send(target, at(source, say(source, "user", whole_text + sign))).quote
    assert (longer["text"], longer["text_length"]) == (whole_text, 32_001)
    first, second = take_in(target)
    assert "verbatim" in first.wire and "32,001" not in first.wire
    assert "The first 32,000 of the quoted message's 32,001 characters, verbatim:" in second.wire


@pytest.mark.parametrize(
    ("sign", "room", "kept"),
    [
        ("👩‍👩‍👧‍👦", 7, 32_000),  # the whole family has room
        ("👩‍👩‍👧‍👦", 6, 31_994),
        ("e\u0301", 1, 31_999),
        ("🇫🇮", 1, 31_999),
        ("\r\n", 1, 31_999),
    ],
)
def test_a_cut_never_splits_a_sign(source, target, sign, room, kept):
    text = "x" * (32_000 - room) + sign + "y" * 10
    quote = send(target, at(source, say(source, "user", text))).quote
    assert (quote["text"], quote["text_length"]) == (text[:kept], len(text))
    (row,) = take_in(target)
    assert f"The first {kept:,} of the quoted message's {len(text):,} characters, verbatim:" in row.wire


def test_a_message_that_is_one_endless_sign_is_cut_all_the_same(source, target):
    text = "e" + "\u0301" * 32_000
    assert send(target, at(source, say(source, "user", text))).quote["text"] == text[:32_000]


@pytest.mark.parametrize("messages", [1, 10_000])
def test_a_conversation_is_three_lines_whatever_its_size(source, target, messages):
    said = {"thread": source, "owner": source.owner, "generation": live(source), "role": "user", "wire": "[]"}
    Message.objects.bulk_create(Message(**said, text=f"line {n}") for n in range(messages))
    send(target, at(source))
    (row,) = take_in(target)
    note, words = json.loads(row.wire)
    assert words["text"] == "Look at this"
    lines = note["text"].splitlines()
    assert (lines[0], lines[-1]) == ("<framework>", "</framework>")
    assert len(lines[1:-1]) == 3
    assert len(note["text"]) < 500


def test_reading_a_pointer_asks_nothing_of_the_database(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert parse({"kind": "message", "channel": "x", "message_id": 5}).as_json() == {
            "kind": "message",
            "channel": "x",
            "message_id": 5,
        }
