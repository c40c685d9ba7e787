"""The REST API: the page's entry points, for programs."""

import pytest
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from agent import conversations as whole
from agent.models import InboxItem, TaskFrame, ToolCall, TurnEvent
from llm import catalog
from tests.chat.records import say, say_many
from threads.lifecycle import create_thread
from threads.models import Thread
from threads.transcript import live_generation

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(alice):
    client = APIClient()
    client.force_authenticate(alice)
    return client


@pytest.fixture
def thread(alice):
    return create_thread(alice, title="Boats")


@pytest.fixture
def model(settings):
    """A configured model: what is sent here is stored and not answered."""
    settings.EMULATOR_URL = "http://127.0.0.1:9"
    catalog.load_catalog()


def test_a_token_signs_in_and_nothing_is_open_without(alice, thread):
    client = APIClient()
    assert client.get("/api/threads/").status_code in (401, 403)
    client.credentials(HTTP_AUTHORIZATION=f"Token {Token.objects.create(user=alice).key}")
    assert client.get("/api/threads/").status_code == 200


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("/api/threads/{}/messages/", {"text": "x", "key": "k"}),
        ("/api/threads/{}/answer/", {"call": 1, "text": "x"}),
        ("/api/quotes/preview/", {"target": "x"}),
    ],
)
def test_a_body_of_five_megabytes_is_refused_with_a_sentence(alice, thread, address, body):
    client = APIClient(enforce_csrf_checks=True)
    client.credentials(HTTP_AUTHORIZATION=f"Token {Token.objects.create(user=alice).key}")
    large = {**body, "text": "x" * 5_000_000}
    answer = client.post(address.format(thread.channel), large, format="json")
    assert answer.status_code == 413
    assert answer.json() == {
        "code": "too-long",
        "reason": "The request is too large: at most 4,000,000 bytes are taken. Shorten or split it.",
    }
    assert not thread.messages.exists()


def test_the_main_conversation_is_listed_first_and_the_others_newest_first_by_the_page(api, alice):
    for number in range(5):
        create_thread(alice, title=f"thread {number}")

    def page(**query):
        answer = api.get("/api/threads/", {"limit": 4, **query}).json()
        return [row["title"] for row in answer["threads"]], answer["threads"][-1]["channel"], answer["has_more"]

    first, last, more = page()
    assert (first, more) == (["", "thread 4", "thread 3", "thread 2", "thread 1"], True)
    second, _last, more = page(before=last)
    assert (second, more) == (["thread 0"], False)
    main = Thread.objects.get(owner=alice, kind="main")
    assert page(before=main.channel)[0] == first[1:]
    assert page(search="thread 3")[0] == ["thread 3"]


def test_conversations_without_a_title_are_found_by_the_name_they_are_shown_by(api, alice):
    untitled, _titled = create_thread(alice), create_thread(alice, title="Lakes")

    def found(search):
        return [row["channel"] for row in api.get("/api/threads/", {"search": search}).json()["threads"]]

    assert found("main") == [Thread.objects.get(owner=alice, kind="main").channel]
    assert found("new conv") == [untitled.channel]


def test_titles_are_searched_as_they_are_written_and_without_regard_to_case(api, alice):
    for title in ("100% wool", "1000 wool", "Back\\slash", "中文标题", "UNDER_score", "underXscore"):
        create_thread(alice, title=title)

    def found(search):
        return [row["title"] for row in api.get("/api/threads/", {"search": search}).json()["threads"]]

    assert found("100%") == ["100% wool"]
    assert found("back\\S") == ["Back\\slash"]
    assert found("under_") == ["UNDER_score"]
    assert found("文标") == ["中文标题"]
    assert found("\x00") == []


def test_a_conversation_is_made_renamed_archived_and_brought_back(api):
    made = api.post("/api/threads/", {}).json()
    address = f"/api/threads/{made['channel']}/"
    assert api.patch(address, {"title": "  New \n name "}).json()["title"] == "New name"
    assert api.patch(address, {"title": "  "}).status_code == 400
    assert api.post(f"{address}archive/").json()["status"] == "archived"
    assert made["channel"] in [
        row["channel"] for row in api.get("/api/threads/", {"status": "archived"}).json()["threads"]
    ]
    assert api.post(f"{address}unarchive/").json()["status"] == "active"


def test_the_main_conversation_is_not_archived(api, alice):
    main = Thread.objects.get(owner=alice, kind="main")
    answer = api.post(f"/api/threads/{main.channel}/archive/")
    assert answer.status_code == 409
    assert answer.json()["reason"]


def test_renaming_tells_whoever_has_it_open(api, thread):
    api.patch(f"/api/threads/{thread.channel}/", {"title": "Ships"})
    event = TurnEvent.objects.get(thread=thread)
    assert (event.kind, event.body["thread"]["title"]) == ("state", "Ships")


def test_a_conversation_is_read_with_its_newest_messages_and_older_ones_by_the_page(api, thread):
    rows = say_many(thread, 120)
    state = api.get(f"/api/threads/{thread.channel}/").json()
    assert [row["id"] for row in state["messages"]] == [row.pk for row in rows[20:]]
    page = api.get(f"/api/threads/{thread.channel}/messages/", {"before": state["messages"][0]["id"]}).json()
    assert [row["id"] for row in page["messages"]] == [row.pk for row in rows[:20]]
    assert not page["has_earlier"]


def test_words_are_sent_once_for_one_key(api, thread, model):
    address = f"/api/threads/{thread.channel}/messages/"
    first = api.post(address, {"key": "k", "text": " Ahoy\n"})
    assert first.status_code == 202
    assert api.post(address, {"key": "k", "text": " Ahoy\n"}).json() == first.json()
    assert InboxItem.objects.get().text == " Ahoy\n"


def test_text_that_the_database_cannot_hold_is_made_visible(api, thread, model):
    words = r'{"key": "k", "text": "a\u0000b\ud800"}'
    api.post(f"/api/threads/{thread.channel}/messages/", words, content_type="application/json")
    assert InboxItem.objects.get().text == "a␀b\\ud800"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"key": "k", "text": " "}, 400),
        ({"key": "k", "text": "x" * 300}, 413),
        ({"text": "x"}, 400),
        ({"key": "k k", "text": "x"}, 400),
        ({"key": "k", "text": ["x"]}, 400),
    ],
)
def test_words_that_cannot_be_sent_are_refused_and_not_stored(api, thread, model, settings, body, status):
    settings.MESSAGE_MAX_CHARS = 200
    assert api.post(f"/api/threads/{thread.channel}/messages/", body).status_code == status
    assert not InboxItem.objects.exists()


@pytest.mark.parametrize(
    ("method", "address", "body", "answer"),
    [
        ("patch", "{thread}", {}, (400, "bad-input", "title: This field is required.", {"title"})),
        (
            "post",
            "{thread}messages/",
            {"text": ["x"]},
            (400, "bad-input", "key: This field is required.", {"key", "text"}),
        ),
        ("post", "", [], (400, "bad-input", "Invalid data.", set())),
        ("get", "?limit=many", None, (400, "bad-input", "limit: A valid integer is required.", {"limit"})),
        ("get", "nothing/", None, (404, "no-such-thread", "There is no such conversation.", set())),
        ("put", "", {}, (405, "method-not-allowed", 'Method "PUT" not allowed.', set())),
        ("post", "", "{", (400, "parse-error", "JSON parse error", set())),
        ("post", "", "[" * 100_000, (400, "parse-error", "", set())),
    ],
)
def test_every_error_has_one_shape_whoever_raises_it(api, thread, method, address, body, answer):
    status, code, reason, fields = answer
    raw = {"content_type": "application/json"} if isinstance(body, str) else {}
    at = "/api/threads/" + address.format(thread=f"{thread.channel}/")
    told = getattr(api, method)(at, body, **raw)
    said = told.json()
    assert (told.status_code, said["code"]) == (status, code)
    assert reason in said["reason"]
    assert said["reason"].endswith(".") or code == "parse-error"
    assert fields <= set(said.get("problems", {})), said


def test_who_is_not_signed_in_is_told_in_that_shape_too():
    told = APIClient().get("/api/threads/")
    assert (told.json()["code"], set(told.json())) == ("not-authenticated", {"code", "reason"})


def test_a_turn_is_stopped_and_an_unknown_one_is_not(api, thread, alice):
    frame = TaskFrame.objects.create(thread=thread, owner=alice, state="suspended")
    address = f"/api/threads/{thread.channel}/stop/"
    assert api.post(address, {"frame": frame.pk + 1}).status_code == 409
    assert api.post(address, {"frame": frame.pk}).status_code == 204
    frame.refresh_from_db()
    assert frame.end_reason == "stopped"


def test_a_question_that_is_not_open_takes_no_answer(api, thread, alice, model):
    message = say(thread, "which?", role="assistant")
    call = ToolCall.objects.create(
        message=message, thread=thread, owner=alice, call_id="c", tool="ask_user_question", status="done"
    )
    answer = api.post(f"/api/threads/{thread.channel}/answer/", {"call": call.pk, "text": "a"})
    assert (answer.status_code, answer.json()["code"]) == (409, "not-open")
    assert live_generation(thread).messages.count() == 1


def test_the_schema_is_valid_and_complete(api):
    from django.core.management import call_command

    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")
    paths = api.get("/api/schema/?format=json").json()["paths"]
    assert {"/api/threads/", "/api/threads/{channel}/level/", "/api/quotes/preview/"} <= set(paths)


def test_the_browsable_schema_is_served_without_inline_script(client, alice):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.get("/api/")
    assert answer.status_code == 200
    assert "script-src 'self';" in answer["Content-Security-Policy"] + ";"
    assert client.get("/api/?script=").status_code == 200


def test_what_was_deleted_is_listed_for_its_owner_until_it_is_erased(api, alice, bob, thread):
    task = create_thread(alice, title="Part of it", kind="task", parent=thread)
    others = create_thread(bob, title="Bob's")
    whole.delete(bob, others.channel)
    kept = create_thread(alice, title="Kept")
    assert api.delete(f"/api/threads/{thread.channel}/").status_code == 200
    assert Thread.objects.get(pk=task.pk).deleted is not None
    (row,) = api.get("/api/threads/", {"status": "deleted"}).json()["threads"]
    assert row["channel"] == thread.channel
    deleted = Thread.objects.get(pk=thread.pk).deleted
    assert row["erased"] == (deleted + whole.DELETED_KEPT).isoformat()
    assert "erased" not in api.get("/api/threads/").json()["threads"][-1]
    assert api.get("/api/threads/", {"status": "deleted", "search": "Kept"}).json()["threads"] == []
    assert api.get("/api/threads/", {"status": "deleted", "before": kept.channel}).status_code == 404


def test_a_conversation_begins_with_the_model_that_was_picked_or_not_at_all(api, model):
    name = catalog.palette(catalog.MAIN)[0].name
    assert api.post("/api/threads/", {"model": name}).json()["model"] == name
    before = Thread.objects.count()
    answer = api.post("/api/threads/", {"model": "no such model"})
    assert (answer.status_code, answer.json()["code"]) == (409, "no-such-model")
    assert Thread.objects.count() == before
