"""The console as a whole: every page opens, and private words show nowhere by themselves."""

import re

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db.models import CharField, JSONField, TextField
from django.test import Client
from django.urls import NoReverseMatch, URLResolver, get_resolver, reverse

from accounts.models import User
from agent.models import ImportJob, InboxItem
from maxclaw.admin_theme import navigation
from memory.models import Fact
from tests.accounts.test_erasing import places_with
from tests.maxclaw.console import name_of, pages, rows
from tests.maxclaw.console_records import SECRET
from threads.models import Message

pytestmark = pytest.mark.django_db


def test_every_page_opens_shows_no_private_word_changes_no_row_and_is_no_reading(console, thread):
    for model in admin.site._registry:
        assert model._default_manager.exists(), name_of(model)
    before = rows()
    for url in pages():
        answer = console.get(url)
        assert answer.status_code == 200, url
        assert SECRET not in answer.content.decode(), url
    assert rows() == before


# Names, digests and sentences that we or a catalog give, and ids of the provider's.
OURS = {
    "agent_importjob.stored_as",
    "agent_inboxitem.source",
    "agent_overflowevent.pruned",
    "agent_overflowevent.source",
    "agent_taskframe.source",
    "llm_modelcall.anchors",
    "llm_modelcall.body_sha256",
    "llm_modelcall.model",
    "llm_modelcall.prices",
    "llm_modelcall.request_id",
    "llm_modelcall.stop_reason",
    "llm_requestheader.sha256",
    "llm_requestheader.text",
    "memory_embeddedthread.model",
    "memory_fact.category",
    "memory_fact.embedding_model",
    "memory_fact.fingerprint",
    "memory_fact.graduated_commit",
    "memory_fact.graduated_rule",
    "memory_messagechunk.model",
    "shadow_shadowfactproposal.category",
    "shadow_shadowfactproposal.fingerprint",
    "shadow_shadowrun.error",
    "shadow_shadowrun.model",
    "shadow_shadowrun.prices",
    "threads_thread.category",
    "threads_thread.channel",
    "threads_thread.lease_holder",
    "threads_thread.model",
}


def test_every_column_that_holds_words_holds_the_private_one(thread):
    """Else the test above proves nothing of it."""
    columns = {
        f"{model._meta.db_table}.{field.column}"
        for model in apps.get_models()
        if model._meta.app_label in ("agent", "threads", "llm", "memory", "shadow")
        for field in model._meta.local_concrete_fields
        if isinstance(field, CharField | TextField | JSONField) and not field.choices
    }
    assert columns - set(places_with(SECRET)) == OURS


def test_staff_see_what_permissions_grant(bob, thread):
    bob.is_staff = True
    bob.save()
    browser = Client()
    browser.force_login(bob)
    empty = browser.get(reverse("admin:index")).content.decode()
    assert "was given nothing to see yet" in empty
    for url in (reverse("admin:agent_health"), reverse("admin:llm_modelcall_costs")):
        assert browser.get(url).status_code == 403
    for model in admin.site._registry:
        assert browser.get(reverse(f"admin:{name_of(model)}_changelist")).status_code == 403, model
    told = set()
    for model, options in admin.site._registry.items():
        for page in ("read", "history", "delete", "change", "retire"):
            for row in (options.get_queryset(None).first().pk, 10**9):
                try:
                    address = reverse(f"admin:{name_of(model)}_{page}", args=[row])
                except NoReverseMatch:
                    continue
                told |= {browser.get(address).status_code, browser.post(address).status_code}
    assert told <= {403, 405}, "nothing says which ids there are"
    bob.user_permissions.add(Permission.objects.get(codename="view_modelcall"))
    bob = User.objects.get(pk=bob.pk)
    assert browser.get(reverse("admin:llm_modelcall_changelist")).status_code == 200
    shown = browser.get(reverse("admin:index")).content.decode()
    assert "Dollars today" in shown
    assert "Queued tasks" not in shown
    assert reverse("admin:threads_thread_changelist") not in shown


def test_people_who_are_no_staff_see_nothing(client, alice, thread):
    client.force_login(alice)
    for url in pages():
        assert client.get(url).status_code == 302, url
    assert client.get(reverse("admin:login")).status_code == 403


def test_staff_change_their_password_and_leave_where_everybody_does(console):
    answer = console.get(reverse("admin:password_change"))
    assert (answer.status_code, answer["Location"]) == (302, reverse("account-password"))
    assert console.get(reverse("admin:logout")).status_code == 405
    answer = console.post(reverse("admin:logout"))
    assert (answer.status_code, answer["Location"]) == (302, reverse("login"))
    assert console.get(reverse("admin:index")).status_code == 302


def test_pages_of_the_console_are_kept_in_no_cache(console, thread):
    assert "no-store" in console.get(reverse("admin:threads_thread_changelist"))["Cache-Control"]


def test_the_sidebar_leads_to_every_list(console, thread):
    shown = console.get(reverse("admin:index")).content.decode()
    linked = {item["link"] for group in navigation() for item in group["items"]}
    for model in admin.site._registry:
        url = reverse(f"admin:{name_of(model)}_changelist")
        assert url in linked, url
        assert url in shown


def addresses(patterns, known, prefix="/"):
    """(name, address) of every page outside the console, its parameters filled with what is there."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "admin":
                yield from addresses(pattern.url_patterns, known, prefix + str(pattern.pattern))
            continue
        address = prefix + str(pattern.pattern)
        for name in re.findall(r"<\w+:(\w+)>", address):
            address = re.sub(rf"<\w+:{name}>", str(known.get(name, 1)), address)
        yield pattern.name, address


def test_the_content_policy_is_looser_in_the_admin_alone(console, alice, thread):
    inside = console.get(reverse("admin:index"))["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-eval'" in inside
    assert "'unsafe-inline'" not in re.search(r"script-src[^;]*", inside).group()
    person = Client()
    person.force_login(alice)
    rows = {"job": ImportJob, "fact": Fact, "message": Message, "item": InboxItem}
    known = {name: table.objects.latest("pk").pk for name, table in rows.items()} | {"channel": thread.channel}
    opened = set()
    for name, address in addresses(get_resolver().url_patterns, known):
        for browser in (person, Client()):
            answer = browser.get(address)
            policy = answer["Content-Security-Policy"]
            # The page that tries the interface out styles elements in place.
            policy = policy.replace("style-src 'self' 'unsafe-inline'", "") if name == "api-docs" else policy
            assert "unsafe" not in policy, address
            if answer.status_code == 200:
                opened.add(name)
    assert opened >= {
        "account",
        "login",
        "chat",
        "conversation",
        "import",
        "search",
        "memory",
        "memory-fact",
        "api-docs",
    }


def test_groups_are_given_permissions(console, thread):
    group = Group.objects.get(name="helpers")
    right = Permission.objects.get(codename="view_thread")
    url = reverse("admin:auth_group_change", args=[group.pk])
    console.post(url, {"name": "helpers", "permissions": [right.pk]})
    assert list(group.permissions.all()) == [right]
