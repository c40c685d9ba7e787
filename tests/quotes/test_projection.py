"""Clients see where a quote leads, and nothing else of it: in every view, event, frame and answer of the API."""

import json

import pytest
from django.urls import URLResolver, get_resolver
from rest_framework.test import APIClient

from agent import revising
from agent.models import InboxItem, TurnEvent
from agent.projection import item_view, message_views, queued_views
from chat.snapshot import earlier, later, snapshot
from llm.emulator.client import text
from quotes import ingress
from tests.chat.conftest import server  # noqa: F401  # fixture
from tests.chat.records import tell
from tests.chat.sockets import open_socket
from tests.quotes.records import at, send, take_in
from tests.threads.records import exchange, say
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
            yield route, entry.callback


@pytest.mark.django_db
def test_no_address_of_the_conversation_tells_more(alice, source, target, model, client):
    send(target, quote_of(source), confirmed=True)
    (row,) = take_in(target)
    item = send(target, quote_of(source), confirmed=True)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    found = sorted(route for route, _view in addresses())
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


def changes() -> set[tuple[str, str]]:
    """Every way to change something of a conversation: (method, address after the conversation's)."""
    return {
        (method, route.removeprefix("api/threads/<slug:channel>/"))
        for route, view in addresses()
        if route.startswith("api/")
        for method in ("post", "put", "patch", "delete")
        if hasattr(view.view_class, method)
    }


@pytest.mark.django_db
def test_no_answer_to_a_change_tells_more(alice, source, target, model):
    api = APIClient()
    api.force_authenticate(alice)
    asked = ingress.preview(alice, target.channel, quote_of(source))["confirm_text"]
    walked = set()

    def ask(method, rest, place=None, status=200, **body):
        kind = rest.replace("<>", "<int:item>" if rest.startswith("queued") else "<int:message>")
        walked.add((method, kind))
        address = f"/api/threads/{target.channel}/{rest.replace('<>', str(place))}"
        answer = getattr(api, method)(address, body, format="json")
        assert answer.status_code == status, (method, rest, answer.content)
        said = answer.content.decode()
        # What is refused for want of a confirmation says what there is to confirm, as the preview does.
        said = said.replace(json.dumps(asked, ensure_ascii=False), "")
        assert [word for word in FORBIDDEN if word in said] == [], (method, rest)
        return answer.json() if answer.content else None

    words = {"text": "Look", "quote": quote_of(source)}
    refused = ask("post", "messages/", status=409, key="a", **words)
    assert refused["reason"] == asked
    sent = ask("post", "messages/", status=202, key="b", confirmed=True, confirm_text=asked, **words)
    check(sent, source)
    check(ask("delete", "queued/<>/", sent["id"]), source)
    ask("post", "messages/", status=202, key="c", confirmed=True, confirm_text=asked, **words)
    (row,) = take_in(target)
    check(ask("post", "messages/<>/edit/", row.pk, 202, text="Other words", key="d"), source)
    take_in(target)
    check(ask("post", "retry/", status=202, key="e"), source)
    (row,) = take_in(target)
    say(target, "assistant", "I see.")
    ask("post", "messages/<>/fork/", row.pk, 201)
    ask("post", "messages/<>/rewind/", row.pk)
    ask("post", "undo-rewind/")
    ask("post", "stop/", status=409, frame=7)
    ask("post", "answer/", status=409, call=7, text="Forty")
    ask("put", "model/", model="")
    ask("put", "level/", category="work")
    ask("post", "renew/", status=202)
    ask("patch", "", title="Seas")
    ask("post", "archive/")
    ask("post", "unarchive/")
    ask("delete", "")
    ask("post", "undelete/")
    assert walked == changes()


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
    emulator.answer(text("So I see."))
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
        # Other words in place of them, by another page: this one reads all of it anew.
        while not any(
            event["kind"] == "state" and event["body"]["turn"] is None
            for frame in frames
            for event in frame.get("events", [])
        ):
            frames.append(page.receive())
        row = Message.objects.get(thread=target, role="user")
        revising.edit(alice, target.channel, row.pk, "Look again", client_key="edit")
        while not any("So I see." in json.dumps(frame) for frame in frames):
            frames.append(page.receive())
        page.send(type="send", channel=target.channel, key="l", text="Look", quote=quote_of(source))
        page.send(type="stop", channel=target.channel, frame=7)
        page.send(type="answer", channel=target.channel, call=7, text="Forty")
        page.send(type="earlier", channel=target.channel, before=2**60)
        page.send(type="later", channel=target.channel, since=1)
        page.send(type="open", channel=target.channel, after=None)
        page.send(type="ping")
        while frames[-1]["type"] != "pong":
            frames.append(page.receive())
        page.send(type="close", channel=target.channel)
    assert {"snapshot", "events", "earlier", "later", "sent", "chat_rejected", "error"} <= {
        frame["type"] for frame in frames
    }
    (rejected,) = (frame for frame in frames if frame["type"] == "chat_rejected")
    assert rejected.pop("reason") == ingress.preview(alice, target.channel, quote_of(source))["confirm_text"]
    check(frames, source)
    kinds = {event["kind"] for frame in frames for event in frame.get("events", [])}
    assert {"queued", "unqueued", "message"} <= kinds
    assert {item.quote["text"] for item in InboxItem.objects.filter(thread=target)} == {f"The word is {SECRET}."}
    for row in Message.objects.filter(thread=target, role="user"):
        assert row.meta["quote"]["needs_confirm"]
