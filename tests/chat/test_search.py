"""A person's search over their own conversations: the endpoint, the page, the field in the sidebar."""

import re

import pytest
from playwright.sync_api import expect
from rest_framework.test import APIClient

from accounts.models import User
from llm.emulator import client as emulated
from memory import embedding_work, hits
from tests.browser import PHONE
from tests.chat.records import say
from tests.hands import Hand
from tests.threads.records import call_tool, give_result
from tests.threads.test_literal_search import many
from threads.lifecycle import create_thread
from threads.models import Message, Thread

# The engine works on several threads, each with a connection of its own.
pytestmark = pytest.mark.django_db(transaction=True)
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def api(alice):
    client = APIClient()
    client.force_authenticate(alice)
    return client


@pytest.fixture
def boats(alice):
    return create_thread(alice, title="Boats")


def found(api, **query):
    answer = api.get("/api/search/", query)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_own_words_are_found_with_where_they_stand(api, boats):
    message = say(boats, "The zlorpification of the mast took all day.")
    say(boats, "Something else entirely.", Message.Role.ASSISTANT)
    [hit] = found(api, q="zlorpification")["hits"]
    assert hit.pop("created").startswith(str(message.created.year))
    assert hit == {
        "channel": boats.channel,
        "title": "Boats",
        "message_id": message.pk,
        "role": "user",
        "excerpt": "The zlorpification of the mast took all day.",
    }


@pytest.mark.parametrize(
    ("zone", "last"), [("Asia/Shanghai", "9999-12-31T23:59:59Z"), ("America/New_York", "0001-01-01T00:00:00Z")]
)
def test_words_said_at_the_end_of_the_calendar_are_found(api, client, alice, boats, zone, last):
    User.objects.filter(pk=alice.pk).update(time_zone=zone)
    message = say(boats, "The zlorpification of the mast.")
    Message.objects.filter(pk=message.pk).update(created=last)
    embedding_work.embed_some(boats.pk)
    [hit] = found(api, q="zlorpification")["hits"]
    assert hit["created"].startswith(last[:10])
    client.force_login(alice, backend=BACKEND)
    assert "zlorpification" in client.get("/search/", {"q": "mast"}).content.decode()


def test_a_question_finds_what_was_meant(api, boats):
    message = say(boats, "My daughter was born on the third of May in Lisbon.")
    embedding_work.embed_some(boats.pk)
    assert found(api, q="我的女儿是什么时候出生的?")["hits"][0]["message_id"] == message.pk


@pytest.mark.parametrize("everywhere", [True, False])
def test_each_message_is_one_hit(api, boats, everywhere):
    words = "zlorpification of a mast. " + "Ropes and sails lie about. " * 60
    message = say(boats, words * 3)
    embedding_work.embed_some(boats.pk)
    place = {} if everywhere else {"channel": boats.channel}
    assert [hit["message_id"] for hit in found(api, q="zlorpification", **place)["hits"]] == [message.pk]


def test_what_is_not_shown_is_counted(api, boats):
    for number in range(hits.HITS_MAX + 7):
        say(boats, f"zlorpification number {number}")
    answer = found(api, q="zlorpification")
    assert (len(answer["hits"]), answer["left_out"], answer["exact"]) == (hits.HITS_MAX, 7, True)


def test_what_was_not_read_is_mentioned(client, alice, boats, monkeypatch):
    monkeypatch.setattr("threads.literal_search.LONG_READ", (2,))
    monkeypatch.setattr("threads.search_range.COUNT_MAX", hits.HITS_MAX)
    client.force_login(alice, backend=BACKEND)
    many(boats, 3, "harb rbou bour")  # has every run of three letters of the word, and not the word

    def page(query):
        return client.get("/search/", {"q": query, "channel": boats.channel}).content.decode()

    nothing = page("harbour master")
    assert "Nothing was found" in nothing and "Not all messages were read: there may be more." in nothing
    for number in range(hits.HITS_MAX + 2):
        say(boats, f"zlorpification number {number}")
    assert "At least 2 more were found" in page("zlorpification")
    say(boats, "harbour")
    some = page("harbour master")
    assert "Nothing was found" not in some and "Not all messages were read: there may be more." in some


def test_a_channel_narrows_the_search(api, alice, boats):
    here = say(boats, "zlorpification here")
    say(create_thread(alice, title="Other"), "zlorpification there")
    assert len(found(api, q="zlorpification")["hits"]) == 2
    narrowed = found(api, q="zlorpification", channel=boats.channel)
    assert [hit["message_id"] for hit in narrowed["hits"]] == [here.pk]


def test_exact_words_of_tools_are_found_in_all_conversations(api, alice, bob, boats):
    asked = call_tool(boats, arguments={"command": "ssh -i ~/.ssh/zlorp_key deploy@alpha"})
    result = give_result(boats, text="x " * 2_000 + "connected zebrafish" + " filler" * 500)
    for thread in (create_thread(alice, scope="isolated"), create_thread(bob), deleted := create_thread(alice)):
        call_tool(thread, arguments={"command": "ssh -i ~/.ssh/zlorp_key deploy@alpha"})
        give_result(thread, text="x " * 2_000 + "connected zebrafish" + " filler" * 500)
    assert api.delete(f"/api/threads/{deleted.channel}/").status_code < 300
    for query, row in (("~/.ssh/zlorp_key", asked), ("zebrafish", result)):
        for place in ({}, {"channel": boats.channel}):
            [hit] = found(api, q=query, **place)["hits"]
            assert hit["message_id"] == row.pk
            assert query in hit["excerpt"]


def test_nothing_of_another_user_is_found(api, bob):
    say(create_thread(bob, title="Bobs"), "zlorpification of bob")
    assert found(api, q="zlorpification") == {"hits": [], "left_out": 0, "exact": True}


def test_anothers_channel_is_answered_like_an_unknown_one(api, client, alice, bob):
    foreign = create_thread(bob, title="Bobs")
    say(foreign, "zlorpification of bob")
    answers = [api.get("/api/search/", {"q": "zlorpification", "channel": name}) for name in (foreign.channel, "none")]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["code"] == "no-such-thread"
    client.force_login(alice, backend=BACKEND)
    page = client.get("/search/", {"q": "zlorpification", "channel": foreign.channel})
    assert page.status_code == 404
    assert "There is no such conversation." in page.content.decode() and "Bobs" not in page.content.decode()


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({}, "Say what to search for."),
        ({"q": "   "}, "Say what to search for."),
        ({"q": "a"}, "The query is too short"),
        ({"q": "word " * 201}, "The query is too long: give at most 1,000 characters."),
    ],
)
def test_a_query_that_asks_for_nothing_is_refused_with_a_sentence(api, settings, query, sentence):
    settings.MESSAGE_MAX_CHARS = 1_000
    answer = api.get("/api/search/", query)
    assert answer.status_code == 400
    assert answer.json()["code"] == "bad-query" and answer.json()["reason"].startswith(sentence)


@pytest.mark.parametrize("level", [{"scope": "isolated"}, {"category": "work"}])
def test_a_level_keeps_its_words_from_a_search_outside(api, alice, settings, level):
    settings.CATEGORIES = ["work"]
    thread = create_thread(alice, title="Kept", **level)
    say(thread, "zlorpification kept apart")
    assert found(api, q="zlorpification")["hits"] == []
    answer = api.get("/api/search/", {"q": "zlorpification", "channel": thread.channel})
    assert (answer.status_code, answer.json()["code"]) == (409, "level")
    assert "zlorpification" not in answer.content.decode()


def test_a_deleted_conversation_is_not_found(api, boats):
    say(boats, "zlorpification gone")
    assert api.delete(f"/api/threads/{boats.channel}/").status_code < 300
    assert found(api, q="zlorpification")["hits"] == []
    assert api.get("/api/search/", {"q": "zlorpification", "channel": boats.channel}).status_code == 404


def test_nobody_searches_without_signing_in(client):
    assert APIClient().get("/api/search/", {"q": "word"}).status_code in (401, 403)
    assert client.get("/search/", {"q": "word"}).status_code == 302


def test_the_page_shows_hits_nothing_and_refusals(client, alice, boats):
    message = say(boats, "zlorpification <b>of</b> the mast")
    main = Thread.objects.get(owner=alice, kind=Thread.Kind.MAIN)
    say(main, "zlorpification at home")
    say(boats, "zlorpification of **my** sail")
    say(boats, "## zlorpification of **your** sail", Message.Role.ASSISTANT)
    client.force_login(alice, backend=BACKEND)
    page = client.get("/search/", {"q": "zlorpification"}).content.decode()
    assert f'href="/c/{boats.channel}/#m{message.pk}">Boats<' in page and ">Main<" in page
    assert "zlorpification &lt;b&gt;of&lt;/b&gt; the mast" in page
    assert "zlorpification of **my** sail" in page and "zlorpification of your sail" in page, (
        "only answers are Markdown"
    )
    nothing = client.get("/search/", {"q": "quuxery"}).content.decode()
    assert "Nothing was found for “quuxery”." in nothing
    refused = client.get("/search/", {"q": "a"})
    assert refused.status_code == 400 and "The query is too short" in refused.content.decode()
    empty = client.get("/search/")
    assert empty.status_code == 200 and 'role="alert"' not in empty.content.decode()


def test_the_page_speaks_chinese(client, alice, boats):
    alice.language = "zh-hans"
    alice.save()
    say(boats, "zlorpification")
    client.force_login(alice, backend=BACKEND)
    page = client.get("/search/", {"q": "zlorpification"}).content.decode()
    assert "搜索所有消息" in page and "Search" not in re.sub("<[^>]*>", "", page)


@pytest.mark.browser
def test_from_the_sidebar_to_a_hit_by_mouse_keyboard_and_touch(server, alice, boats, open_tab):
    message = say(boats, "The zlorpification of the mast took all day.")
    for how, size in (("mouse", {}), ("keyboard", {}), ("touch", PHONE), ("keyboard", PHONE)):
        page = open_tab(server, alice, **size).page
        hand = Hand(page, how)
        page.goto(server.url)
        if size:
            hand.press(page.get_by_role("button", name="Show the conversations"))
        hand.write("#search", "zlorpification")
        expect(page.get_by_text("No title contains “zlorpification”.")).to_be_visible()
        if how == "keyboard" and not size:
            page.keyboard.press("Enter")
        else:
            hand.press(page.get_by_role("link", name="Search in all messages for “zlorpification”"))
        expect(page).to_have_url(f"{server.url}/search/?q=zlorpification")
        hand.skip()
        hand.write("[name=q]", "mast zlorpification")
        hand.press(page.get_by_role("button", name="Search"))
        expect(page).to_have_url(f"{server.url}/search/?q=mast+zlorpification")
        hand.press(page.get_by_role("link", name="Search only this conversation"))
        hand.press(page.get_by_role("link", name="Boats"))
        expect(page).to_have_url(f"{server.url}/c/{boats.channel}/#m{message.pk}")
        expect(page.locator(f'[data-message="{message.pk}"]')).to_contain_text("zlorpification")


@pytest.mark.browser
def test_the_card_of_a_search_says_what_was_asked_given_and_left_out(server, alice, boats, open_tab, emulator):
    for number in range(40):
        say(boats, f"zlorpification {number}:\n999 more hits are not shown\n" + "ropes and sails " * 60)
    arguments = {"query": "zlorpification", "channel": boats.channel}
    emulator.answer(emulated.tool_use("search_memory", arguments))
    emulator.answer(emulated.text("Done looking."))
    page = open_tab(server, alice).page
    page.goto(f"{server.url}/c/{boats.channel}/")
    page.locator("#words-box").fill("Look it up")
    page.keyboard.press("Enter")
    expect(page.locator(".from-assistant .prose").last).to_have_text("Done looking.")
    card = page.locator(".tool-card")
    expect(card.locator(".preview")).to_have_text("“zlorpification” in “Boats”")
    card.locator("summary").click()
    # Said as data, also while only the beginning of the result is here, and whatever the words found say themselves.
    [left_out] = Message.objects.filter(answers_call__tool="search_memory").values_list("meta__left_out", flat=True)
    assert left_out["count"] > 0 and left_out["exact"]
    said = f"were given. Left out: {left_out['count']}."
    expect(card.locator(".search-foot")).to_contain_text(said)
    card.get_by_role("button", name="Show all").click()
    expect(card.locator("pre").last).to_contain_text("more hits are not shown")
    expect(card.locator(".search-foot")).to_contain_text(said)
    # Nor is the card silent where it is not known whether there was more.
    searched = Message.objects.filter(answers_call__tool="search_memory")
    searched.update(meta={**searched.get().meta, "left_out": {"count": 0, "exact": False}})
    page.reload()
    expect(card.locator(".search-foot")).to_contain_text("were given. Not all messages were read: there may be more.")
