"""The socket of a page, over a real connection: everything once, in order, and every refusal a sentence."""

import json
import socket

import pytest
from channels.layers import get_channel_layer
from django.contrib.sessions.models import Session
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from agent.models import InboxItem, TurnEvent
from chat import consumers
from chat.conversations import rename_conversation
from chat.frames import FRAME_MAX_BYTES, SHAPES
from llm.emulator import client as emulated
from tests.browser import signed_in_session
from tests.chat.records import say, say_many, tell
from tests.chat.sockets import Socket, open_socket
from tests.conftest import PASSWORD
from threads.lifecycle import archive, create_thread
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def thread(alice):
    return create_thread(alice, title="Boats")


@pytest.fixture
def page(server, alice):
    with open_socket(server, alice) as socket:
        yield socket


def test_opening_sends_a_snapshot_and_then_each_event_once(page, thread):
    say(thread, "before")
    first = page.open(thread.channel)
    assert first["type"] == "snapshot"
    assert [row["text"] for row in first["snapshot"]["messages"]] == ["before"]
    for number in range(5):
        say(thread, f"word {number}")
    seen = page.events(5)
    assert [event["body"]["message"]["text"] for event in seen] == [f"word {number}" for number in range(5)]
    assert [event["number"] for event in seen] == [first["snapshot"]["event"] + step for step in range(1, 6)]
    assert page.silent()


def test_a_client_that_comes_back_gets_what_it_missed(server, alice, thread):
    with open_socket(server, alice) as before:
        last = before.open(thread.channel)["snapshot"]["event"]
    say(thread, "one")
    say(thread, "字" * 2_000)  # too large for a ring: read from its row
    with open_socket(server, alice) as after:
        frame = after.open(thread.channel, after=last)
        assert frame["type"] == "events"
        assert [event["number"] for event in frame["events"]] == [last + 1, last + 2]


def test_a_client_that_missed_nothing_is_told_so(page, thread):
    say(thread, "one")
    last = page.open(thread.channel)["snapshot"]["event"]
    assert page.open(thread.channel, after=last) == {"type": "events", "channel": thread.channel, "events": []}


@pytest.mark.parametrize("after", [0, 10**6])
def test_a_client_whose_events_are_not_kept_gets_a_snapshot(page, thread, after):
    for number in range(3):
        say(thread, f"word {number}")
    TurnEvent.objects.filter(thread=thread, number__lt=3).delete()
    assert page.open(thread.channel, after=after)["type"] == "snapshot"


def test_events_too_large_for_a_ring_arrive_between_small_ones_in_order(page, thread):
    page.open(thread.channel)
    texts = ["small", "字" * 3_000, "small again", "x" * 9_000, "end"]
    for text in texts:
        say(thread, text)
    assert [event["body"]["message"]["text"] for event in page.events(len(texts))] == texts
    assert page.silent()


def test_ended_answers_carry_html_and_nothing_else_does(page, thread):
    page.open(thread.channel)
    say(thread, "**mine**")
    say(thread, "**bold** <script>x</script>", role=Message.Role.ASSISTANT)
    mine, answer = (event["body"]["message"] for event in page.events(2))
    assert "html" not in mine
    assert answer["html"] == "<p><strong>bold</strong> &lt;script&gt;x&lt;/script&gt;</p>\n"
    again = page.open(thread.channel)["snapshot"]["messages"]
    assert "html" not in again[0]
    assert again[1]["html"] == answer["html"]


def test_a_closed_conversation_sends_nothing_more(page, thread):
    page.open(thread.channel)
    page.send(type="close", channel=thread.channel)
    assert page.is_usable()
    say(thread, "unheard")
    assert page.silent()


def test_earlier_messages_come_by_the_page(page, thread):
    rows = say_many(thread, 230)
    first = page.open(thread.channel)["snapshot"]
    assert [row["id"] for row in first["messages"]] == [row.pk for row in rows[130:]]
    assert first["has_earlier"]
    second = page.ask(type="earlier", channel=thread.channel, before=first["messages"][0]["id"])
    assert ([row["id"] for row in second["messages"]], second["has_earlier"]) == (
        [row.pk for row in rows[30:130]],
        True,
    )
    third = page.ask(type="earlier", channel=thread.channel, before=second["messages"][0]["id"])
    assert ([row["id"] for row in third["messages"]], third["has_earlier"]) == ([row.pk for row in rows[:30]], False)


def test_a_send_is_confirmed_after_its_item_and_answered(page, thread, emulator):
    emulator.answer(emulated.text("Aye."))
    page.open(thread.channel)
    page.send(type="send", channel=thread.channel, key="k1", text="Ahoy")
    frames: list[dict] = []
    while not frames or frames[-1]["type"] != "sent":
        frames.append(page.receive())
    assert frames.pop() == {"type": "sent", "channel": thread.channel, "key": "k1"}
    events = [event for frame in frames for event in frame["events"]]
    assert "queued" in [event["kind"] for event in events]
    while "Aye." not in said(events):
        events += page.receive("events")["events"]
    assert said(events) == ["Ahoy", "Aye."]


def said(events):
    """The texts of the messages that are complete, in the order in which they became so."""
    messages = [event["body"]["message"] for event in events if event["kind"] == "message"]
    return [message["text"] for message in messages if message["state"] == "complete"]


def test_sending_again_with_the_same_key_is_the_same_send(page, thread):
    for _ in range(2):
        page.send(type="send", channel=thread.channel, key="k1", text="Ahoy")
        assert page.receive("sent")["key"] == "k1"
    assert InboxItem.objects.filter(thread=thread).count() == 1


@pytest.mark.parametrize(
    ("text", "code"), [("", "empty"), (" \n ", "empty"), ("\u200b\u200d\ufeff", "empty"), ("x" * 201, "too-long")]
)
def test_words_that_are_refused_go_back_with_their_key(page, thread, settings, text, code):
    settings.MESSAGE_MAX_CHARS = 200
    frame = page.ask(type="send", channel=thread.channel, key="k1", text=text)
    assert (frame["type"], frame["key"], frame["code"], frame["channel"]) == (
        "chat_rejected",
        "k1",
        code,
        thread.channel,
    )
    assert frame["reason"]
    assert not InboxItem.objects.exists()
    assert page.is_usable()


def test_an_archived_conversation_can_be_read_and_takes_no_words(page, thread, alice):
    archive(thread, acting_user=alice)
    assert page.open(thread.channel)["snapshot"]["thread"]["status"] == "archived"
    assert page.ask(type="send", channel=thread.channel, key="k", text="Ahoy")["code"] == "not-active"


MALFORMED = [
    "",
    "no json",
    "[]",
    "null",
    '"text"',
    "{}",
    '{"type": 7}',
    '{"type": []}',
    '{"type": "dance"}',
    '{"type": "open"}',
    '{"type": "open", "channel": 7}',
    '{"type": "open", "channel": "x", "after": "1"}',
    '{"type": "open", "channel": "x", "after": -1}',
    '{"type": "open", "channel": "x", "after": true}',
    '{"type": "open", "channel": "x", "after": 9223372036854775808}',
    '{"type": "open", "channel": "x", "after": 1e999}',
    '{"type": "send", "channel": "x", "key": "k"}',
    '{"type": "send", "channel": "x", "key": "", "text": "t"}',
    '{"type": "send", "channel": "x", "key": "\\ud800", "text": "t"}',
    '{"type": "send", "channel": "x", "key": "a b", "text": "t"}',
    '{"type": "send", "channel": "x\\ud800", "key": "k", "text": "t"}',
    '{"type": "open", "channel": "\\udfff"}',
    '{"type": "send", "channel": "x", "key": "k", "text": {"a": 1}}',
    '{"type": "stop", "channel": "x", "frame": null}',
    '{"type": "answer", "channel": "x", "call": 1.5, "text": "t"}',
    "[" * 100_000,
    '{"type": "send", "channel": "x", "key": "k", "text": "' + "x" * FRAME_MAX_BYTES + '"}',
    b"\x00\x01",
]


def test_malformed_frames_are_answered_with_an_error_and_change_nothing(page):
    for raw in MALFORMED:
        page.send_raw(raw)
        frame = page.receive()
        assert frame["type"] == "error", raw[:60]
        assert frame["code"] in ("malformed", "unknown-type", "too-large"), raw[:60]
        assert frame["reason"]
        assert page.is_usable()


def test_a_refused_frame_is_told_by_its_conversation_type_and_key(page):
    text = json.dumps({"type": "send", "channel": "x", "key": "k1", "text": "y" * FRAME_MAX_BYTES})
    page.send_raw(text)
    told = page.receive()
    assert (told["type"], told["code"], told["channel"]) == ("error", "too-large", "x")
    assert (told["about"], told["key"]) == ("send", "k1")


@pytest.mark.parametrize("kind", ["send", "answer"])
def test_the_longest_words_fit_into_a_frame_however_they_are_escaped(page, thread, settings, kind):
    longest = "\U0001f30a" * settings.MESSAGE_MAX_CHARS  # twelve bytes each, as many clients write them
    fields = {"send": {"key": "k"}, "answer": {"call": 1}}[kind]
    page.send_raw(json.dumps({"type": kind, "channel": thread.channel, "text": longest, **fields}))
    told = page.receive()
    # They are judged as words, by what a model's context holds, and not as a frame.
    assert told["code"] == {"send": "too-long", "answer": "not-open"}[kind], told


FRAMES: dict[str, dict] = {
    "open": {"after": None},
    "send": {"key": "k", "text": "Ahoy"},
    "stop": {"frame": 1},
    "answer": {"call": 1, "text": "yes"},
    "earlier": {"before": 5},
    "later": {"since": 5},
}


def test_an_unknown_conversation_is_said_to_be_none(page):
    for kind, fields in FRAMES.items():
        frame = page.ask(type=kind, channel="nosuchthing", **fields)
        assert (frame["code"], frame["channel"]) == ("no-such-thread", "nosuchthing")
        assert page.is_usable()


def test_every_frame_that_asks_for_something_is_tried_here():
    assert set(FRAMES) | {"close", "ping"} == set(SHAPES)


def test_an_expired_login_refuses_everything_and_stores_nothing_and_the_socket_stays(server, alice, thread):
    for kind, fields in FRAMES.items():
        with open_socket(server, alice) as page:
            page.open(thread.channel)
            Session.objects.all().delete()
            assert page.ask(type=kind, channel=thread.channel, **fields)["code"] == "signed-out"
            assert page.receive()["type"] == "signed_out"
            say(thread, "not for this page any more")
            assert page.silent()
            assert page.ask(type=kind, channel=thread.channel, **fields)["code"] == "signed-out"
            assert page.is_usable()
    assert not InboxItem.objects.exists()


def test_a_login_that_ends_silently_is_noticed_by_the_timer_without_any_frame(server, alice, thread, monkeypatch):
    monkeypatch.setattr(consumers, "SESSION_CHECK_SECONDS", 0.05)
    with open_socket(server, alice) as page:
        page.open(thread.channel)
        Session.objects.all().delete()
        assert page.receive()["type"] == "signed_out"


@pytest.mark.parametrize("how", ["password", "account"])
def test_another_password_or_a_closed_account_ends_sockets_at_once(server, alice, client, thread, how):
    # The timer would find it in half a minute, which is longer than a test listens.
    with open_socket(server, alice) as page:
        page.open(thread.channel)
        if how == "account":
            alice.is_active = False
            alice.save()
        else:
            client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
            new = "another horse battery"
            fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
            assert client.post("/account/password/", fields).status_code == 302
        assert page.receive()["type"] == "signed_out"


def test_signing_out_in_another_tab_is_said_at_once(server, alice, client):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    other_login = open_socket(server, alice)
    with Socket(server, client.session.session_key) as page, other_login:
        page.receive("threads")
        other_login.receive("threads")
        client.post("/logout/")
        assert page.receive()["type"] == "signed_out"
        assert other_login.is_usable()


def test_someone_who_is_not_signed_in_is_told_so(server):
    with open_socket(server) as page:
        assert page.receive()["type"] == "signed_out"
        assert page.ask(type="open", channel="x", after=None)["code"] == "signed-out"


def test_a_page_of_another_site_cannot_open_a_socket(server, alice):
    from websockets.sync.client import connect

    cookie = f"sessionid={signed_in_session(alice).session_key}"
    for origin in (Origin("http://evil.example"), None):
        with (
            pytest.raises(InvalidStatus),
            connect(
                server.url.replace("http", "ws") + "/ws/chat/", origin=origin, additional_headers={"Cookie": cookie}
            ),
        ):
            pass


def test_a_conversation_deleted_in_another_tab_is_gone_and_the_socket_stays(page, thread):
    page.open(thread.channel)
    Thread.objects.get(pk=thread.pk).delete()
    frame = page.receive()
    assert (frame["type"], frame["channel"]) == ("gone", thread.channel)
    assert frame["reason"]
    again = page.ask(type="send", channel=thread.channel, key="k", text="Ahoy")
    assert (again["type"], again["code"]) == ("chat_rejected", "no-such-thread")
    assert page.is_usable()


def test_the_list_comes_at_the_start_and_whenever_it_changes(thread, page, alice):
    assert [row["title"] for row in page.receive("threads")["threads"]] == ["", "Boats"]
    rename_conversation(alice, thread.channel, "Ships")
    assert page.receive("threads")["threads"][1]["title"] == "Ships"


def test_no_more_conversations_are_open_at_once_than_the_limit(page, alice, monkeypatch):
    monkeypatch.setattr(consumers, "OPEN_MAX_CHANNELS", 2)
    channels = [create_thread(alice).channel for _ in range(3)]
    assert page.open(channels[0])["type"] == page.open(channels[1])["type"] == "snapshot"
    assert page.open(channels[2])["code"] == "too-many-open"
    assert page.open(channels[0])["type"] == "snapshot"


def test_errors_are_in_the_users_language(server, alice):
    alice.language = "zh-hans"
    alice.save()
    with open_socket(server, alice) as page:
        frame = page.ask(type="open", channel="nosuchthing", after=None)
        assert frame["reason"] == "没有这个对话。它可能已被删除。"


def test_a_client_that_does_not_read_is_closed_instead_of_holding_the_server(server, alice, thread, monkeypatch):
    monkeypatch.setattr(consumers, "SEND_TIMEOUT_SECONDS", 0.3)
    layer = get_channel_layer()
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    small.connect(("127.0.0.1", server.port))
    with open_socket(server, alice, sock=small, compression=None, max_queue=1, close_timeout=0.1) as page:
        page.open(thread.channel)
        assert layer.groups
        for number in range(60):
            # Never received: the buffers on the way fill up, and then the server waits.
            tell(thread, ("unqueued", {"item": number, "filling": "x" * 1_000_000}))
            if not layer.groups:
                break
        assert not layer.groups


def test_the_frames_are_json_of_bounded_size(page, thread):
    say(thread, "x" * 10_000)
    assert len(json.dumps(page.open(thread.channel))) < 50_000
