"""Going back, branching, taking back and deleting by the API: the endpoints that the page uses."""

import pytest
from asgiref.sync import async_to_sync
from rest_framework.test import APIClient

from agent import sending
from agent.models import InboxItem
from agent.projection import message_views
from chat.snapshot import snapshot
from llm import catalog
from llm.emulator import client as emulated
from maxclaw.database_threads import in_database
from tests.agent.world import running_world
from tests.chat.records import say, say_many
from threads.lifecycle import create_thread
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(alice):
    client = APIClient()
    client.force_authenticate(alice)
    return client


@pytest.fixture
def model(settings):
    """A configured model: what is sent here is stored and not answered."""
    settings.EMULATOR_URL = "http://127.0.0.1:9"
    catalog.load_catalog()


@pytest.fixture
def thread(alice, model):
    thread = create_thread(alice, title="Boats")
    for text, role in (("one", "user"), ("first", "assistant"), ("two", "user"), ("second", "assistant")):
        say(thread, text, role)
    return thread


def seen(thread):
    """What a person sees: (text, whether it was rewound)."""
    return [(view["text"], view["superseded"]) for view in message_views(thread)]


def row(thread, text):
    return Message.objects.filter(thread=thread, text=text).order_by("pk").first()


def address(thread, rest=""):
    return f"/api/threads/{thread.channel}/{rest}"


def test_a_rewind_folds_what_followed_and_its_undo_shows_each_row_once_in_its_place(api, thread):
    assert snapshot(thread)["rewound"] is None
    api.post(address(thread, f"messages/{row(thread, 'first').pk}/rewind/"))
    assert seen(thread) == [("one", False), ("first", False), ("two", True), ("second", True)]
    assert snapshot(thread)["rewound"] == row(thread, "second").pk
    say(thread, "other")
    assert api.post(address(thread, "undo-rewind/")).status_code == 200
    assert seen(thread) == [("one", False), ("first", False), ("two", False), ("second", False), ("other", True)]
    assert snapshot(thread)["rewound"] is None
    refused = api.post(address(thread, "undo-rewind/"))
    assert (refused.status_code, refused.json()["reason"]) == (409, "There is no rewind to undo.")


def test_a_row_seen_once_can_be_gone_back_to_after_an_undo(api, thread):
    api.post(address(thread, f"messages/{row(thread, 'one').pk}/rewind/"))
    api.post(address(thread, "undo-rewind/"))
    assert api.post(address(thread, f"messages/{row(thread, 'first').pk}/rewind/")).status_code == 200
    assert seen(thread) == [("one", False), ("first", False), ("two", True), ("second", True)]


def test_an_edit_says_other_words_in_place_of_ones_own(api, thread):
    answer = api.post(address(thread, f"messages/{row(thread, 'two').pk}/edit/"), {"text": "three", "key": "k"})
    assert (answer.status_code, answer.json()["text"]) == (202, "three")
    assert seen(thread)[2:] == [("two", True), ("second", True)]
    assert InboxItem.objects.get(thread=thread).text == "three"


@pytest.mark.parametrize(("body", "status"), [({"text": " ", "key": "k"}, 400), ({"text": "x"}, 400)])
def test_an_edit_that_is_refused_changes_nothing(api, thread, body, status):
    answer = api.post(address(thread, f"messages/{row(thread, 'two').pk}/edit/"), body)
    assert answer.status_code == status
    assert not any(rewound for _text, rewound in seen(thread))


def test_a_retry_asks_the_last_words_again_once(api, thread):
    for _ in range(2):
        assert api.post(address(thread, "retry/"), {"key": "k"}).json()["text"] == "two"
    assert seen(thread)[2:] == [("two", True), ("second", True)]
    assert InboxItem.objects.count() == 1


def test_a_fork_is_a_conversation_of_its_own(api, thread):
    answer = api.post(address(thread, f"messages/{row(thread, 'first').pk}/fork/"))
    assert answer.status_code == 201
    branch = Thread.objects.get(channel=answer.json()["channel"])
    assert seen(branch) == [("one", False), ("first", False)]
    assert seen(thread)[-1] == ("second", False)


def test_queued_words_come_back_with_their_text(api, alice, thread):
    item = sending.send(alice, thread.channel, "wait for me", client_key="k")
    assert api.delete(address(thread, f"queued/{item.pk}/")).json()["text"] == "wait for me"
    assert snapshot(thread)["queued"] == []
    assert api.delete(address(thread, f"queued/{item.pk}/")).status_code == 409


def test_a_deleted_conversation_is_out_of_sight_and_comes_back_whole(api, thread):
    assert api.delete(address(thread)).status_code == 200
    assert api.get(address(thread)).status_code == 404
    assert thread.channel not in str(api.get("/api/threads/").json())
    assert api.post(address(thread, "undelete/")).json()["title"] == "Boats"
    assert len(api.get(address(thread)).json()["messages"]) == 4


def test_the_main_conversation_stays(api, alice):
    main = Thread.objects.get(owner=alice, kind="main")
    assert api.delete(address(main)).status_code == 409
    assert api.post(address(main, "archive/")).status_code == 409


def test_a_model_is_picked_among_those_that_are_offered(api, thread):
    choices = api.get(address(thread, "meter/")).json()["choices"]
    assert api.put(address(thread, "model/"), {"model": choices[0]}).json()["model"] == choices[0]
    assert api.put(address(thread, "model/"), {"model": "no-such-model"}).status_code == 409
    assert api.put(address(thread, "model/"), {"model": ""}).json()["model"] == ""


def test_the_meter_says_what_is_known_before_the_first_request(api, thread):
    meter = api.get(address(thread, "meter/")).json()
    assert (meter["live_tokens"], meter["cache_read_share"], meter["cost_unknown"]) == (None, None, 0)
    assert meter["budget"] > 0


def test_the_whole_of_a_bounded_result_is_read_by_its_message(api, alice, emulator):
    emulator.answer(emulated.tool_use("message_history_read", {"channel": "abc"}))
    emulator.answer(emulated.text("Done."))

    async def scenario():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await in_database(say_many, thread, 3)
            await world.ask(thread, "Look")
            return thread

    thread = async_to_sync(scenario)()
    result = Message.objects.get(thread=thread, role="tool")
    assert api.get(address(thread, f"messages/{result.pk}/")).json()["text"] == result.text
    other = create_thread(alice)
    assert api.get(address(other, f"messages/{result.pk}/")).status_code == 404


def test_what_only_models_read_is_not_shown(api, thread):
    note = say(thread, "framework", "event")
    assert api.get(address(thread, f"messages/{note.pk}/")).status_code == 404


def test_the_summary_behind_a_generation_is_read_by_its_number(api, thread):
    Generation.objects.filter(thread=thread).update(summary="1. The request")
    assert api.get(address(thread, "generations/1/")).json()["summary"] == "1. The request"
    assert api.get(address(thread, "generations/2/")).status_code == 404


def test_pages_lead_down_as_well_as_up(api, alice, model):
    from chat.snapshot import later

    thread = create_thread(alice)
    rows = say_many(thread, 7)
    page = later(thread, rows[1].pk, 3)
    assert [view["text"] for view in page["messages"]] == ["message 2", "message 3", "message 4"]
    assert page["has_later"]
    assert not later(thread, rows[3].pk, 3)["has_later"]
    assert later(thread, rows[6].pk, 3) == {"messages": [], "has_later": False}
