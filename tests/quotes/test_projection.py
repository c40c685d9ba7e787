"""Clients see where a quote leads, and nothing else of it: in every view, event, frame and answer of the API."""

import json

import pytest
from django.urls import URLResolver, get_resolver
from rest_framework.test import APIClient

from agent.models import InboxItem, TurnEvent
from agent.projection import item_view, message_views, queued_views
from chat.snapshot import earlier, later, snapshot
from llm.emulator.client import text
from quotes import ingress
from tests.chat.conftest import server  # noqa: F401  # fixture
from tests.chat.records import tell
from tests.chat.sockets import open_socket
from tests.quotes.records import at, send, take_in
from tests.threads.records import exchange
from threads.lifecycle import create_thread
from threads.models import Message

SECRET = "xylophone-canary"
# Names of what a frozen quote keeps, and what stands in this one: its source is isolated and of a category.
KEPT = ("source_scope", "source_category", "target_scope", "target_category", "confirm_text", "confirmed_at")
FORBIDDEN = (SECRET, *KEPT, "needs_confirm", "text_length", "confidential", "isolated", "not on its island")


@pytest.fixture
def source(alice):
    thread = create_thread(alice, title="Boats", scope="isolated", category="confidential")
    exchange(thread, answer=f"The word is {SECRET}.")
    return thread


@pytest.fixture
def target(alice):
    return create_thread(alice, title="Lakes")


def quote_of(source):
    return at(source, source.messages.get(role="assistant"))


def check(told, source) -> None:
    """`told` names where the quote leads, and holds nothing that it must not."""
    said = told if isinstance(told, str) else json.dumps(told, default=str, ensure_ascii=False)
    assert [word for word in FORBIDDEN if word in said] == []
    assert source.channel in said and "Boats" in said


@pytest.mark.django_db
def test_every_view_of_a_message_and_of_a_waiting_item_carries_the_card_alone(source, target, model):
    card = {**quote_of(source), "title": "Boats"}
    item = send(target, quote_of(source), confirmed=True)
    waiting = item_view(item)
    assert waiting["quote"] == card
    check(waiting, source)
    check(queued_views(target), source)
    check(snapshot(target), source)
    (row,) = take_in(target)
    (view,) = message_views(target)
    assert view["quote"] == card
    assert set(view) & {"meta", "wire"} == set()
    for told in (view, snapshot(target), earlier(target, row.pk + 1), later(target, row.pk - 1)):
        check(told, source)
    # The generic fields of the record stay behind as well: whoever adds a view of them meets this list.
    assert SECRET in json.dumps(row.meta) and SECRET in row.wire


@pytest.mark.django_db
def test_every_event_carries_the_card_alone(source, target, model):
    send(target, quote_of(source), confirmed=True)
    take_in(target)

    tell(target, ("message", {"message": message_views(target)[0]}))
    check(list(TurnEvent.objects.filter(thread=target).values_list("kind", "body")), source)


def addresses(resolver: URLResolver | None = None, before: str = ""):
    for entry in (resolver or get_resolver("chat.urls")).url_patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from addresses(entry, route)
        elif "<slug:channel>" in route:
            yield route


@pytest.mark.django_db
def test_no_address_of_the_conversation_tells_more(alice, source, target, model, client):
    send(target, quote_of(source), confirmed=True)
    (row,) = take_in(target)
    item = send(target, quote_of(source), confirmed=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    found = sorted(addresses())
    assert len(found) > 10
    seen = 0
    for route in found:
        address = "/" + route
        for name, value in {
            "<slug:channel>": target.channel,
            "<int:message>": row.pk,
            "<int:item>": item.pk,
            "<int:ordinal>": 1,
        }.items():
            address = address.replace(name, str(value))
        answer = client.get(address)
        said = b"".join(answer).decode()
        if address.startswith("/c/") or address.endswith("/level/"):
            # The page lists the source itself, at its own level; the other all levels there are. Of the quote: nothing.
            assert SECRET not in said and "not on its island" not in said
            continue
        assert [word for word in FORBIDDEN if word in said] == [], address
        seen += answer.status_code == 200 and "Boats" in said
    assert seen >= 2  # the conversation, and its messages


@pytest.mark.django_db
def test_what_the_api_answers_to_sending_and_taking_back_is_the_card_alone(alice, source, target, model):
    api = APIClient()
    api.force_authenticate(alice)
    asked = ingress.preview(alice, target.channel, quote_of(source))["confirm_text"]
    body = {"text": "Look", "key": "k", "quote": quote_of(source), "confirmed": True, "confirm_text": asked}
    sent = api.post(f"/api/threads/{target.channel}/messages/", body, format="json")
    assert sent.status_code == 202
    assert sent.json()["quote"] == {**quote_of(source), "title": "Boats"}
    check(sent.json(), source)
    check(api.delete(f"/api/threads/{target.channel}/queued/{sent.json()['id']}/").json(), source)


@pytest.mark.django_db
def test_a_preview_shows_the_sentence_and_neither_text_nor_levels(source, target, model):
    seen = ingress.preview(target.owner, target.channel, quote_of(source))
    assert set(seen) == {"quote", "needs_confirm", "confirm_text"}
    assert seen["quote"] == {**quote_of(source), "title": "Boats"}
    assert SECRET not in json.dumps(seen)


@pytest.mark.django_db(transaction=True)
def test_no_frame_of_the_socket_carries_more_than_the_card(server, alice, source, target, emulator):  # noqa: F811
    emulator.answer(text("I see."))
    with open_socket(server, alice) as page:
        frames = [page.open(target.channel)]
        page.send(
            type="send",
            channel=target.channel,
            key="k",
            text="Look at this",
            quote=quote_of(source),
            confirmed=True,
            confirm_text=ingress.preview(alice, target.channel, quote_of(source))["confirm_text"],
        )
        while not any("I see." in json.dumps(frame) for frame in frames):
            frames.append(page.receive())
        page.send(type="earlier", channel=target.channel, before=2**60)
        page.send(type="later", channel=target.channel, since=1)
        page.send(type="open", channel=target.channel, after=None)
        page.send(type="ping")
        while frames[-1]["type"] != "pong":
            frames.append(page.receive())
    assert {"snapshot", "events", "earlier", "later", "sent"} <= {frame["type"] for frame in frames}
    check(frames, source)
    kinds = {event["kind"] for frame in frames for event in frame.get("events", [])}
    assert {"queued", "unqueued", "message"} <= kinds
    assert InboxItem.objects.get(thread=target).quote["text"] == f"The word is {SECRET}."
    assert Message.objects.get(thread=target, role="user").meta["quote"]["needs_confirm"]
