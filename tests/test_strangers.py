"""Nobody reads, writes, stops or learns of another user's conversation, by any page, endpoint, frame or tool.

The walk starts from the URL resolver, the table of frames and the registry of tools: what is added there is covered by
being there. A parameter that the walk cannot fill fails it, so that whoever adds one says what it stands for.
"""

import itertools
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.contenttypes.models import ContentType
from django.urls import URLResolver, get_resolver

from accounts.models import User
from agent import registry
from agent.models import ImportJob, InboxItem, Level, TaskFrame, ToolCall
from agent.registry import ToolContext, WaitForUser
from chat.consumers import ChatConsumer
from chat.frames import SHAPES
from chat.routing import websocket_application
from llm.wire import canonical
from maxclaw.database_threads import in_database
from memory.models import Fact
from tests.agent.conftest import emulator, emulator_process  # noqa: F401  # fixtures
from tests.chat.conftest import server  # noqa: F401  # fixture
from tests.chat.records import say
from tests.chat.sockets import open_socket
from tests.conftest import PASSWORD
from tests.maxclaw.console_records import SECRET, fill
from tests.memory.facts import fact_row
from threads.history import NOT_FOUND
from threads.lifecycle import create_thread
from threads.models import Generation, Message, Thread
from threads.reading import NO_SUCH_MESSAGE
from threads.transcript import text_block

CANARY = "xylophone-canary"
KNOWN_CHANNEL = "aaaabbbbcccc"
UNKNOWN_CHANNEL = "zzzzyyyyxxxx"
UNKNOWN_ID = 987_654_321


@dataclass
class Secrets:
    """What is alice's, and what is nobody's, under the same names."""

    known: dict[str, Any]
    unknown: dict[str, Any]
    thread: Thread

    def masked(self, text: str) -> str:
        """The text with names of either kind taken out, so that two answers can be compared."""
        for value in [*self.known.values(), *self.unknown.values()]:
            text = text.replace(str(value), "·")
        return text


@pytest.fixture
def secrets(transactional_db) -> Secrets:
    """A conversation of alice's with a message, a turn that waits, an open question and a queued item."""
    # Ids far apart from anybody else's, so that one can be told from the other in an answer.
    alice = User.objects.create_user("alice", password=PASSWORD, pk=500_008)
    thread = Thread.objects.create(pk=500_001, owner=alice, title=f"title {CANARY}", channel=KNOWN_CHANNEL)
    generation = Generation.objects.create(pk=500_002, thread=thread, owner=alice, ordinal=1)
    message = Message.objects.create(
        pk=500_006,
        thread=thread,
        owner=alice,
        generation=generation,
        role=Message.Role.USER,
        text=f"words {CANARY}",
        search_text=CANARY,
        wire=canonical([text_block(CANARY)]),
    )
    answer = Message.objects.create(
        pk=500_007, thread=thread, owner=alice, generation=generation, role=Message.Role.ASSISTANT
    )
    frame = TaskFrame.objects.create(pk=500_003, thread=thread, owner=alice, state=TaskFrame.State.WAITING)
    call = ToolCall.objects.create(
        pk=500_004,
        message=answer,
        thread=thread,
        owner=alice,
        frame=frame,
        call_id="call",
        tool="ask_user_question",
        arguments={"question": CANARY},
        status=ToolCall.Status.WAITING,
    )
    fact_row(alice, message, f"remembered {CANARY}", pk=500_010)
    ImportJob.objects.create(pk=500_009, owner=alice, file_name=CANARY, stored_as="1" * 32)
    InboxItem.objects.create(pk=500_005, thread=thread, owner=alice, level=Level.IDLE, text=CANARY, client_key="alices")
    known = {
        "channel": thread.channel,
        "message": message.pk,
        "generation": 500_002,
        "frame": frame.pk,
        "call": call.pk,
        "item": 500_005,
        "job": 500_009,
        "fact": 500_010,
        "thread": thread.pk,
        "user": alice.pk,
    }
    unknown = {name: UNKNOWN_CHANNEL if name == "channel" else UNKNOWN_ID for name in known}
    return Secrets(known, unknown, thread)


def state_of_alice() -> str:
    """Every row of alice's that a stranger could have changed, as text."""
    rows: list[Any] = []
    for model in (Thread, Generation, Message, TaskFrame, ToolCall, InboxItem, ImportJob, Fact):
        rows += [model.__name__, *model.objects.filter(owner__username="alice").order_by("pk").values()]
    rows.append(User.objects.filter(username="alice").values("is_active", "email", "language", "password").get())
    return json.dumps(rows, default=str, sort_keys=True)


# Pages and endpoints

METHODS = ("get", "post", "put", "patch", "delete")
# What a parameter of a URL stands for. The rows of the console's pages are those of the model behind each.
PARAMETERS = {
    "channel": "channel",
    "message_id": "message",
    "message": "message",
    "frame": "frame",
    "call": "call",
    "item": "item",
    "job": "job",
    "fact": "fact",
    "generation": "generation",
    "user_id": "user",
    "id": "row",
    "object_id": "row",
    "content_type_id": "content_type",
}
CONSOLE_ROW = re.compile(r"admin/(\w+)/(\w+)/<")
# Not of anybody: names of apps, parts of the schema, the admin's catch-all.
FREE_PARAMETERS = {"app_label": "threads", "url": "nothing", "format": ".json", "section": "x", "ordinal": "1"}
# What a body may ask for, all at once: serializers take what they know.
BODY_NAMES = {"frame": "frame", "call": "call", "message": "message", "item": "item", "before": "message"}


def all_routes(resolver: URLResolver | None = None, before: str = "") -> Iterator[str]:
    for entry in (resolver or get_resolver()).url_patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from all_routes(entry, route)
        else:
            yield route


def filled(route: str, values: dict[str, Any]) -> str:
    """The address for one set of names. Fails for a parameter that this walk was not told about."""
    parts = []
    for part in route.replace("<", "\x00<").replace(">", ">\x00").split("\x00"):
        if not part.startswith("<"):
            parts.append(part.lstrip("^").rstrip("$").replace("\\Z", ""))
            continue
        name = part.strip("<>").split(":")[-1]
        assert name in PARAMETERS or name in FREE_PARAMETERS, f"{route}: tell the walk what {name} stands for"
        parts.append(str(values[PARAMETERS[name]] if name in PARAMETERS else FREE_PARAMETERS[name]))
    return "/" + "".join(parts).replace("(?P", "")


def names_more_than_a_channel(route: str) -> bool:
    """Whether an address names a conversation and something in it."""
    names = {part.split(":")[-1] for part in re.findall(r"<([^>]+)>", route)} & PARAMETERS.keys()
    return "channel" in names and len(names) > 1


def values_for(route: str, secrets: Secrets) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the walk fills a route with: what there is, and what there is not.

    A page of the console gets a row that its own model has, alice's where rows have owners; what `admin/r/` leads to
    is a message.
    """
    of_message = {"content_type": ContentType.objects.get_for_model(Message).pk}
    row = secrets.known["message"]
    if found := CONSOLE_ROW.match(route):
        model = apps.get_model(*found.groups())
        rows = admin.site._registry[model].get_queryset(None).order_by("-pk")
        if model is User:
            rows = rows.filter(pk=secrets.known["user"])
        elif any(field.name == "owner" for field in model._meta.fields):
            rows = rows.filter(owner=secrets.known["user"])
        row = quote(str(rows.values_list("pk", flat=True)[0]))
    return {**secrets.known, **of_message, "row": row}, {**secrets.unknown, **of_message, "row": UNKNOWN_ID}


def quote_of(values: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "message", "channel": values["channel"], "message_id": values["message"]}


def routes() -> list[str]:
    found = sorted(set(all_routes()))
    assert any(names_more_than_a_channel(route) for route in found)
    return found


def ask(client, method: str, address: str, values: dict[str, Any]) -> tuple[int, str, str]:
    body = {name: values[of] for name, of in BODY_NAMES.items()} | {
        "text": "stranger's words",
        "key": "key",
        "title": "stranger's title",
        "name": "stranger",
        "quote": quote_of(values),
        "target": values["channel"],
        "confirmed": True,
        "confirm_text": "stranger's words",
    }
    send = getattr(client, method)
    asked = {"before": values["message"], "q": "words", "channel": values["channel"]}
    data = asked if method == "get" else json.dumps(body)
    answer = send(address, data) if method == "get" else send(address, data, content_type="application/json")
    return told_by(answer)


def told_by(answer) -> tuple[int, str, str]:
    """Status, where it leads, and all that it says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Django's own, about reading an asynchronous stream from here
        content = b"".join(answer)
    return answer.status_code, answer.headers.get("Location", ""), content.decode(errors="replace")


@pytest.mark.parametrize("who", ["another user", "staff without permissions", "nobody"])
def test_no_address_tells_or_changes_anything_of_anothers(client, bob, charlie, secrets, who):
    fill(secrets.thread.owner, charlie)
    own = create_thread(bob, title="Bobs own")
    if who == "staff without permissions":
        bob.is_staff = True
        bob.save()
    before = state_of_alice()

    def answer_to(method: str, route: str, values: dict[str, Any]) -> tuple[int, str, str]:
        if who != "nobody" and not client.cookies.get(settings.SESSION_COOKIE_NAME):
            client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
        answer = ask(client, method, filled(route, values), values)
        if not client.session.keys():
            client.cookies.clear()  # this address signs out
        return answer

    for route in routes():
        there, not_there = values_for(route, secrets)
        for method in ("get", "post") if route.startswith("admin/") else METHODS:
            place = f"{method} {route}"
            known = answer_to(method, route, there)
            assert CANARY not in known[2] + known[1], place
            assert SECRET not in known[2] + known[1], place
            assert known[0] != 500, place
            if "<" not in route:
                continue
            assert known[0] >= 300, place
            unknown = answer_to(method, route, not_there)
            assert known[0] == unknown[0], place
            assert comparable(secrets, known, there) == comparable(secrets, unknown, not_there), place
            if not names_more_than_a_channel(route):
                continue
            # His own conversation, and whatever else the address names alice's.
            his, nobodys = {**there, "channel": own.channel}, {**not_there, "channel": own.channel}
            known, unknown = answer_to(method, route, his), answer_to(method, route, nobodys)
            assert CANARY not in known[2] + known[1], place
            assert known[0] == unknown[0] >= 300, place
            assert comparable(secrets, known, his) == comparable(secrets, unknown, nobodys), place
    assert state_of_alice() == before


def comparable(secrets: Secrets, answer: tuple[int, str, str], values: dict[str, Any] | None = None) -> str:
    """What an answer says but for what was asked, the row of an address of the console among it."""
    said = "\n".join(line for line in f"{answer[1]}\n{answer[2]}".splitlines() if "csrf" not in line.lower())
    return secrets.masked(said.replace(f"/{values['row']}/", "/·/") if values else said)


# Frames of the socket

FIELDS = {
    "channel": "channel",
    "frame": "frame",
    "call": "call",
    "before": "message",
    "since": "message",
    "item": "item",
    "message": "message",
    "generation": "generation",
}
FREE_FIELDS: dict[str, Any] = {
    "after": None,
    "key": "key",
    "text": "stranger's words",
    "model": "",
    "title": "stranger's",
    "confirmed": True,
    "confirm_text": "stranger's words",
}


def frame_of(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    frame = {"type": kind}
    for name in SHAPES[kind]:
        if name == "quote":
            frame[name] = quote_of(values)
            continue
        assert name in FIELDS or name in FREE_FIELDS, f"{kind}: tell the walk what {name} stands for"
        frame[name] = values[FIELDS[name]] if name in FIELDS else FREE_FIELDS[name]
    return frame


def answers_to(page, frame: dict[str, Any]) -> str:
    """Everything that the frame is answered with, up to the answer to a ping."""
    page.send(**frame)
    page.send(type="ping")
    answers = []
    while (answer := page.receive())["type"] != "pong":
        answers.append(answer)
    return json.dumps(answers)


def test_there_is_no_socket_but_the_one_whose_frames_are_walked_here():
    layer = websocket_application
    while not hasattr(layer, "routes"):
        layer = getattr(layer, "application", None) or layer.inner
    assert [route.callback.consumer_class for route in layer.routes] == [ChatConsumer]


@pytest.mark.django_db(transaction=True)
def test_no_frame_tells_or_changes_anything_of_anothers(server, bob, secrets):  # noqa: F811  # a fixture's name
    own = create_thread(bob, title="Bobs own")
    before = state_of_alice()
    with open_socket(server, bob) as page:
        kinds = [kind for kind in SHAPES if kind != "ping"]
        for kind in kinds:
            known = answers_to(page, frame_of(kind, secrets.known))
            unknown = answers_to(page, frame_of(kind, secrets.unknown))
            assert CANARY not in known, kind
            assert secrets.masked(known) == secrets.masked(unknown), kind
        for kind in kinds:
            # His own conversation, and whatever else the frame names alice's: of what is sent, the quote.
            known = answers_to(page, frame_of(kind, {**secrets.known, "channel": own.channel}))
            unknown = answers_to(page, frame_of(kind, {**secrets.unknown, "channel": own.channel}))
            assert CANARY not in known, kind
            assert secrets.masked(known) == secrets.masked(unknown), kind
        say(secrets.thread, f"more {CANARY}")
        assert page.silent()
    assert state_of_alice().replace(f"more {CANARY}", "") != before  # alice's own words did arrive
    Message.objects.filter(text__startswith="more").delete()
    assert state_of_alice() == before


@pytest.mark.django_db(transaction=True)
def test_a_page_hears_of_its_own_users_events_alone(server, bob, secrets):  # noqa: F811  # a fixture's name
    own = create_thread(bob)
    with open_socket(server, secrets.thread.owner) as hers, open_socket(server, bob) as his:
        hers.open(secrets.thread.channel)
        his.open(own.channel)
        say(secrets.thread, "for alice")
        say(own, "for bob")
        assert [event["body"]["message"]["text"] for event in hers.events(1)] == ["for alice"]
        assert [event["body"]["message"]["text"] for event in his.events(1)] == ["for bob"]
        assert hers.silent() and his.silent()


# Tools

ARGUMENTS = {
    "channel": "channel",
    "generation_id": "generation",
    "message_id": "message",
    "before": "message",
    "thread_id": "thread",
    "call_id": "call",
    "replaces": "fact",
}
FREE_ARGUMENTS: dict[str, Any] = {
    "query": CANARY,
    "question": "Which?",
    "options": ["a"],
    "title": "a title",
    "instructions": "do this",
    "offset": 0,
    "view": "audit",
    "limit": 5,
    "text": "It is so.",
    "kind": "about-user",
    "aspect": "fact",
    "applies_to": "",
    "tone": "remark",
    "project": "",
    "asked_with": "Remember this",
    "facts": [],  # whatever they name: no turn runs the tool that proposes them
}


# What a call has to give beside an argument, for it to be looked up at all.
NEEDED_BESIDE = {"replaces": ("aspect",)}


def argument_sets(tool: registry.Tool, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments that name what is alice's: one way to name it at a time, with everything that is required."""
    properties = tool.parameters.get("properties", {})
    for name in properties:
        assert name in ARGUMENTS or name in FREE_ARGUMENTS, f"{tool.name}: tell the walk what {name} stands for"
    required = {name: _argument(name, values) for name in tool.parameters.get("required", [])}
    yield required
    for name in properties:
        named = {**required, name: _argument(name, values)}
        yield named
        if name in ARGUMENTS and "before" in properties:
            yield {**named, "before": _argument("before", values)}
        if beside := NEEDED_BESIDE.get(name):
            yield {**named, **{other: _argument(other, values) for other in beside}}


def _argument(name: str, values: dict[str, Any]) -> Any:
    return values[ARGUMENTS[name]] if name in ARGUMENTS else FREE_ARGUMENTS[name]


def outcome_of(tool: registry.Tool, context: ToolContext, arguments: dict[str, Any]) -> str:
    """What the model would read."""

    async def run() -> Any:
        import inspect

        if inspect.iscoroutinefunction(tool.run):
            return await tool.run(context, arguments)
        return await in_database(tool.run, context, arguments)

    if (objection := tool.objection(arguments)) is not None:
        return objection
    try:
        return async_to_sync(run)().text
    except WaitForUser:
        return "waits for the user"
    except registry.ToolError as error:
        return str(error)


@pytest.mark.django_db(transaction=True)
def test_no_tool_tells_or_changes_anything_of_anothers(bob, secrets):
    own = create_thread(bob, title="Bobs own")
    message = say(own, "Remember this.")
    frame = TaskFrame.objects.create(thread=own, owner=bob)
    asking = Message.objects.create(thread=own, owner=bob, generation=message.generation, role=Message.Role.ASSISTANT)
    call = ToolCall.objects.create(message=asking, thread=own, owner=bob, frame=frame, call_id="c", tool="t")
    context = ToolContext(thread_id=own.pk, owner_id=bob.pk, frame_id=frame.pk, call_id=call.pk)
    before = state_of_alice()
    # All of it alice's; then his own conversation, and whatever else a call names hers.
    his = {"channel": own.channel}
    pairs = [(secrets.known, secrets.unknown), ({**secrets.known, **his}, {**secrets.unknown, **his})]
    looked_up = set()
    for tool, (there, not_there) in itertools.product(registry.all_tools(), pairs):
        for known, unknown in zip(argument_sets(tool, there), argument_sets(tool, not_there), strict=True):
            told = outcome_of(tool, context, known)
            assert CANARY not in told.replace(str(known.get("query")), ""), (tool.name, known)
            if tool.objection(known) is None:
                looked_up |= {(tool.name, name) for name in known if str(there.get(ARGUMENTS.get(name))) in told}
                if NOT_FOUND in told or NO_SUCH_MESSAGE in told:
                    looked_up |= {(tool.name, name) for name in known}
            # Each of their answers names a new task, a new fact.
            names_new = "dispatch" in tool.name or (tool.name == "remember" and "replaces" not in known)
            if not names_new:
                assert secrets.masked(told) == secrets.masked(outcome_of(tool, context, unknown)), (tool.name, known)
    for tool in registry.all_tools():
        for name in ARGUMENTS.keys() & tool.parameters.get("properties", {}).keys():
            assert (tool.name, name) in looked_up, f"{tool.name}: no call is answered about {name}"
    assert state_of_alice() == before
