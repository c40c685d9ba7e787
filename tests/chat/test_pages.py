"""Pages over HTTP: signing in and out, the chat page, languages, content policy."""

import re

import pytest
from django.urls import reverse

from tests.conftest import PASSWORD
from threads.lifecycle import create_thread

pytestmark = pytest.mark.django_db


def sign_in(client, username, password, **fields):
    return client.post(reverse("login"), {"username": username, "password": password, **fields})


def test_nobody_sees_a_page_without_signing_in(client):
    for name in ("chat", "api-docs"):
        answer = client.get(reverse(name))
        assert (answer.status_code, answer["Location"].split("?")[0]) == (302, reverse("login"))


def test_signing_in_leads_to_the_page_that_was_asked_for(client, alice):
    thread = create_thread(alice)
    wanted = reverse("conversation", args=[thread.channel])
    answer = sign_in(client, "alice", PASSWORD, next=wanted)
    assert (answer.status_code, answer["Location"]) == (302, wanted)
    assert client.get(reverse("login")).status_code == 302


def test_signing_in_never_leads_to_another_site(client, alice):
    assert sign_in(client, "alice", PASSWORD, next="https://evil.example/")["Location"] == "/"


def test_a_wrong_password_is_said_and_the_name_stays(client, alice):
    answer = sign_in(client, "alice", "wrong")
    assert answer.status_code == 200
    assert "The name or the password is wrong" in answer.content.decode()
    assert 'value="alice"' in answer.content.decode()


@pytest.mark.parametrize("name", ["a" * 151, "a" * 256, "a" * 5_000, "ﷺ" * 150])
def test_a_name_longer_than_any_is_a_wrong_one(client, alice, name):
    answer = client.post(reverse("login"), {"username": name, "password": PASSWORD})
    wrong = client.post(reverse("login"), {"username": "nobody", "password": PASSWORD})
    assert answer.status_code == wrong.status_code == 200
    assert answer.context["form"].errors == wrong.context["form"].errors


def test_guessing_is_throttled_with_a_sentence(client, alice, settings):
    settings.AXES_FAILURE_LIMIT = 3
    for _ in range(3):
        answer = sign_in(client, "alice", "wrong")
    assert answer.status_code == 429
    assert "Too many failed attempts. Wait 15 minutes" in answer.content.decode()
    assert sign_in(client, "alice", PASSWORD).status_code == 429


def test_signing_out_takes_a_post(client, alice):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse("logout")).status_code == 405
    assert client.post(reverse("logout")).status_code == 302
    assert client.get(reverse("chat")).status_code == 302


def test_the_chat_page_lists_ones_own_conversations_alone(client, alice, bob):
    create_thread(alice, title="Alices boats")
    create_thread(bob, title="Bobs trains")
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("chat")).content.decode()
    assert "Alices boats" in page
    assert "Bobs trains" not in page


def test_the_page_has_no_inline_script_style_or_handler(client, alice):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    for address in (reverse("chat"), reverse("login"), "/nothing/here/"):
        answer = client.get(address)
        html = answer.content.decode()
        for script in re.findall(r"<script[^>]*>", html):
            assert " src=" in script or 'type="application/json"' in script
        assert not re.search(r"<style|\sstyle=|\son\w+=", html)
        policy = answer["Content-Security-Policy"]
        assert "script-src 'self';" in policy + ";"
        assert "unsafe" not in policy


def test_only_the_admin_has_the_looser_policy(client, admin_client):
    assert "unsafe-eval" in admin_client.get(reverse("admin:index"))["Content-Security-Policy"]
    assert "unsafe" not in admin_client.get(reverse("chat"))["Content-Security-Policy"]


def test_the_admin_is_signed_in_to_by_the_one_sign_in_page(client, alice):
    answer = client.get(reverse("admin:index"), follow=True)
    assert answer.redirect_chain[-1][0].startswith(reverse("login"))
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse("admin:index"), follow=True).status_code == 403


def test_the_language_is_kept_with_the_account(client, alice):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    client.post(reverse("set_language"), {"language": "zh-hans", "next": "/"})
    alice.refresh_from_db()
    assert alice.language == "zh-hans"
    page = client.get(reverse("chat")).content.decode()
    assert '<html lang="zh-Hans">' in page
    assert "新对话" in page


def test_an_unknown_language_changes_nothing(client, alice):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    client.post(reverse("set_language"), {"language": "tlh", "next": "/"})
    alice.refresh_from_db()
    assert alice.language == "en"


def test_the_sign_in_page_follows_the_browsers_language(client):
    page = client.get(reverse("login"), HTTP_ACCEPT_LANGUAGE="zh-CN,zh;q=0.9").content.decode()
    assert "登录" in page


def test_the_emulators_banner_shows_only_while_it_answers(client, alice, settings):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    settings.EMULATOR_URL = "http://127.0.0.1:9"
    assert "No model is configured." in client.get(reverse("chat")).content.decode()
    settings.ANTHROPIC_API_KEY = "sk-example"
    assert "No model is configured." not in client.get(reverse("chat")).content.decode()


def test_opening_the_page_takes_few_queries_however_many_conversations(client, alice, django_assert_max_num_queries):
    for number in range(30):
        create_thread(alice, title=f"thread {number}")
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    with django_assert_max_num_queries(5):
        client.get(reverse("chat"))
