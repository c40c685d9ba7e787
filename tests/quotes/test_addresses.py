"""Every address that a person's client has: of a quote it tells where that leads, and nothing else.

The walks start from the URL resolver: what is added there is covered by being there. A parameter that they cannot fill
and a change to the API that they do not make fail them.
"""

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.db import transaction
from django.urls import URLResolver, get_resolver
from rest_framework.test import APIClient

from agent import revising
from agent.models import ImportJob
from quotes import ingress
from tests.memory.facts import fact_row
from tests.quotes.canary import TEXT, check, leaked, quote_of, secret_source
from tests.quotes.records import send, take_in
from tests.threads.records import say
from threads.lifecycle import create_thread, erase

BACKEND = "django.contrib.auth.backends.ModelBackend"
WORD = "zlorpification"  # of the user's own, by which the quoting row is found
# The console is for staff, whose permissions and notes of reading are its own tests'.
NO_CLIENTS = ("admin/", "health/")
# The description of the API names the fields with which a quote is asked about and confirmed.
NAMED = {"api/schema/": ("needs_confirm", "confirm_text")}
# A person's own archive holds all that they were handed.
ARCHIVES = {"account/export/"}


def addresses(resolver: URLResolver | None = None, before: str = "") -> Iterator[tuple[str, type | None]]:
    """(route, the view's class if it is of the API) of everything that is no console."""
    for entry in (resolver or get_resolver()).url_patterns:
        route = before + str(entry.pattern)
        if route.startswith(NO_CLIENTS):
            continue
        if isinstance(entry, URLResolver):
            yield from addresses(entry, route)
        else:
            yield route, getattr(entry.callback, "view_class", None) if route.startswith("api/") else None


class Place:
    """A conversation that quotes in a rewound row, in one that stands and in one that waits; what else may be asked for
    by an id; and nothing left of the source but what these keep."""

    def __init__(self, alice) -> None:
        source, self.target = secret_source(alice), create_thread(alice, title="Lakes")
        self.pointer = quote_of(source)
        send(self.target, self.pointer, f"What of this {WORD}?", confirmed=True)
        (row,) = take_in(self.target)
        say(self.target, "assistant", "I see.", model="emulator-main")
        revising.rewind(alice, self.target.channel, row.pk)
        item = send(self.target, self.pointer, "And now?", confirmed=True)
        self.names = {
            "channel": self.target.channel,
            "message": row.pk,
            "item": item.pk,
            "ordinal": 1,
            "fact": fact_row(alice, row, f"Likes {WORD}.").pk,
            "job": ImportJob.objects.create(owner=alice, file_name="export.zip", stored_as="0" * 32).pk,
        }
        erase(source, acting_user=alice)
        self.source = source

    def address(self, route: str) -> str:
        return "/" + re.sub(r"<\w+:(\w+)>", lambda part: str(self.names[part[1]]), route)


def body_of(answer) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Django's own, about reading an asynchronous stream from here
        return b"".join(answer).decode()


@pytest.fixture
def signed_in(client, alice, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    client.force_login(alice, backend=BACKEND)
    return client


@pytest.mark.django_db(transaction=True)  # searching works on connections of its own
def test_no_address_tells_more(alice, model, signed_in):
    place, said = Place(alice), {}
    for route, _view in sorted(addresses(), key=lambda pair: pair[0]):
        answer = signed_in.get(place.address(route), {"q": WORD})
        told = body_of(answer)
        assert answer.status_code in (200, 302, 405), (route, answer.status_code)
        assert leaked(told, *NAMED.get(route, ())) == [], route
        if answer.status_code == 200:
            said[route] = told
    # They did tell of the row that quotes, where there is something to tell.
    cards = {route for route, told in said.items() if place.source.channel in told}
    assert cards == {"api/threads/<slug:channel>/", "api/threads/<slug:channel>/messages/"}
    for route in cards:
        check(said[route], place.source)
    assert {route for route, told in said.items() if f"What of this {WORD}?" in told} >= cards | {
        *("search/", "api/search/", "memory/", "memory/<int:fact>/", "api/facts/", "api/facts/<int:fact>/"),
        "api/threads/<slug:channel>/messages/<int:message>/",
    }
    # What is quoted is no word of the conversation's own: it is not found there.
    found = signed_in.get("/api/search/", {"q": TEXT, "channel": place.target.channel})
    assert found.status_code == 200 and leaked(body_of(found)) == []


@pytest.mark.django_db
def test_no_page_tells_more_when_something_is_changed(alice, model, signed_in):
    class Undone(Exception):
        pass

    place, taken = Place(alice), set()
    form = {"text": "Likes it.", "tone": "remark", "language": "en", "q": WORD, "name": "alice"}
    for route, view in sorted(addresses(), key=lambda pair: pair[0]):
        if view is not None or route in ARCHIVES:
            continue
        with suppress(Undone), transaction.atomic():
            answer = signed_in.post(place.address(route), form, follow=True)
            assert leaked(body_of(answer)) == [], route
            if answer.status_code == 200:
                taken.add(route)
            raise Undone
        signed_in.force_login(alice, backend=BACKEND)  # one of them signs out
    assert taken >= {"memory/export/", *(f"memory/<int:fact>/{name}/" for name in ("correct", "set-aside", "forget"))}


def changes() -> set[tuple[str, str]]:
    """Every way to change something by the API: (method, address)."""
    return {
        (method, route)
        for route, view in addresses()
        if view is not None
        for method in ("post", "put", "patch", "delete")
        if hasattr(view, method)
    }


@pytest.mark.django_db
def test_no_answer_to_a_change_tells_more(alice, model):
    source, target = secret_source(alice), create_thread(alice, title="Lakes")
    api = APIClient()
    api.force_authenticate(alice)
    asked = ingress.preview(alice, target.channel, quote_of(source))["confirm_text"]
    walked = set()

    def call(method, route, place=None, status=200, unless=(), **body):
        walked.add((method, route))
        names = {"channel": target.channel, "message": place, "item": place, "fact": place}
        address = "/" + re.sub(r"<\w+:(\w+)>", lambda part: str(names[part[1]]), route)
        answer = getattr(api, method)(address, body, format="json")
        assert answer.status_code == status, (method, route, answer.content)
        # What is refused for want of a confirmation says what there is to confirm, as the preview does.
        said = answer.content.decode().replace(json.dumps(asked, ensure_ascii=False), "")
        assert leaked(said, *unless) == [], (method, route)
        return answer.json() if answer.content else None

    def ask(method, rest, *args, **more):
        return call(method, f"api/threads/<slug:channel>/{rest}", *args, **more)

    quoting = {"quote": quote_of(source)}
    seen = call(
        "post", "api/quotes/preview/", unless=("needs_confirm", "confirm_text"), target=target.channel, **quoting
    )
    assert seen["confirm_text"] == asked
    words = {"text": "Look", **quoting}
    refused = ask("post", "messages/", status=409, key="a", **words)
    assert refused["reason"] == asked
    words |= {"confirmed": True, "confirm_text": asked}
    taken_back = ask("post", "messages/", status=202, key="b", **words)
    check(taken_back, source)
    check(ask("delete", "queued/<int:item>/", taken_back["id"]), source)
    ask("post", "messages/", status=202, key="c", **words)
    (row,) = take_in(target)
    check(ask("post", "messages/<int:message>/edit/", row.pk, 202, text="Other words", key="d"), source)
    take_in(target)
    check(ask("post", "retry/", status=202, key="e"), source)
    (row,) = take_in(target)
    say(target, "assistant", "I see.")
    fact = fact_row(alice, row, "Likes it.").pk
    new = call("post", "api/facts/<int:fact>/correct/", fact, text="Likes that.")
    call("post", "api/facts/<int:fact>/set-aside/", new["id"])
    call("post", "api/facts/<int:fact>/bring-back/", new["id"])
    call("post", "api/facts/<int:fact>/forget/", new["id"])
    ask("post", "messages/<int:message>/fork/", row.pk, 201)
    ask("post", "messages/<int:message>/rewind/", row.pk)
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
    call("post", "api/threads/", status=201, title="Rivers")
    assert walked == changes()
