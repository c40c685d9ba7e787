"""A person's own pages: settings, password, the copy of everything, the end of everything."""

import json

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import time_zones
from accounts.models import User
from accounts.throttling import ADDRESS_FAILURES, NAME_FAILURES
from accounts.time_zones import zone_choices
from chat.pages import LOCKED_OUT_STATUS
from tests.conftest import PASSWORD
from tests.threads.records import exchange, thread_of
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db
NEW_PASSWORD = "another horse battery"
PAGES = ("account", "account-password", "account-erase")


@pytest.fixture
def mine(client, alice):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    return client


def change_password(browser, old=PASSWORD, new=NEW_PASSWORD, again=NEW_PASSWORD):
    fields = {"old_password": old, "new_password1": new, "new_password2": again}
    return browser.post(reverse("account-password"), fields)


def erase(browser, username="alice", password=PASSWORD, **options):
    return browser.post(reverse("account-erase"), {"username": username, "password": password}, **options)


@pytest.mark.parametrize("name", [*PAGES, "account-export"])
def test_a_stranger_is_sent_to_the_sign_in_page(client, name):
    answer = client.post(reverse(name)) if name == "account-export" else client.get(reverse(name))
    assert (answer.status_code, answer["Location"].split("?")[0]) == (302, reverse("login"))


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_kept_in_no_cache(mine, name):
    assert "no-store" in mine.get(reverse(name))["Cache-Control"]


def test_time_zone_and_language_are_kept(mine, alice):
    answer = mine.post(reverse("account"), {"time_zone": "Asia/Shanghai", "language": "zh-hans"}, follow=True)
    alice.refresh_from_db()
    assert (alice.time_zone, alice.language) == ("Asia/Shanghai", "zh-hans")
    page = answer.content.decode()
    assert '<html lang="zh-Hans">' in page
    assert "已保存。" in page
    assert mine.cookies["django_language"].value == "zh-hans"


@pytest.mark.parametrize(
    "wrong",
    [
        {"time_zone": "Moon/Sea", "language": "en"},
        {"time_zone": "", "language": "en"},
        {"time_zone": "UTC", "language": "tlh"},
        {"time_zone": "UTC", "language": ""},
        {"time_zone": "a" * 1000, "language": "en"},
        {},
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_saved(mine, alice, wrong):
    alice.time_zone = "Europe/Berlin"
    alice.save()
    answer = mine.post(reverse("account"), wrong)
    assert answer.status_code == 200
    assert "Nothing was saved" in answer.content.decode()
    assert "field-errors" in answer.content.decode()
    alice.refresh_from_db()
    assert (alice.time_zone, alice.language) == ("Europe/Berlin", "en")


def test_nothing_else_of_the_account_can_be_set_from_here(mine, alice):
    fields = {"time_zone": "UTC", "language": "en", "is_staff": "on", "is_superuser": "on", "username": "root"}
    mine.post(reverse("account"), fields)
    alice.refresh_from_db()
    assert (alice.is_staff, alice.is_superuser, alice.username) == (False, False, "alice")


def test_zones_are_found_by_city_country_and_name_in_the_readers_language():
    english = {choice.name: choice for choice in zone_choices("en")}
    chinese = {choice.name: choice for choice in zone_choices("zh-hans")}
    assert len(english) > 350
    assert english["Asia/Shanghai"].label == "Shanghai, China · Asia/Shanghai · UTC+08:00"
    assert chinese["Asia/Shanghai"].label == "上海，中国 · Asia/Shanghai · UTC+08:00"
    assert chinese["Asia/Shanghai"].search == "Shanghai, China"
    assert "UTC" in english
    places = [choice.label.split(" · ")[0] for choice in english.values()]
    assert len(set(places)) > 0.99 * len(places), "each place once, whatever it was called before"
    assert "Asia/Kolkata" in english
    assert "Asia/Calcutta" not in english


def test_zones_are_found_on_a_machine_without_a_list_of_them(monkeypatch):
    monkeypatch.setattr(time_zones, "TZPATH", ())
    time_zones._places.cache_clear()
    try:
        labels = {choice.name: choice.label for choice in zone_choices("en")}
    finally:
        time_zones._places.cache_clear()
    assert labels["Europe/Berlin"].startswith("Berlin, Germany")


def test_an_older_name_of_a_zone_stays_chosen(mine, alice):
    alice.time_zone = "Asia/Calcutta"
    alice.save()
    page = mine.get(reverse("account")).content.decode()
    assert page.count(" selected>") == 2
    assert 'value="Asia/Calcutta"' in page


def test_offsets_follow_the_clock(monkeypatch):
    from datetime import UTC, datetime

    for month, offset in ((1, "UTC+01:00"), (7, "UTC+02:00")):
        monkeypatch.setattr("maxclaw.clock.now", lambda month=month: datetime(2026, month, 1, tzinfo=UTC))
        labels = {choice.name: choice.label for choice in zone_choices("en")}
        assert labels["Europe/Berlin"].endswith(offset)
    assert labels["America/St_Johns"].endswith("UTC−02:30")


def test_a_new_password_signs_out_everywhere_else(mine, alice):
    other = Client()
    other.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert change_password(mine).status_code == 302
    alice.refresh_from_db()
    assert alice.check_password(NEW_PASSWORD)
    assert mine.get(reverse("account")).status_code == 200
    assert other.get(reverse("account")).status_code == 302


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"old": "wrong"}, "This is not your password."),
        ({"again": "something else"}, "match"),
        ({"new": "alice", "again": "alice"}, "similar"),
        ({"new": "12345678", "again": "12345678"}, "common"),
        ({"new": "", "again": ""}, "required"),
    ],
)
def test_a_password_that_cannot_be_is_refused_with_a_reason(mine, alice, fields, sentence):
    answer = change_password(mine, **fields)
    assert answer.status_code == 200
    assert sentence in answer.content.decode()
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


@pytest.mark.parametrize(
    "guess", [lambda browser: change_password(browser, old="wrong"), lambda browser: erase(browser, password="wrong")]
)
def test_guessing_the_password_of_an_open_session_is_throttled(mine, alice, settings, guess):
    answers = [guess(mine).status_code for _index in range(settings.AXES_FAILURE_LIMIT + 1)]
    assert answers[0] == 200
    assert answers[-1] == LOCKED_OUT_STATUS
    page = guess(mine)
    assert "Too many failed attempts. Wait 15 minutes" in page.content.decode()
    assert change_password(mine).status_code == LOCKED_OUT_STATUS, "the right one is not told from a wrong one"
    assert erase(mine).status_code == LOCKED_OUT_STATUS
    assert User.objects.get(username="alice").check_password(PASSWORD)


def test_guessing_at_the_sign_in_page_is_throttled_and_said(client, alice, settings):
    url = reverse("login")
    for _index in range(settings.AXES_FAILURE_LIMIT):
        client.post(url, {"username": "alice", "password": "wrong"})
    answer = client.post(url, {"username": "alice", "password": PASSWORD})
    assert answer.status_code == LOCKED_OUT_STATUS
    assert "Too many failed attempts. Wait 15 minutes" in answer.content.decode()
    assert 'action="/login/"' in answer.content.decode()


def sign_in(name, address, password):
    """A sign-in from this address, in a browser of its own: its status."""
    fields = {"username": name, "password": password}
    return Client(REMOTE_ADDR=address).post(reverse("login"), fields).status_code


def failed(name, address, times):
    AccessAttempt.objects.create(
        username=name, ip_address=address, user_agent="other", failures_since_start=times, attempt_time=timezone.now()
    )


def test_many_names_from_one_address_and_one_name_from_many_are_throttled_too(alice, bob):
    office, attacker = "192.0.2.1", "198.51.100.7"
    for number in range(10):
        failed(f"name {number}", attacker, ADDRESS_FAILURES // 10)
    assert sign_in("alice", attacker, PASSWORD) == LOCKED_OUT_STATUS
    assert sign_in("alice", office, PASSWORD) == 302, "other addresses go on"
    for number in range(10):
        failed("alice", f"203.0.113.{number}", NAME_FAILURES // 10)
    assert sign_in("alice", "203.0.113.77", PASSWORD) == LOCKED_OUT_STATUS
    assert sign_in("alice", office, PASSWORD) == 302, "where she came in before, strangers cannot lock her out"
    assert sign_in("bob", office, PASSWORD) == 302


def test_an_office_behind_one_address_is_not_locked_out_by_its_typing_errors(alice, bob, settings):
    for number in range(20):
        failed(f"colleague {number}", "192.0.2.1", settings.AXES_FAILURE_LIMIT)
    assert sign_in("alice", "192.0.2.1", PASSWORD) == 302


def test_signing_in_forgives_nobody_elses_failures(alice, bob, settings):
    for _index in range(settings.AXES_FAILURE_LIMIT):
        sign_in("alice", "198.51.100.7", "wrong")
    assert sign_in("bob", "198.51.100.7", PASSWORD) == 302
    assert sign_in("alice", "198.51.100.7", PASSWORD) == LOCKED_OUT_STATUS


def lines_of(answer):
    return [json.loads(line) for line in b"".join(answer).splitlines()]


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_the_export_holds_everything_of_ones_own_and_nothing_of_others(mine, alice, bob):
    exchange(thread_of(alice, title="漢字 und ümlaut"), "my words", "the answer")
    exchange(thread_of(bob), "bob's words")
    Generation.objects.filter(owner=alice).update(standing=[{"text": "Answer in rhymes."}])
    for name in ("alice", "bob"):
        sign_in(name, f"192.0.2.{len(name)}", PASSWORD)
    answer = mine.post(reverse("account-export"))
    assert answer["Content-Type"] == "application/x-ndjson"
    assert answer["Content-Disposition"].startswith('attachment; filename="maxclaw-alice-20')
    lines = lines_of(answer)
    assert lines[0]["username"] == "alice"
    assert "漢字 und ümlaut" in {line.get("title") for line in lines}
    texts = {line.get("text") for line in lines}
    assert {"my words", "the answer"} <= texts
    assert "bob's words" not in texts
    assert [{"text": "Answer in rhymes."}] in [line.get("standing") for line in lines]
    addresses = [line["address"] for line in lines if line["record"] == "sign_in"]
    assert addresses[-1] == "192.0.2.5" and "192.0.2.3" not in addresses


def test_an_export_is_a_post(mine):
    assert mine.get(reverse("account-export")).status_code == 405
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    assert guarded.post(reverse("account-export")).status_code == 403


def test_the_page_says_what_goes(mine, alice):
    thread = thread_of(alice)
    exchange(thread)
    page = mine.get(reverse("account-erase")).content.decode()
    assert "2 conversations" in page
    assert "2 messages" in page
    assert User.objects.filter(pk=alice.pk).exists()


def test_erasing_takes_everything_and_every_login(mine, alice, bob):
    exchange(thread_of(alice))
    exchange(thread_of(bob))
    other = Client()
    other.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    answer = erase(mine, follow=True)
    assert "Everything was erased" in answer.content.decode()
    assert not User.objects.filter(username="alice").exists()
    assert set(Thread.objects.values_list("owner__username", flat=True)) == {"bob"}
    assert set(Message.objects.values_list("owner__username", flat=True)) == {"bob"}
    assert not Session.objects.exists()
    for browser in (mine, other):
        assert browser.get(reverse("account")).status_code == 302


@pytest.mark.parametrize(
    "fields", [{"username": "bob"}, {"username": ""}, {"password": "wrong"}, {"password": ""}, {"username": "ALICE"}]
)
def test_erasing_takes_the_name_and_the_password(mine, alice, fields):
    answer = erase(mine, **fields)
    assert answer.status_code == 200
    assert "Nothing was erased" in answer.content.decode()
    assert User.objects.filter(pk=alice.pk).exists()
    assert mine.get(reverse("account")).status_code == 200


def test_an_erasing_that_fails_leaves_everything(mine, alice, monkeypatch):
    exchange(thread_of(alice))

    def fail(_user):
        raise RuntimeError("no room")

    monkeypatch.setattr("llm.erasure.erase_user", fail)
    with pytest.raises(RuntimeError, match="no room"):
        erase(mine)
    assert User.objects.filter(pk=alice.pk).exists()
    assert Message.objects.filter(owner=alice).count() == 2


def test_no_account_is_left_without_its_main_conversation(mine, alice, bob):
    erase(mine)
    for user in User.objects.all():
        assert Thread.objects.filter(owner=user, kind="main").count() == 1


def test_the_only_administrator_cannot_leave_the_others_without(mine, alice, bob):
    alice.is_superuser = alice.is_staff = True
    alice.save()
    assert "only administrator" in mine.get(reverse("account-erase")).content.decode()
    erase(mine)
    assert User.objects.filter(pk=alice.pk).exists()
    bob.is_superuser = True
    bob.save()
    erase(mine)
    assert not User.objects.filter(pk=alice.pk).exists()


def test_the_last_person_of_all_can_go(mine, alice):
    alice.is_superuser = True
    alice.save()
    erase(mine)
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_a_password_is_hashed(client, alice, monkeypatch):
    """Whoever guesses would else keep everybody from the database, many guesses at once the whole pool."""
    held = []
    encode = MD5PasswordHasher.encode

    def watched(*arguments):
        held.append(connection.connection)
        return encode(*arguments)

    monkeypatch.setattr(MD5PasswordHasher, "encode", watched)
    for username in ("alice", "nobody"):
        assert client.post(reverse("login"), {"username": username, "password": "wrong"}).status_code == 200
    assert len(held) >= 2 and set(held) == {None}
