"""The audit page: every quote with both levels, who confirmed what and when, and no private word unasked."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import formats

from maxclaw import clock
from quotes.models import GivenQuote
from tests.quotes.records import at, send, take_in
from tests.threads.records import exchange
from threads import copying
from threads.lifecycle import create_thread, erase
from threads.models import Message, PrivateReading

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("model")]

LIST = reverse("admin:quotes_givenquote_changelist")


@pytest.fixture
def console(client, charlie):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    client.force_login(charlie)
    return client


@pytest.fixture
def source(alice):
    thread = create_thread(alice, title="Secret boats", scope="isolated", category="work")
    exchange(thread, answer="secret depth")
    return thread


@pytest.fixture
def given(alice, source):
    """Two quotes: a confirmed message out of the island, and a conversation that flows."""
    target = create_thread(alice, title="Secret lakes")
    send(target, at(source, source.messages.get(role="assistant")), "secret words", confirmed=True)
    send(source, at(target))
    return take_in(target)[0], take_in(source)[0]


def shown(answer) -> str:
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_every_quote_is_listed_with_both_levels_and_who_confirmed_when(console, source, given):
    said = shown(console.get(LIST))
    assert "isolated, work" in said and "open" in said
    assert f"{source.channel}</a> · message {given[0].meta['quote']['message_id']}" in said
    assert f"by alice, {formats.date_format(clock.now(), 'N')}" in said
    assert "not needed" in said
    assert "secret" not in said.lower()


def test_the_page_of_a_quote_shows_no_private_word(console, given):
    for row in given:
        assert "secret" not in shown(console.get(reverse("admin:quotes_givenquote_change", args=[row.pk]))).lower()


def test_its_words_are_read_with_a_permission_and_noted(console, bob, given):
    address = reverse("admin:quotes_givenquote_read", args=[given[0].pk])
    said = shown(console.post(address))
    for words in ("Secret boats", "secret depth", "secret words", "“Secret lakes” is not on its island"):
        assert words in said
    assert PrivateReading.objects.get().first_id == given[0].pk
    bob.is_staff = True
    bob.save()
    bob.user_permissions.add(Permission.objects.get(codename="view_givenquote"))
    console.force_login(bob)
    assert shown(console.get(LIST))
    assert console.post(address).status_code == 403


def test_a_row_without_a_quote_and_a_copy_of_one_are_not_listed(console, alice, given):
    target = given[0].thread
    copying.fork(alice, target, given[0], acting_user=alice)
    assert Message.objects.filter(meta__has_key="quote").count() == 3
    assert set(GivenQuote.objects.values_list("pk", flat=True)) == {row.pk for row in given}


@pytest.mark.parametrize(("query", "found"), [("confirmation=true", 1), ("confirmation=false", 1), ("kind=channel", 1)])
def test_quotes_are_filtered(console, given, query, found):
    assert console.get(f"{LIST}?{query}").context["cl"].result_list.__len__() == found


def test_quotes_of_a_conversation_are_found_by_its_channel(console, source, given):
    assert len(console.get(f"{LIST}?q={source.channel}").context["cl"].result_list) == 2


def test_a_quote_outlives_its_source(console, alice, source):
    target = create_thread(alice)
    send(target, at(source), confirmed=True)
    take_in(target)
    erase(source, acting_user=alice)
    said = shown(console.get(LIST))
    assert source.channel in said and f"{source.channel}</a>" not in said


def test_nothing_can_be_changed(console, given):
    address = reverse("admin:quotes_givenquote_change", args=[given[0].pk])
    assert console.post(address, {"text": "other"}).status_code == 403
    assert (
        console.post(reverse("admin:quotes_givenquote_delete", args=[given[0].pk]), {"post": "yes"}).status_code == 403
    )
