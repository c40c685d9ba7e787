"""The audit page: every quote with both levels, who confirmed what and when, and no private word unasked."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import formats

from agent import revising
from maxclaw import clock
from quotes.models import GivenQuote
from tests.quotes.records import at, send, take_in
from tests.threads.records import exchange, say
from threads import copying
from threads.lifecycle import create_thread, erase
from threads.models import Message, PrivateReading

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("model")]

LIST = reverse("admin:quotes_givenquote_changelist")


def page_of(row: Message, name: str = "change") -> str:
    return reverse(f"admin:quotes_givenquote_{name}", args=[row.meta["quote"]["id"]])


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
        assert "secret" not in shown(console.get(page_of(row))).lower()


def test_its_words_are_read_with_a_permission_and_noted(console, bob, given):
    address = page_of(given[0], "read")
    said = shown(console.post(address))
    for words in ("Secret boats", "secret depth", "secret words", "“Secret lakes” is not on its island"):
        assert words in said
    assert (PrivateReading.objects.get().what, PrivateReading.objects.get().first_id) == ("message", given[0].pk)
    bob.is_staff = True
    bob.save()
    bob.user_permissions.add(Permission.objects.get(codename="view_givenquote"))
    console.force_login(bob)
    assert shown(console.get(LIST))
    assert console.post(address).status_code == 403


def listed() -> dict[str, tuple[int | None, int | None]]:
    return {row.pk: (row.message_id, row.item_id) for row in GivenQuote.objects.all()}


def test_a_quote_is_listed_once_however_often_it_is_repeated(console, alice, given):
    """By a branch, by other words in place of one's own, by asking again, and when what it was given in is erased."""
    quotes = {row.meta["quote"]["id"]: (row.pk, None) for row in given}
    target, gone = given[0].thread, given[0].meta["quote"]["id"]
    assert listed() == quotes
    branch = copying.fork(alice, target, given[0], acting_user=alice)
    revising.edit(alice, target.channel, given[0].pk, "other words", client_key="edit")
    assert listed() == quotes
    take_in(target)
    revising.retry(alice, target.channel, client_key="retry")
    take_in(target)
    assert Message.objects.filter(meta__quote__id=gone).count() == 4
    assert listed() == quotes
    erase(target, acting_user=alice)
    assert listed() == quotes | {gone: (branch.messages.get(meta__has_key="quote").pk, None)}


def test_a_quote_that_waits_is_listed_and_one_that_was_taken_back_is_not(console, alice, source):
    target = create_thread(alice, title="Lakes")
    item, other = send(target, at(source), "secret words", confirmed=True), send(target, at(source), confirmed=True)
    assert listed() == {waiting.quote["id"]: (None, waiting.pk) for waiting in (item, other)}
    said = shown(console.get(LIST))
    assert "isolated, work" in said and "by alice" in said and "secret" not in said.lower()
    assert "secret words" in shown(console.post(reverse("admin:quotes_givenquote_read", args=[item.quote["id"]])))
    assert (PrivateReading.objects.get().what, PrivateReading.objects.get().first_id) == ("inbox-item", item.pk)
    revising.withdraw(alice, target.channel, other.pk)
    (row,) = take_in(target)
    assert listed() == {item.quote["id"]: (row.pk, None)}


def test_a_quote_from_before_quotes_had_ids_is_listed_and_its_copies_are_not(alice, source):
    target = create_thread(alice)
    old = say(target, "user", "words", meta={"quote": {"kind": "channel", "channel": source.channel}})
    copying.fork(alice, target, old, acting_user=alice)
    assert listed() == {f"m{old.pk}": (old.pk, None)}


def test_the_list_asks_the_database_no_more_for_many_quotes_than_for_one(console, alice, source, given):
    shown(console.get(LIST))  # what is asked once for all pages
    with CaptureQueriesContext(connection) as few:
        shown(console.get(LIST))
    for place in range(6):
        send(create_thread(alice, title=f"Lake {place}"), at(source), confirmed=True)
    with CaptureQueriesContext(connection) as many:
        assert len(console.get(LIST).context["cl"].result_list) == 8
    assert len(many) == len(few)


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
    assert console.post(page_of(given[0]), {"words": "other"}).status_code == 403
    assert console.post(page_of(given[0], "delete"), {"post": "yes"}).status_code == 403
