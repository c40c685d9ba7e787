"""Deleting an account in the admin erases everything of its owner's."""

import pytest
from django.urls import reverse

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


def test_deleting_an_account_erases_everything_of_its_owner(client, staff, alice):
    exchange(thread_of(alice, scope="isolated"))
    url = reverse("admin:accounts_user_delete", args=[alice.pk])
    assert client.get(url).status_code == 200
    assert client.post(url, {"post": "yes"}, follow=True).status_code == 200
    assert not User.objects.filter(pk=alice.pk).exists()
    assert not Message.objects.filter(owner_id=alice.pk).exists()


def test_nobody_erases_their_own_account_from_here(client, staff):
    assert client.post(reverse("admin:accounts_user_delete", args=[staff.pk]), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [staff.pk], "post": "yes"}
    client.post(reverse("admin:accounts_user_changelist"), chosen, follow=True)
    assert User.objects.filter(pk=staff.pk).exists()
