"""A source that changes while words that quote it are being sent: two real connections, either one first."""

import threading

import pytest

from agent import conversations as whole
from agent.refusals import Refused
from tests.quotes.records import at, send, stored
from tests.threads.records import exchange
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads.lifecycle import create_thread, erase, narrow
from threads.models import Thread
from threads.transcript import lock_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("model")]


@pytest.fixture(params=["source first", "target first"])
def pair(request, alice):
    """Source and target, in either order of their ids: the locks are taken in that order."""
    first, second = create_thread(alice, title="One"), create_thread(alice, title="Two")
    source, target = (first, second) if request.param == "source first" else (second, first)
    exchange(source, answer="Forty metres.")
    return source, target


def quote_of(source):
    return at(source, source.messages.get(role="assistant"))


CHANGES = {
    "isolated": (lambda source: narrow(source, acting_user=source.owner, scope="isolated"), "confirm-needed"),
    "categorised": (lambda source: narrow(source, acting_user=source.owner, category="work"), "confirm-needed"),
    "deleted": (lambda source: whole.delete(source.owner, source.channel), "no-such-source"),
    "erased": (lambda source: erase(source, acting_user=source.owner), "no-such-source"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_came_first_is_seen_by_the_send_that_waited_for_it(pair, change):
    source, target = pair
    quote, before = quote_of(source), stored(target)
    work, code = CHANGES[change]
    changing = Elsewhere(lambda: work(Thread.objects.get(pk=source.pk)))
    changing.began.wait(20)
    sending = Elsewhere(lambda: send(target, quote))
    wait_until_blocked()
    changing.finish()
    assert changing.error is None
    sending.finish()
    assert isinstance(sending.error, Refused)
    assert sending.error.code == code
    assert stored(target) == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_send_that_came_first_is_whole_and_the_change_waits_for_it(pair, change):
    source, target = pair
    quote = quote_of(source)
    work, _code = CHANGES[change]
    sending = Elsewhere(lambda: send(target, quote))
    sending.began.wait(20)
    changing = Elsewhere(lambda: work(Thread.objects.get(pk=source.pk)))
    wait_until_blocked()
    item = sending.finish()
    changing.finish()
    assert (sending.error, changing.error) == (None, None)
    item.refresh_from_db()
    assert item.quote["text"] == "Forty metres."
    assert (item.quote["source_scope"], item.quote["source_category"], item.quote["needs_confirm"]) == (
        "open",
        "",
        False,
    )


def test_what_begins_while_a_family_is_being_locked_is_locked_in_its_order(alice):
    """Its id may lie between the others': whoever holds it and waits for a later one is not waited for by who holds
    that."""
    root = create_thread(alice)
    child = create_thread(alice, kind="task", parent=root)
    beginning = Elsewhere(lambda: lock_thread(root.pk) and create_thread(alice, kind="task", parent=root))
    beginning.began.wait(20)
    last = create_thread(alice, kind="task", parent=child)
    narrowing = Elsewhere(lambda: narrow(root, acting_user=alice, scope="isolated"))
    wait_until_blocked()
    holding = Elsewhere(lambda: lock_thread(child.pk))
    holding.began.wait(20)
    late = beginning.finish()
    assert root.pk < child.pk < late.pk < last.pk
    held, go_on = threading.Event(), threading.Event()

    def lock_both():
        lock_thread(late.pk)
        held.set()
        go_on.wait(20)
        lock_thread(last.pk)

    quoting = Elsewhere(lock_both)
    held.wait(20)
    holding.finish()
    wait_until_blocked()
    go_on.set()
    quoting.finish()
    narrowing.finish()
    assert (quoting.error, narrowing.error) == (None, None)
    assert set(Thread.objects.filter(island_id=root.pk)) == {root, child, late, last}


def test_two_sends_that_quote_each_others_conversation_do_not_lock_each_other_out(pair):
    source, target = pair
    exchange(target)
    one = Elsewhere(lambda: send(target, at(source)))
    one.began.wait(20)
    other = Elsewhere(lambda: send(source, at(target)))
    wait_until_blocked()
    assert one.finish().quote["channel"] == source.channel
    assert other.finish().quote["channel"] == target.channel


def test_a_repeated_send_is_the_same_send_when_the_source_narrows_between(pair, alice):
    source, target = pair
    quote = quote_of(source)
    first = Elsewhere(lambda: send(target, quote, "Look", client_key="k"))
    first.began.wait(20)
    narrowing = Elsewhere(lambda: narrow(Thread.objects.get(pk=source.pk), acting_user=alice, scope="isolated"))
    wait_until_blocked(1)
    again = Elsewhere(lambda: send(target, quote, "Look", client_key="k"))
    wait_until_blocked(2)
    for one in (first, narrowing, again):
        one.finish()
    assert (first.error, narrowing.error, again.error) == (None, None, None)
    assert again.result.pk == first.result.pk
