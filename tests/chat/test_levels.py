"""Scope and category: chosen at creation, made stricter later with the consequences said, told to whoever looks."""

import pytest
from rest_framework.test import APIClient

from agent.models import TurnEvent
from chat import levels
from quotes import ingress
from tests.chat.records import say
from tests.quotes.conftest import model  # noqa: F401  # a fixture
from tests.quotes.records import at, take_in
from threads import copying
from threads.lifecycle import create_thread
from threads.models import Thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(alice):
    client = APIClient()
    client.force_authenticate(alice)
    return client


@pytest.fixture
def thread(alice):
    return create_thread(alice, title="Boats")


def level_of(thread: Thread) -> tuple[str, str]:
    thread.refresh_from_db()
    return thread.scope, thread.category


def put(api, thread, **level):
    return api.put(f"/api/threads/{thread.channel}/level/", level, format="json")


def test_a_conversation_begins_at_the_level_that_was_chosen(api):
    made = api.post("/api/threads/", {"scope": "isolated", "category": "work"}, format="json")
    assert made.status_code == 201
    assert (made.json()["scope"], made.json()["category"]) == ("isolated", "work")
    plain = api.post("/api/threads/", {}, format="json").json()
    assert (plain["scope"], plain["category"]) == ("open", "")


def test_an_unknown_level_begins_nothing(api, alice):
    before = Thread.objects.count()
    assert api.post("/api/threads/", {"scope": "secret"}, format="json").status_code == 400
    answer = api.post("/api/threads/", {"category": "gossip"}, format="json")
    assert answer.status_code == 409 and "gossip" in answer.json()["reason"]
    assert Thread.objects.count() == before


def test_what_becoming_stricter_means_is_said_before(api, alice, thread, model):  # noqa: F811
    create_thread(alice, kind="task", parent=thread)
    branch = copying.fork(alice, thread, say(thread, "hello"), acting_user=alice)
    elsewhere = create_thread(alice, title="Lakes")
    ingress.send(alice, elsewhere.channel, "Look", client_key="k", quote=at(thread))
    (row,) = take_in(elsewhere)
    # What comes along counts, what waits too; what stays among them does not, nor what only repeats a quote.
    ingress.send(alice, elsewhere.channel, "Look", client_key="l", quote=at(branch))
    ingress.send(alice, branch.channel, "Look", client_key="m", quote=at(thread))
    copying.fork(alice, elsewhere, row, acting_user=alice)
    said = api.get(f"/api/threads/{thread.channel}/level/").json()
    assert (said["scope"], said["category"], said["may_isolate"]) == ("open", "", True)
    assert said["categories"] == ["personal", "work", "confidential"]
    assert said["common"] == [
        "What was already sent elsewhere stays where it is: results of tasks, quotes, facts that other conversations "
        "were told, what models were asked.",
        "It was quoted 2 times in other conversations.",
        "This cannot be taken back.",
    ]
    assert any("branches and its tasks alone" in sentence for sentence in said["isolating"])
    assert "2 tasks and branches of it come along." in said["isolating"]
    assert said["labelling"]["work"] == [
        "Its content goes to conversations of the category “work” alone.",
        "Only models that may read “work” answer in it: emulator-main.",
        "2 tasks and branches of it come along.",
    ]
    # One that is as strict by itself stays on its own island.
    put(api, branch, scope="isolated")
    said = api.get(f"/api/threads/{thread.channel}/level/").json()
    assert "1 task or branch of it comes along." in said["isolating"]
    assert "2 tasks and branches of it come along." in said["labelling"]["work"]


def test_becoming_stricter_takes_tasks_and_branches_along_and_tells_whoever_has_them_open(api, alice, thread):
    task = create_thread(alice, kind="task", parent=thread)
    branch = copying.fork(alice, thread, say(thread, "hello"), acting_user=alice)
    answer = put(api, thread, scope="isolated", category="work")
    assert answer.status_code == 200
    assert (answer.json()["scope"], answer.json()["category"]) == ("isolated", "work")
    for member in (thread, task, branch):
        assert level_of(member) == ("isolated", "work")
        told = TurnEvent.objects.filter(thread=member, kind="state").last().body["thread"]
        assert (told["scope"], told["category"]) == ("isolated", "work")


def test_what_begins_there_later_inherits(api, alice, thread):
    put(api, thread, scope="isolated", category="work")
    thread.refresh_from_db()
    branch = copying.fork(alice, thread, say(thread, "hello"), acting_user=alice)
    assert (branch.scope, branch.category, branch.island_id) == ("isolated", "work", thread.pk)
    task = create_thread(alice, kind="task", parent=thread)
    assert (task.scope, task.category, task.island_id) == ("isolated", "work", thread.pk)


@pytest.mark.parametrize("level", [{"scope": "open"}, {"category": ""}, {"category": "personal"}])
def test_nothing_becomes_less_strict(api, thread, level):
    put(api, thread, scope="isolated", category="work")
    answer = put(api, thread, **level)
    assert answer.status_code == 409 and answer.json()["reason"].endswith(".")
    assert level_of(thread) == ("isolated", "work")


def test_what_is_left_out_stays(api, thread):
    put(api, thread, category="work")
    assert level_of(thread) == ("open", "work")
    put(api, thread, scope="isolated")
    assert level_of(thread) == ("isolated", "work")
    said = api.get(f"/api/threads/{thread.channel}/level/").json()
    assert (said["may_isolate"], said["categories"]) == (False, [])


def test_the_main_conversation_stays_open(api, alice):
    main = Thread.objects.get(owner=alice, kind="main")
    said = api.get(f"/api/threads/{main.channel}/level/").json()
    assert (said["may_isolate"], said["categories"]) == (False, [])
    assert put(api, main, scope="isolated").status_code == 409
    assert level_of(main) == ("open", "")


def test_a_category_that_no_model_reads_is_not_offered(monkeypatch):
    assert [category["name"] for category in levels.categories()] == ["personal", "work", "confidential"]
    monkeypatch.setattr(levels, "model_choices", lambda category: ["some-model"] if category == "work" else [])
    assert [category["name"] for category in levels.categories()] == ["work"]


def test_a_stranger_learns_and_changes_nothing(bob, thread):
    api = APIClient()
    api.force_authenticate(bob)
    assert api.get(f"/api/threads/{thread.channel}/level/").status_code == 404
    assert put(api, thread, scope="isolated").status_code == 404
    assert level_of(thread) == ("open", "")
