"""Reading somebody's private text in the console: a permission of its own, a POST, and a row for each reading."""

import pytest
from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse

from accounts import erasing
from accounts.models import User
from agent.models import InboxItem, OverflowEvent, TaskFrame, ToolCall, TurnEvent
from llm.models import ModelCall
from tests.maxclaw.console_records import SECRET, fill
from tests.threads.records import exchange, thread_of
from threads.admin import READING_PAGE_ROWS
from threads.models import Generation, Message, PrivateReading, Thread
from threads.private_reading import may_read, record_reading

pytestmark = pytest.mark.django_db
READABLE = (Thread, Message, Generation, InboxItem, TaskFrame, ToolCall, OverflowEvent, TurnEvent, ModelCall)


def granted(person, *rights):
    """A browser of a staff member with these permissions."""
    person.is_staff = True
    person.save()
    person.user_permissions.set(Permission.objects.filter(codename__in=rights))
    browser = Client()
    browser.force_login(User.objects.get(pk=person.pk))
    return browser


@pytest.fixture
def reader(bob):
    return granted(bob, "read_private", *(f"view_{model._meta.model_name}" for model in READABLE))


@pytest.fixture
def watcher(charlie):
    """Staff who see every row, and may not read."""
    return granted(charlie, *(f"view_{model._meta.model_name}" for model in READABLE))


@pytest.fixture
def thread(alice, charlie):
    made = fill(alice, charlie)
    PrivateReading.objects.all().delete()
    return made


def row_of(model, thread):
    """A row of the thread's with private text in it."""
    if model is Thread:
        return thread
    rows = model.objects.filter(thread_id=thread.pk)
    return rows.exclude(error="").get() if model is ModelCall else rows.first()


def url_of(model, page, pk):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=[pk])


@pytest.mark.parametrize("model", READABLE)
def test_whoever_may_read_reads_and_it_is_noted(reader, thread, model, alice, bob):
    row = row_of(model, thread)
    page = reader.get(url_of(model, "change", row.pk)).content.decode()
    assert url_of(model, "read", row.pk) in page
    assert SECRET not in page
    assert not PrivateReading.objects.exists()
    shown = reader.post(url_of(model, "read", row.pk))
    assert shown.status_code == 200
    assert SECRET in shown.content.decode()
    assert "no-store" in shown["Cache-Control"]
    [reading] = PrivateReading.objects.all()
    assert (reading.reader, reading.owner, reading.thread) == (bob, alice, thread)
    if model is Thread:
        ids = list(Message.objects.filter(thread=thread).order_by("pk").values_list("pk", flat=True))
        assert (reading.first_id, reading.last_id) == (ids[0], ids[-1])
    else:
        assert (reading.first_id, reading.last_id) == (row.pk, row.pk)


@pytest.mark.parametrize("model", READABLE)
def test_whoever_sees_rows_and_may_not_read_is_not_offered_it_and_refused(watcher, thread, model):
    row = row_of(model, thread)
    page = watcher.get(url_of(model, "change", row.pk))
    assert page.status_code == 200
    assert url_of(model, "read", row.pk) not in page.content.decode()
    assert watcher.post(url_of(model, "read", row.pk)).status_code == 403
    assert not PrivateReading.objects.exists()


@pytest.mark.parametrize("model", READABLE)
def test_reading_takes_the_right_to_see_the_row_too(bob, thread, model):
    browser = granted(bob, "read_private")
    row = row_of(model, thread)
    assert browser.post(url_of(model, "read", row.pk)).status_code == 403
    assert not PrivateReading.objects.exists()


@pytest.mark.parametrize("model", READABLE)
def test_a_get_reads_nothing(reader, thread, model):
    row = row_of(model, thread)
    answer = reader.get(url_of(model, "read", row.pk))
    assert answer.status_code == 405
    assert SECRET not in answer.content.decode()


@pytest.mark.parametrize("pk", ["0", "99999999", "x", "9" * 40])
def test_reading_what_is_not_there_is_not_found(reader, thread, pk):
    assert reader.post(url_of(Message, "read", pk)).status_code in (302, 404)
    assert not PrivateReading.objects.exists()


def test_a_call_whose_conversation_is_gone_can_be_read_and_is_noted(reader, thread):
    call = row_of(ModelCall, thread)
    ModelCall.objects.filter(pk=call.pk).update(thread_id=None)
    assert SECRET in reader.post(url_of(ModelCall, "read", call.pk)).content.decode()
    [reading] = PrivateReading.objects.all()
    assert (reading.owner, reading.thread, reading.first_id) == (call.owner, None, call.pk)


def test_a_long_conversation_is_read_page_by_page_and_each_is_noted(reader, alice):
    thread = thread_of(alice)
    for index in range(READING_PAGE_ROWS // 2 + 5):
        exchange(thread, f"question {index}.", f"answer {index}.")
    ids = list(Message.objects.filter(thread=thread).order_by("pk").values_list("pk", flat=True))
    first = reader.post(url_of(Thread, "read", thread.pk))
    assert first.context["next_after"] == ids[READING_PAGE_ROWS - 1]
    second = reader.post(url_of(Thread, "read", thread.pk), {"after": first.context["next_after"]})
    assert "next_after" not in second.context
    assert [message.pk for message, _text in (*first.context["rows"], *second.context["rows"])] == ids
    noted = list(PrivateReading.objects.order_by("pk").values_list("first_id", "last_id"))
    assert noted == [(ids[0], ids[READING_PAGE_ROWS - 1]), (ids[READING_PAGE_ROWS], ids[-1])]


@pytest.mark.parametrize("after", ["x", "-1", "9" * 30, "1; drop", ""])
def test_a_page_that_cannot_be_asked_for_is_the_first(reader, thread, after):
    rows = reader.post(url_of(Thread, "read", thread.pk), {"after": after}).context["rows"]
    assert [message for message, _text in rows] == list(Message.objects.filter(thread=thread).order_by("pk"))


def test_words_are_shown_as_words(reader, alice):
    thread = thread_of(alice, title="<b>bold</b>")
    exchange(thread, "<script>alert(1)</script>", "{{ settings.SECRET_KEY }}")
    page = reader.post(url_of(Thread, "read", thread.pk)).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "{{ settings.SECRET_KEY }}" in page


def test_what_cannot_be_noted_is_not_shown(alice, bob, thread):
    for person in (bob, alice):
        assert not may_read(person)
        with pytest.raises(PermissionDenied):
            what = PrivateReading.What.MESSAGE
            record_reading(person, owner_id=alice.pk, thread=thread, what=what, first_id=1, last_id=1)
    bob.user_permissions.add(Permission.objects.get(codename="read_private"))
    assert not may_read(User.objects.get(pk=bob.pk)), "only staff read"
    assert not PrivateReading.objects.exists()


def test_the_list_of_readings_shows_who_read_what_and_cannot_be_changed(reader, client, alice, bob, charlie, thread):
    reader.post(url_of(Thread, "read", thread.pk))
    [reading] = PrivateReading.objects.all()
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    client.force_login(charlie)
    page = client.get(reverse("admin:threads_privatereading_changelist")).content.decode()
    for word in ("bob", "alice", thread.channel):
        assert word in page
    assert client.post(url_of(PrivateReading, "delete", reading.pk), {"post": "yes"}).status_code == 403
    assert client.post(url_of(PrivateReading, "change", reading.pk), {"what": "message"}).status_code == 403
    assert client.get(reverse("admin:threads_privatereading_add")).status_code == 403


def test_a_person_finds_in_the_export_who_read_their_words(reader, alice, thread):
    reader.post(url_of(Thread, "read", thread.pk))
    [record] = [record for record in erasing.export_user(alice) if record["record"] == "private_reading"]
    assert (record["reader"], record["channel"], record["what"]) == ("bob", thread.channel, "conversation")


def test_erasing_leaves_that_somebody_read_and_not_what(reader, alice, bob, thread):
    reader.post(url_of(Thread, "read", thread.pk))
    erasing.erase_thread(thread)
    [reading] = PrivateReading.objects.all()
    assert (reading.reader, reading.owner, reading.thread) == (bob, alice, None)
    assert (reading.first_id, reading.last_id) == (None, None)
    erasing.erase_user(alice)
    erasing.erase_user(bob)
    [reading] = PrivateReading.objects.all()
    assert (reading.reader, reading.owner) == (None, None)
