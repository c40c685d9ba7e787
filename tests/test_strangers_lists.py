"""Lists, searches, exports and forms whose address names nothing: they tell a stranger nothing of another's either, and
take no name of hers.

What each of them asks for comes from the schema of the REST API and from the forms on the pages themselves, so that a
new one is walked by being there. A field that the walk cannot fill fails it, so that whoever adds one says what it
stands for.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from django.utils.http import urlencode
from drf_spectacular.generators import SchemaGenerator

from agent.models import ImportJob
from llm.models import ModelCall
from tests.memory.facts import fact_row
from tests.test_strangers import (
    CANARY,
    Secrets,
    comparable,
    filled,
    quote_of,
    routes,
    secrets,  # noqa: F401  # fixture
    state_of_alice,
    told_by,
)
from tests.threads.records import exchange, thread_of

# What a field stands for that may name something of somebody's.
NAMED = {"channel": "channel", "target": "channel", "before": "message", "username": "username"}
FREE: dict[str, Any] = {
    "q": "words",
    "search": "words",
    "sort": "",
    "shown": "",
    "status": "active",
    "limit": 5,
    "title": "stranger's title",
    "scope": "open",
    "category": "",
    "model": "",
    "language": "en",
    "time_zone": "UTC",
    "next": "/",
    "file": "stranger's words",
    "password": "not it",
    "old_password": "not it",
    "new_password1": "not it",
    "new_password2": "not it",
}


class Forms(HTMLParser):
    """The forms of a page: method, address, names of their fields."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str, list[str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = dict(attributes)
        if tag == "form":
            self.found.append(((said.get("method") or "get").lower(), said.get("action") or "", []))
        elif tag in ("input", "select", "textarea", "button") and said.get("name") and self.found:
            self.found[-1][2].append(str(said["name"]))


def of_the_schema() -> Iterator[tuple[str, str, str]]:
    """Method, address and name of each field that an operation of the REST API declares."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    for address, operations in schema["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                yield "get", address, parameter["name"]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            declared = schema["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], body)
            for name in declared.get("properties", ()):
                yield method, address, name


def value_of(name: str, values: dict[str, Any]) -> Any:
    if name == "quote":
        return quote_of(values)
    assert name in NAMED or name in FREE, f"tell the walk what {name} stands for"
    return values[NAMED[name]] if name in NAMED else FREE[name]


@pytest.mark.parametrize("who", ["another user", "nobody"])
def test_no_address_without_a_name_in_it_tells_or_changes_anything_of_anothers(
    client: Client,
    bob,
    secrets: Secrets,  # noqa: F811  # a fixture's name
    who,
):
    own = thread_of(bob, title="Bobs own")
    said, _answer = exchange(own, "words of Bobs own", "and an answer")
    fact_row(bob, said, "Bob likes words")
    ImportJob.objects.create(owner=bob, file_name="Bobs", stored_as="2" * 32)
    secrets.known["username"], secrets.unknown["username"] = secrets.thread.owner.username, "nobody-known"
    before = everything_of_alice()

    def answer(method: str, address: str, data: Any = None, **options: Any) -> tuple[int, str, str]:
        if who != "nobody" and not client.cookies.get(settings.SESSION_COOKIE_NAME):
            client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
        told = told_by(getattr(client, method)(address, data, **options))
        if not client.session.keys():
            client.cookies.clear()  # this address signs out
        assert told[0] != 500, (method, address, data)
        assert CANARY not in told[1] + told[2], (method, address, data)
        return told

    def compare(method: str, address: str, names: list[str], encode: Any, **options: Any) -> None:
        """What names hers is answered as what names nothing; where it names nothing, with nothing of hers."""
        known, unknown = (
            answer(method, address, encode({name: value_of(name, values) for name in names}), **options)
            for values in (secrets.known, secrets.unknown)
        )
        assert known[0] == unknown[0], (method, address, names)
        if any(str(value) in known[1] + known[2] for value in secrets.known.values()):
            assert comparable(secrets, known) == comparable(secrets, unknown), (method, address, names)

    fields: dict[tuple[str, str], set[str]] = defaultdict(set)
    for method, address, name in of_the_schema():
        fields[method, address].add(name)
    without_name = [filled(route, {}) for route in routes() if "<" not in route and not route.startswith("admin/")]
    assert {"/", "/api/threads/", "/memory/export/", "/search/"} <= set(without_name)
    for address in without_name:
        shown = answer("get", address)
        assert not any(str(value) in shown[1] + shown[2] for value in secrets.known.values()), address
        for method, action, names in Forms(shown[2]).found:
            fields[method, urlsplit(action).path or address].update(set(names) - {"csrfmiddlewaretoken"})
    for address in without_name:
        for name in sorted(fields["get", address]):
            compare("get", address, [name], lambda asked: asked)
        names = sorted(
            {name for (method, at), some in fields.items() if at == address and method != "get" for name in some}
        )
        compare("post", address, names, json.dumps, content_type="application/json")
        compare("post", address, names, urlencode_whole, content_type="application/x-www-form-urlencoded")
    if who != "nobody":
        assert fields["get", "/search/"] and fields["post", "/api/threads/"] and fields["post", "/account/"]
    assert everything_of_alice() == before


def urlencode_whole(fields: dict[str, Any]) -> str:
    """Objects as JSON, as forms would hold them."""
    return urlencode({name: json.dumps(value) if isinstance(value, dict) else value for name, value in fields.items()})


def everything_of_alice() -> str:
    calls = list(ModelCall.objects.filter(owner__username="alice").values())
    return state_of_alice() + json.dumps(calls, default=str)
