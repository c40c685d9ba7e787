"""Staff see who, when and how much; deleting in the admin is erasing."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.urls import reverse

from tests.threads.records import exchange, thread_of
from threads.lifecycle import create_thread
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db
SECRET = "secret-5d1c"


@pytest.fixture
def staff(charlie, client):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    client.force_login(charlie)
    return charlie


@pytest.fixture
def thread(alice):
    made = thread_of(alice, title=f"{SECRET} title", scope="isolated")
    exchange(made, f"{SECRET} question", f"{SECRET} answer")
    Generation.objects.filter(thread=made).update(opening=f"{SECRET} opening", summary=f"{SECRET} summary")
    return made


def admin_url(page, *arguments):
    return reverse(f"admin:threads_thread_{page}", args=arguments)


def test_staff_see_a_conversation_without_its_words(client, staff, thread):
    for url in (
        admin_url("changelist"),
        admin_url("change", thread.pk),
        admin_url("history", thread.pk),
        admin_url("delete", thread.pk),
    ):
        page = client.get(url)
        assert page.status_code == 200, url
        assert SECRET not in page.content.decode(), url
    assert thread.channel in client.get(admin_url("changelist"), {"q": thread.channel}).content.decode()


def test_staff_see_what_permissions_grant(client, charlie, thread):
    charlie.is_staff = True
    charlie.save()
    client.force_login(charlie)
    assert client.get(admin_url("changelist")).status_code == 403
    charlie.user_permissions.add(Permission.objects.get(codename="view_thread"))
    assert client.get(admin_url("changelist")).status_code == 200
    assert client.post(admin_url("delete", thread.pk), {"post": "yes"}).status_code == 403
    assert Thread.objects.filter(pk=thread.pk).exists()


def test_nobody_writes_a_conversation_here(client, staff, thread):
    assert client.get(admin_url("add")).status_code == 403
    assert client.post(admin_url("change", thread.pk), {"title": "other"}).status_code == 403


def test_deleting_is_erasing_with_tasks_and_without_a_word_left_in_the_log(client, staff, thread, alice):
    task = create_thread(alice, kind="task", parent=thread)
    page = client.post(admin_url("delete", thread.pk), {"post": "yes"}, follow=True)
    assert page.status_code == 200
    assert SECRET not in page.content.decode()
    assert not Thread.objects.filter(pk__in=(thread.pk, task.pk)).exists()
    assert not Message.objects.filter(thread_id=thread.pk).exists()
    [entry] = LogEntry.objects.filter(object_id=str(thread.pk))
    assert (entry.object_repr, entry.change_message, entry.user) == ("", "", staff)


def test_deleting_several_takes_tasks_among_them_once(client, staff, thread, alice):
    task = create_thread(alice, kind="task", parent=thread)
    chosen = {"action": "delete_selected", "_selected_action": [thread.pk, task.pk], "post": "yes"}
    page = client.post(admin_url("changelist"), chosen, follow=True)
    assert page.status_code == 200
    assert not Thread.objects.filter(pk__in=(thread.pk, task.pk)).exists()


def test_the_main_conversation_cannot_be_deleted_here(client, staff, alice):
    main = Thread.objects.get(owner=alice, kind="main")
    assert client.post(admin_url("delete", main.pk), {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [main.pk], "post": "yes"}
    client.post(admin_url("changelist"), chosen, follow=True)
    assert Thread.objects.filter(pk=main.pk).exists()
