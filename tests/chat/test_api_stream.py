"""A send whose answer comes as server-sent events, over real HTTP: what the socket tells, until the turn ends."""

import http.client
import json
from contextlib import contextmanager

import pytest
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from agent.models import InboxItem
from chat.snapshot import apply, snapshot
from llm.emulator import client as emulated
from tests.chat.records import say_many
from threads.lifecycle import create_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def thread(alice):
    return create_thread(alice, title="Boats")


def events_of(lines):
    """(id, event, data) of each server-sent event, as its lines arrive."""
    fields = {}
    for raw in lines:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields.get("id") and int(fields["id"]), fields["event"], json.loads(fields["data"])
            fields = {}


@contextmanager
def sent(server, user, channel, text, key="k", **more):
    """(status, events as they come) of a send over a connection of its own; `more` goes into its body."""
    token, _ = Token.objects.get_or_create(user=user)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    headers = {
        "Authorization": f"Token {token.key}",
        "Accept": "text/event-stream",
        "Content-Type": "application/json",
    }
    try:
        body = json.dumps({"text": text, "key": key, **more})
        connection.request("POST", f"/api/threads/{channel}/messages/", body, headers)
        response = connection.getresponse()
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield response.status, events_of(response)
    finally:
        connection.close()


def test_an_answer_comes_as_it_grows_and_the_stream_ends_with_the_turn(server, alice, thread, emulator):
    say_many(thread, 3)
    before = snapshot(thread)
    emulator.answer(emulated.text("One two three."), hold="here", pace="10:20")
    with sent(server, alice, thread.channel, "Count") as (status, events):
        assert status == 200
        _number, kind, accepted = next(events)
        assert (kind, accepted["text"]) == ("accepted", "Count")
        told = [next(events) for _ in range(4)]
        assert told[-1][2]["turn"]["state"] == "running", "the answer has not begun, and its turn is told already"
        emulator.wait_for_held()
        emulator.release("here")
        told += events
    *told, (_none, last, end) = told
    assert (last, end) == ("end", {"reason": "done"})
    assert "delta" in {kind for _number, kind, _body in told}
    state = before
    for number, kind, body in told:
        if kind == "message":
            body["message"].pop("html", None)
        state = apply(state, {"number": number, "kind": kind, "body": body})
    assert state == snapshot(thread)
    assert state["messages"][-1]["text"] == "One two three."
    # The same send again is the same send, and has ended already.
    with sent(server, alice, thread.channel, "Count") as (status, events):
        assert [kind for _number, kind, _body in events] == ["accepted", "end"]
    assert InboxItem.objects.count() == 1


def test_a_stream_ends_where_the_turn_asks_and_goes_on_with_the_answer(server, alice, thread, emulator):
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which?", "options": ["Red", "Blue"]}))
    with sent(server, alice, thread.channel, "Ask me") as (_status, events):
        *_told, (_number, kind, end) = events
    assert (kind, end) == ("end", {"reason": "waiting"})
    emulator.answer(emulated.text("Red it is."))
    with sent(server, alice, thread.channel, "Red", key="answer") as (_status, events):
        *told, (_number, _kind, end) = events
    assert end == {"reason": "done"}
    assert [body["message"]["text"] for _n, kind, body in told if kind == "message"][-1] == "Red it is."


def test_refusals_are_events_and_a_stream_ends_with_the_login_or_the_conversation(server, alice, bob, thread, emulator):
    with sent(server, bob, thread.channel, "Mine?") as (status, events):
        assert status == 404
        assert [(kind, data["code"]) for _number, kind, data in events] == [("error", "no-such-thread")]
    with sent(server, alice, thread.channel, " ") as (status, _events):
        assert status == 400
    assert not InboxItem.objects.exists()

    emulator.answer(emulated.text("Never told."), hold="one")
    with sent(server, alice, thread.channel, "Hello") as (_status, events):
        next(events)
        Token.objects.all().delete()
        emulator.wait_for_held()
        emulator.release("one")
        *_told, (_number, kind, end) = events
    assert (kind, end) == ("end", {"reason": "signed-out"})


def test_the_schema_tells_of_the_stream(alice):
    client = APIClient()
    client.force_authenticate(alice)
    schema = client.get("/api/schema/", {"format": "json"}).json()
    answers = schema["paths"]["/api/threads/{channel}/messages/"]["post"]["responses"]
    assert list(answers["200"]["content"]) == ["text/event-stream"]
    assert list(answers["202"]["content"]) == ["application/json"]
