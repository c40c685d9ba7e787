"""A person's own memory: the page, the endpoints, and what is done about a fact."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import expect
from rest_framework.test import APIClient

from memory import forgetting
from memory.models import Fact, FactLog, FactUse
from memory.remembered import EXCERPT_CHARS, PAGE_FACTS
from tests.browser import PHONE
from tests.browser_checks import assert_accessible, assert_fits
from tests.memory.facts import fact_row, many_facts
from tests.threads.records import exchange, say, thread_of
from threads.models import Generation, Message, Thread

BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def thread(alice):
    return thread_of(alice, title="Boats")


@pytest.fixture
def words(thread):
    return say(thread, "user", "I like the <b>blue</b> boat.")


@pytest.fixture
def api(alice):
    client = APIClient()
    client.force_authenticate(alice)
    return client


@pytest.fixture
def browser(client, alice):
    client.force_login(alice, backend=BACKEND)
    return client


def shown(browser, address="/memory/", **asked):
    page = browser.get(address, asked)
    assert page.status_code == 200
    return page.content.decode()


@pytest.mark.django_db
class TestPage:
    def test_each_fact_stands_with_the_words_that_prove_it(self, browser, alice, thread, words):
        fact = fact_row(alice, words, "Likes the <i>blue</i> boat.", applies_to="sailing", aspect="preference")
        question, answer = exchange(thread, "Tar it?", "Tar it in spring.")
        agreed = fact_row(alice, text="Tars in spring.", aspect="decision", tone="decision", legacy=True)
        agreed.evidence.create(owner=alice, kind="max-accepted", message=answer, accepted_by=question)
        page = shown(browser)
        assert "Likes the &lt;i&gt;blue&lt;/i&gt; boat." in page and "I like the &lt;b&gt;blue&lt;/b&gt; boat." in page
        assert "applies to sailing" in page and "Preference" in page and "said in passing" in page
        for message in (words, question, answer):
            assert f'href="/c/{thread.channel}/#m{message.pk}"' in page
        assert page.index("Tars in spring.") < page.index("Likes the"), "the newest first"
        assert f'href="/memory/{fact.pk}/forget/"' in page

    def test_all_levels_are_shown_with_their_names(self, browser, alice, settings):
        settings.CATEGORIES = ["work"]
        for level in ({"scope": "isolated"}, {"category": "work"}):
            thread = thread_of(alice, **level)
            own = {"scope": thread.scope, "island": thread.island, "category": thread.category}
            fact_row(alice, say(thread, "user", "A secret."), f"Kept {level}.", **own)
        page = shown(browser)
        assert '<span class="level">isolated</span>' in page and '<span class="level">work</span>' in page

    def test_nothing_and_nothing_found_are_said(self, browser, alice, words):
        assert "Nothing is remembered so far." in shown(browser)
        assert "Nothing was replaced or set aside so far." in shown(browser, shown="earlier")
        fact_row(alice, words)
        assert "Nothing of this is remembered." in shown(browser, q="quuxery")
        assert "Prefers tea." in shown(browser, q="TEA", sort="fact")
        assert "Nothing of this is remembered." in shown(browser, q="tea", sort="event")
        assert shown(browser, q="100%_\x00", sort="nonsense", before="x", shown="?")

    def test_pages_follow_each_other_without_loss_and_take_as_many_queries(self, browser, alice, words):
        def facts_of(page):
            return [int(pk) for pk in re.findall(r'id="f(\d+)"', page)]

        fact_row(alice, words)
        shown(browser)
        with CaptureQueriesContext(connection) as one:
            shown(browser)
        for number in range(2 * PAGE_FACTS):
            fact_row(alice, words, f"Fact {number}.")
        with CaptureQueriesContext(connection) as many:
            page = shown(browser, q="a")
        assert len(many) == len(one)
        seen = facts_of(page)
        while older := re.search(r'rel="next" href="([^"]+)"', page):
            page = shown(browser, older.group(1).replace("&amp;", "&"))
            seen += facts_of(page)
        assert seen == sorted(Fact.objects.filter(text__icontains="a").values_list("pk", flat=True), reverse=True)

    def test_twenty_thousand_facts_are_one_page_and_few_queries(self, browser, alice, django_assert_max_num_queries):
        many_facts(alice, 20_000)
        with django_assert_max_num_queries(8):
            page = shown(browser)
        assert page.count('class="account-card fact"') == PAGE_FACTS
        with django_assert_max_num_queries(8):
            assert "Fact number 7777" in shown(browser, q="NUMBER 7777")

    def test_long_words_are_cut_and_those_of_a_deleted_conversation_are_not_shown(self, browser, alice, thread):
        fact_row(alice, say(thread, "user", "漢" * 9_000))
        page = shown(browser)
        assert "漢" * (EXCERPT_CHARS - 1) + "…" in page and "漢" * EXCERPT_CHARS not in page
        Thread.objects.filter(pk=thread.pk).update(deleted=thread.created)
        page = shown(browser)
        assert "漢" not in page and "is being deleted" in page and thread.channel not in page

    def test_a_correction_takes_its_place_and_can_be_taken_back(self, browser, alice, words):
        fact = fact_row(alice, words, "Likes the red boat.")
        wrong = {"text": " ", "applies_to": "", "tone": "remark"}
        refused = browser.post(f"/memory/{fact.pk}/correct/", wrong)
        assert refused.status_code == 400 and "This field is required." in refused.content.decode()
        typed = wrong | {"text": "Likes the blue boat.\x00"}
        page = browser.post(f"/memory/{fact.pk}/correct/", typed, follow=True).content.decode()
        assert "Corrected." in page and "Likes the red boat." in page
        new = Fact.objects.get(status="active")
        assert new.text == "Likes the blue boat.␀" and new.evidence.get().message_id == words.pk
        assert browser.post(f"/memory/{fact.pk}/correct/", typed).status_code == 409
        browser.post(f"/memory/{fact.pk}/bring-back/")
        assert Fact.objects.get(status="active").text == "Likes the red boat."
        assert set(FactLog.objects.values_list("actor", "writer")) == {(alice.pk, "person")}

    def test_a_fact_is_set_aside_and_brought_back(self, browser, alice, words):
        fact = fact_row(alice, words)
        assert "Set aside." in browser.post(f"/memory/{fact.pk}/set-aside/", follow=True).content.decode()
        assert "Prefers tea." not in shown(browser)
        assert "Prefers tea." in shown(browser, shown="earlier")
        browser.post(f"/memory/{fact.pk}/bring-back/")
        assert "Prefers tea." in shown(browser)
        assert Fact.objects.get(status="active").evidence.get().message_id == words.pk

    def test_forgetting_says_what_stays_before_and_after(self, browser, alice, thread, words):
        fact = fact_row(alice, words, "Likes the blue boat.")
        generation = Generation.objects.get(thread=thread)
        FactUse.objects.create(fact=fact, owner=alice, how="briefed", generation=generation)
        address = f"/memory/{fact.pk}/forget/"
        asked = shown(browser, address)
        assert f'href="/c/{thread.channel}/#m{words.pk}"' in asked and "part 1 was begun with it" in asked
        assert Fact.objects.filter(pk=fact.pk).exists()
        told = browser.post(address).content.decode()
        assert f'href="/c/{thread.channel}/#m{words.pk}"' in told and "part 1 was begun with it" in told
        assert "Likes the blue boat." not in told
        assert not Fact.objects.exists() and not FactUse.objects.exists()
        assert browser.post(address).status_code == browser.get(address).status_code == 404

    def test_how_many_more_places_hold_its_words_is_said(self, browser, api, alice, thread, words, monkeypatch):
        monkeypatch.setattr(forgetting, "LISTED_MAX", 1)
        fact = fact_row(alice, words, "Likes the blue boat.")
        assert "older place" not in shown(browser, f"/memory/{fact.pk}/forget/")
        for _number in range(3):
            say(thread, "user", "Note: likes the blue boat.")
        assert "and in 2 older places" in shown(browser, f"/memory/{fact.pk}/forget/")
        answer = api.post(f"/api/facts/{fact.pk}/forget/").json()
        assert (len(answer["stays"]), answer["more"]) == (2, 2)

    def test_the_memory_is_downloaded_alone(self, browser, alice, bob, words):
        fact = fact_row(alice, words)
        fact_row(bob, text="Bob's.", legacy=True)
        answer = browser.post("/memory/export/")
        records = [json.loads(line) for line in b"".join(answer).splitlines()]
        assert [(record["record"], record["id"]) for record in records] == [("fact", f"f:{fact.pk}")]
        assert "memory" in answer["Content-Disposition"]
        assert browser.get("/memory/export/").status_code == 405

    def test_the_page_speaks_chinese(self, browser, alice, words):
        alice.language = "zh-hans"
        alice.save()
        fact = fact_row(alice, words, "喜欢蓝色的船。", applies_to="航海")
        old = fact_row(alice, words, "喜欢红色的船。", status="retired", why="说错了")
        known = re.compile("MaxClaw|I like the.*boat|Boats|JSON|&[a-z0-9#]+;")
        for address in ("/memory/", f"/memory/{fact.pk}/", f"/memory/{old.pk}/", f"/memory/{fact.pk}/forget/"):
            text = known.sub("", re.sub("<[^>]*>", "", shown(browser, address)))
            assert not re.search("[A-Za-z]{3}", text), text


@pytest.mark.django_db
class TestEndpoints:
    def test_facts_are_listed_with_their_proofs(self, api, alice, bob, thread, words):
        fact = fact_row(alice, words, "Likes the blue boat.")
        fact_row(bob, text="Bob's.", legacy=True)
        retired = fact_row(alice, words, "Gone.", status="retired")
        answer = api.get("/api/facts/", {"q": "BLUE"}).json()
        [row] = answer["facts"]
        assert (row["id"], row["text"], row["status"], answer["next_before"]) == (fact.pk, fact.text, "active", None)
        [proof] = row["evidence"]
        assert (proof["kind"], proof["words"]["message_id"], proof["accepted"]) == ("max-stated", words.pk, None)
        assert proof["words"]["channel"] == thread.channel
        assert [row["id"] for row in api.get("/api/facts/", {"shown": "earlier"}).json()["facts"]] == [retired.pk]
        first = api.get("/api/facts/", {"limit": 1}).json()
        assert first["next_before"] is None and api.get(f"/api/facts/{fact.pk}/").json() == row
        assert api.get("/api/facts/", {"limit": 0}).status_code == 400

    def test_a_fact_is_corrected_set_aside_brought_back_and_forgotten(self, api, alice, words):
        fact = fact_row(alice, words, "Likes the red boat.", applies_to="sailing")
        secret = api.post(f"/api/facts/{fact.pk}/correct/", {"text": "sk-ant-api03-" + "a1B2" * 20})
        assert (secret.status_code, secret.json()["code"]) == (400, "bad-fact")
        new = api.post(f"/api/facts/{fact.pk}/correct/", {"text": "Likes the blue boat."}).json()
        assert (new["text"], new["applies_to"], new["writer"]) == ("Likes the blue boat.", "sailing", "person")
        assert api.post(f"/api/facts/{fact.pk}/correct/", {"text": "Late."}).status_code == 409
        assert api.post(f"/api/facts/{new['id']}/set-aside/").json()["status"] == "retired"
        back = api.post(f"/api/facts/{new['id']}/bring-back/").json()
        assert (back["status"], back["text"]) == ("active", "Likes the blue boat.")
        stays = api.post(f"/api/facts/{back['id']}/forget/").json()["stays"]
        assert [place["message_id"] for place in stays] == [words.pk]
        assert api.get(f"/api/facts/{back['id']}/").status_code == 404

    def test_anothers_fact_is_answered_like_an_unknown_one(self, api, browser, bob):
        foreign = fact_row(bob, text="Bob's.", legacy=True)
        for method, address in [("get", ""), ("post", "correct/"), ("post", "set-aside/"), ("post", "forget/")]:
            answers = [getattr(api, method)(f"/api/facts/{pk}/{address}") for pk in (foreign.pk, 2**62, 2**70)]
            assert [answer.status_code for answer in answers] == [404] * 3
            assert answers[0].json() == answers[1].json() and answers[0].json()["code"] == "no-such-fact"
            assert getattr(browser, method)(f"/memory/{foreign.pk}/{address}").status_code == 404
        foreign.refresh_from_db()
        assert foreign.status == "active"

    def test_nobody_sees_a_memory_without_signing_in(self, client):
        assert APIClient().get("/api/facts/").status_code in (401, 403)
        assert client.get("/memory/").status_code == 302


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("size", "scheme", "language"),
    [({"viewport": {"width": 1280, "height": 800}}, "light", "en"), (PHONE, "dark", "zh-hans")],
    ids=["desktop", "phone"],
)
def test_from_the_menu_to_the_words_by_keys_and_by_touch(
    server, alice, thread, words, open_tab, size, scheme, language
):
    """Every page of the memory is accessible and fits; correcting and forgetting need no mouse, on a phone no keys."""
    alice.language = language
    alice.save()
    exchange(thread)
    fact = fact_row(alice, words, "Likes the blue boat.", applies_to="sailing")
    fact_row(alice, words, "w" * 400)
    page = open_tab(server, alice, color_scheme=scheme, **size).page

    def use(target):
        if size is PHONE:
            target.tap()
        else:
            target.press("Enter")

    def check():
        assert_accessible(page)
        assert_fits(page)

    page.goto(f"{server.url}/account/")
    use(page.locator('a[href="/memory/"]'))
    expect(page.locator(".fact")).to_have_count(2)
    check()
    page.locator("input[type=search]").fill("BLUE")
    page.keyboard.press("Enter")
    expect(page.locator(".fact")).to_have_count(1)
    use(page.locator(".fact .buttons a").first)
    expect(page).to_have_url(f"{server.url}/memory/{fact.pk}/")
    check()
    page.locator("#id_text").fill("Likes the green boat.")
    use(page.locator("form.fields button"))
    expect(page.locator(".notice")).to_be_visible()
    check()
    use(page.locator("a.danger"))
    expect(page.locator("button.danger")).to_be_visible()
    check()
    use(page.locator("button.danger"))
    expect(page.locator(".notice")).to_be_visible()
    check()
    use(page.locator(".stays a").first)
    expect(page).to_have_url(f"{server.url}/c/{thread.channel}/#m{words.pk}")
    assert not Fact.objects.filter(text="Likes the green boat.").exists()
    assert Message.objects.filter(pk=words.pk).exists()
