"""Clients see where a quote leads, and nothing else of it: in every shape, view, event and frame."""

import json
from collections.abc import Iterator

import pytest
from rest_framework.serializers import BaseSerializer

from agent import conversations as whole
from agent import quoting, revising
from agent.models import InboxItem, TurnEvent
from agent.projection import item_view, message_views, queued_views
from chat import api_quote_shapes, api_shapes, replay
from chat.frames import SHAPES
from chat.snapshot import REDUCERS, earlier, later, snapshot
from llm.emulator.client import text, tool_use
from quotes import ingress
from tests.chat.conftest import server  # noqa: F401  # fixture
from tests.chat.records import tell
from tests.chat.sockets import open_socket
from tests.chat.test_api_stream import sent
from tests.quotes.canary import KEPT, TEXT, card_of, check, leaked, quote_of, secret_source
from tests.quotes.records import send, take_in
from threads.lifecycle import create_thread
from threads.models import Message


@pytest.fixture
def source(alice):
    return secret_source(alice)


@pytest.fixture
def target(alice):
    return create_thread(alice, title="Lakes")


def asked_of(source, target) -> str:
    return ingress.preview(target.owner, target.channel, quote_of(source))["confirm_text"]


# Shapes and views


def serializers(of: type = BaseSerializer) -> Iterator[type]:
    for one in of.__subclasses__():
        yield one
        yield from serializers(one)


def test_no_shape_of_the_api_has_room_for_more():
    ours = [one for one in serializers() if one.__module__.startswith("chat.")]
    assert api_shapes.MessageShape in ours and api_shapes.ItemShape in ours
    # What asks to confirm, and what says that it was confirmed.
    asking = {api_quote_shapes.PreviewShape: {"needs_confirm", "confirm_text"}}
    asking[api_shapes.QuotingMessage] = {"confirm_text"}
    for shape in ours:
        fields = shape().fields
        assert set(fields) & set(KEPT) == asking.get(shape, set()), shape
        if "quote" in fields:
            assert isinstance(fields["quote"], api_quote_shapes.QuoteShape | api_quote_shapes.Pointer), shape
    assert set(api_quote_shapes.QuoteShape().fields) == set(quoting.CARD)


@pytest.mark.django_db
def test_every_view_of_a_message_and_of_a_waiting_item_carries_the_card_alone(source, target, model):
    item = send(target, quote_of(source), confirmed=True)
    # Whatever a quote keeps is looked for here: who adds to it says so in the canary.
    assert set(item.quote) == {*quoting.CARD, "id", "generation", "text", *KEPT}
    assert leaked(item.quote) == leaked([TEXT, item.quote["source_category"], *KEPT])
    waiting = item_view(item)
    assert waiting["quote"] == card_of(source)
    check(waiting, source)
    check(queued_views(target), source)
    check(snapshot(target), source)
    (row,) = take_in(target)
    (view,) = message_views(target)
    assert view["quote"] == card_of(source)
    assert set(view) & {"meta", "wire"} == set()
    for told in (view, snapshot(target), earlier(target, row.pk + 1), later(target, row.pk - 1)):
        check(told, source)
    # The generic fields of the record stay behind as well: whoever adds a view of them meets this list.
    assert TEXT in json.dumps(row.meta) and TEXT in row.wire


@pytest.mark.django_db
def test_every_event_carries_the_card_alone(source, target, model):
    send(target, quote_of(source), confirmed=True)
    take_in(target)
    tell(target, ("message", {"message": message_views(target)[0]}))
    check(list(TurnEvent.objects.filter(thread=target).values_list("kind", "body")), source)


@pytest.mark.django_db
def test_a_preview_shows_the_sentence_and_neither_text_nor_levels(source, target, model):
    seen = ingress.preview(target.owner, target.channel, quote_of(source))
    assert set(seen) == {"quote", "needs_confirm", "confirm_text"}
    assert seen["quote"] == card_of(source)
    assert TEXT not in json.dumps(seen)


# What is told while a turn runs


def turn_with_everything(emulator) -> None:
    """An answer that breaks off and begins anew, calls a tool, and ends."""
    emulator.fault("drop", after_deltas=1)
    emulator.answer(text("So far"))
    emulator.answer(tool_use("message_history_read", {"channel": "nosuchthread"}))
    emulator.answer(text("So I see."))


@pytest.mark.django_db(transaction=True)
def test_no_event_of_a_streamed_send_carries_more_than_the_card(
    server,  # noqa: F811
    alice,
    source,
    target,
    emulator,
    monkeypatch,
):
    asked = asked_of(source, target)
    with sent(server, alice, target.channel, "Look", quote=quote_of(source)) as (status, events):
        [(_number, kind, refusal)] = events
    # What is refused for want of a confirmation says what there is to confirm, and no more.
    assert (status, kind, refusal) == (409, "error", {"code": "confirm-needed", "reason": asked})
    words = {"quote": quote_of(source), "confirmed": True, "confirm_text": asked}
    turn_with_everything(emulator)
    with sent(server, alice, target.channel, "Look", **words) as (status, events):
        told = list(events)
    kinds = {kind for _number, kind, _data in told}
    assert kinds == {"accepted", "end", *REDUCERS} - {"queued", "anew", "gone"} | (kinds & {"queued"})
    check(told, source)
    check([data for _number, kind, data in told if kind == "accepted"], source)
    check([data for _number, kind, data in told if kind == "message"], source)
    # Where single events would not say it, the whole conversation is told.
    monkeypatch.setattr(replay, "REPLAYED_MAX_EVENTS", 0)
    emulator.answer(text("I see that too."))
    with sent(server, alice, target.channel, "And now", "other", **words) as (status, events):
        told = list(events)
    assert "snapshot" in {kind for _number, kind, _data in told}
    check(told, source)


@pytest.mark.django_db(transaction=True)
def test_no_frame_of_the_socket_carries_more_than_the_card(server, alice, source, target, emulator):  # noqa: F811
    frames, asked_for = [], set()

    def hear(until):
        while not frames or not until(frames[-1]):
            frames.append(json.loads(page.connection.recv(timeout=20)))

    def say(kind, **fields):
        asked_for.add(kind)
        page.send(type=kind, **fields)

    def answered(words):
        hear(lambda frame: words in json.dumps(frame))
        # The turn is over, so that the conversation may be changed.
        hear(lambda frame: any(event["kind"] == "state" and not event["body"]["turn"] for event in events_of(frame)))

    def events_of(frame):
        return frame.get("events", [])

    asked = asked_of(source, target)
    words = {"channel": target.channel, "text": "Look at this", "quote": quote_of(source)}
    with open_socket(server, alice) as page:
        say("open", channel=target.channel, after=None)
        turn_with_everything(emulator)
        say("send", **words, key="k", confirmed=True, confirm_text=asked)
        answered("So I see.")
        # Other words in place of them, by another page: this one reads all of it anew.
        emulator.answer(text("I see that too."))
        row = Message.objects.get(thread=target, role="user")
        revising.edit(alice, target.channel, row.pk, "Look again", client_key="edit")
        answered("I see that too.")
        say("send", **words, key="l")
        say("stop", channel=target.channel, frame=7)
        say("answer", channel=target.channel, call=7, text="Forty")
        say("earlier", channel=target.channel, before=2**60)
        say("later", channel=target.channel, since=1)
        say("open", channel=target.channel, after=None)
        say("ping")
        hear(lambda frame: frame["type"] == "pong")
        whole.delete(alice, target.channel)
        hear(lambda frame: frame["type"] == "gone")
        say("close", channel=target.channel)
    assert asked_for == set(SHAPES)
    assert {"threads", "snapshot", "events", "earlier", "later", "sent", "chat_rejected", "error", "gone"} <= {
        frame["type"] for frame in frames
    }
    (rejected,) = (frame for frame in frames if frame["type"] == "chat_rejected")
    assert rejected.pop("reason") == asked
    for frame in frames:
        if frame["type"] == "threads":  # the source's own row has its own level
            frame["threads"] = [row for row in frame["threads"] if row["channel"] != source.channel]
    check(frames, source)
    # Every kind of event there is came about, and each was looked at.
    stored = TurnEvent.objects.filter(thread=target).values_list("kind", "body")
    assert {kind for kind, _body in stored} == set(REDUCERS)
    check(list(stored), source)
    assert {item.quote["text"] for item in InboxItem.objects.filter(thread=target)} == {f"The word is {TEXT}."}
    for row in Message.objects.filter(thread=target, role="user"):
        assert row.meta["quote"]["needs_confirm"]
