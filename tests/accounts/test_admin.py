"""Accounts in the admin: made, changed, kept out, and erased rather than deleted."""

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from rest_framework.authtoken.models import Token, TokenProxy

from accounts.models import User
from tests.threads.records import exchange, thread_of
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(charlie, client):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    client.force_login(charlie)
    return charlie


def test_accounts_are_listed_made_and_changed(client, staff, alice):
    assert alice.username in client.get(reverse("admin:accounts_user_changelist")).content.decode()
    page = client.get(reverse("admin:accounts_user_change", args=[alice.pk]))
    assert "time_zone" in page.content.decode()
    words = "a long enough phrase"
    made = {"username": "dora", "password1": words, "password2": words, "usable_password": "true"}
    client.post(reverse("admin:accounts_user_add"), made)
    assert Thread.objects.filter(owner__username="dora", kind="main").exists()


def test_erasing_an_account_says_what_goes_and_reports_what_went(client, staff, alice):
    exchange(thread_of(alice, scope="isolated"))
    url = reverse("admin:accounts_user_delete", args=[alice.pk])
    asked = client.get(url).content.decode()
    assert "2 conversations" in asked
    assert "2 messages" in asked
    assert User.objects.filter(pk=alice.pk).exists()
    report = client.post(url, {"username": "alice"}, follow=True).content.decode()
    assert "alice was erased: 2 conversations, 2 messages" in report
    assert not User.objects.filter(username="alice").exists()
    assert not Message.objects.filter(owner_id=alice.pk).exists()


@pytest.mark.parametrize("typed", ["", "Alice", "bob", "yes"])
def test_an_account_is_erased_only_when_its_name_is_typed(client, staff, alice, typed):
    url = reverse("admin:accounts_user_delete", args=[alice.pk])
    assert "Nothing was erased" in client.post(url, {"username": typed, "post": "yes"}).content.decode()
    assert User.objects.filter(pk=alice.pk).exists()


def test_the_log_keeps_who_erased_an_account_and_not_its_name(client, staff, alice):
    pk = alice.pk
    client.post(reverse("admin:accounts_user_delete", args=[pk]), {"username": "alice"})
    [entry] = LogEntry.objects.filter(object_id=str(pk))
    assert (entry.user, entry.object_repr, entry.change_message) == (staff, "", "")


def test_accounts_are_not_erased_by_the_list(client, staff, alice):
    chosen = {"action": "delete_selected", "_selected_action": [alice.pk], "post": "yes"}
    client.post(reverse("admin:accounts_user_changelist"), chosen, follow=True)
    assert User.objects.filter(pk=alice.pk).exists()


def test_a_deactivated_person_is_out_at_once_and_can_be_let_in_again(client, staff, alice):
    theirs = Client()
    theirs.force_login(alice)
    assert theirs.get(reverse("account")).status_code == 200
    url = reverse("admin:accounts_user_changelist")
    client.post(url, {"action": "deactivate", "_selected_action": [alice.pk, staff.pk]})
    assert theirs.get(reverse("account")).status_code == 302
    staff.refresh_from_db()
    assert staff.is_active
    client.post(url, {"action": "activate", "_selected_action": [alice.pk]})
    alice.refresh_from_db()
    assert alice.is_active


@pytest.fixture
def helper(bob):
    """Staff who may do everything with accounts, and are no superuser."""
    bob.is_staff = True
    bob.save()
    rights = ("add_user", "change_user", "view_user", "delete_user", "change_group", "view_group")
    bob.user_permissions.set(Permission.objects.filter(codename__in=rights))
    browser = Client()
    browser.force_login(bob)
    return browser


def test_staff_cannot_give_themselves_more_than_they_have(helper, bob, staff):
    page = reverse("admin:accounts_user_change", args=[bob.pk])
    form = {"username": "bob", "is_superuser": "on", "is_staff": "on", "time_zone": "UTC", "language": "en"}
    form |= {"is_active": "on", "user_permissions": [Permission.objects.get(codename="read_private").pk]}
    helper.post(page, form)
    bob = User.objects.get(pk=bob.pk)
    assert not bob.is_superuser
    assert not bob.has_perm("threads.read_private")
    group = Group.objects.create(name="helpers")
    assert helper.post(reverse("admin:auth_group_change", args=[group.pk]), {"name": "other"}).status_code == 403


def test_staff_change_no_superuser_and_nobodys_password(helper, staff, alice):
    assert helper.post(reverse("admin:accounts_user_change", args=[staff.pk]), {"username": "x"}).status_code == 403
    assert helper.post(reverse("admin:accounts_user_delete", args=[staff.pk]), {"username": "x"}).status_code == 403
    words = "a long enough phrase"
    for person in (staff, alice):
        url = reverse("admin:auth_user_password_change", args=[person.pk])
        form = {"password1": words, "password2": words, "usable_password": "true"}
        assert helper.post(url, form).status_code == 403
    chosen = {"action": "deactivate", "_selected_action": [staff.pk]}
    helper.post(reverse("admin:accounts_user_changelist"), chosen)
    staff.refresh_from_db()
    assert staff.is_active


def test_a_superuser_sets_a_password(client, staff, alice):
    words = "a long enough phrase"
    url = reverse("admin:auth_user_password_change", args=[alice.pk])
    client.post(url, {"password1": words, "password2": words, "usable_password": "true"})
    alice.refresh_from_db()
    assert alice.check_password(words)


def test_access_tokens_are_nowhere_in_the_admin(client, staff, alice):
    token = Token.objects.create(user=alice)
    assert token.key not in client.get(reverse("admin:index")).content.decode()
    assert not admin.site.is_registered(TokenProxy)
    assert not admin.site.is_registered(Token)


def test_nobody_erases_their_own_account_from_here(client, staff):
    url = reverse("admin:accounts_user_delete", args=[staff.pk])
    assert client.post(url, {"username": staff.username}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [staff.pk], "post": "yes"}
    client.post(reverse("admin:accounts_user_changelist"), chosen, follow=True)
    assert User.objects.filter(pk=staff.pk).exists()


def test_permissions_are_named_in_the_readers_language(client, staff):
    staff.language = "zh-hans"
    staff.save()
    page = client.get(reverse("admin:auth_group_add")).content.decode()
    assert "对话 | 可删除" in page and "可以读取对话的私人文本" in page
    assert "Can " not in page
