"""One rule for what crosses threads, and one SQL filter that says the same."""

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from tests.threads.records import say, thread_of
from threads.models import Generation, Message, Thread
from threads.visibility import (
    Level,
    Viewer,
    can_deliver,
    can_flow,
    category_readable,
    message_filter,
    needs_confirm,
    thread_filter,
)

OPEN = Level()
ISLAND = Level("isolated", 1)
SAME_ISLAND = Level("isolated", 1)
OTHER_ISLAND = Level("isolated", 2)
A = Level(category="A")
B = Level(category="B")


@pytest.mark.parametrize(
    ("source", "target", "confirm"),
    [
        (OPEN, OPEN, False),
        (OPEN, ISLAND, False),
        (OPEN, A, False),
        (ISLAND, OPEN, True),
        (ISLAND, OTHER_ISLAND, True),
        (ISLAND, SAME_ISLAND, False),
        (A, A, False),
        (A, B, True),
        (A, OPEN, True),
    ],
)
def test_the_matrix_of_confirmations(source, target, confirm):
    assert needs_confirm(source, target) is confirm
    assert can_flow(source, target) is not confirm


def test_scope_and_category_are_independent():
    isolated_a = Level("isolated", 1, "A")
    assert can_flow(isolated_a, Level("isolated", 1, "A"))
    assert not can_flow(isolated_a, ISLAND)
    assert not can_flow(isolated_a, A)
    assert can_deliver(isolated_a, ISLAND)
    assert category_readable("A", "A")
    assert category_readable("A", "")
    assert not category_readable("", "A")


PERSON = st.sampled_from([0, 1])
# A node of a forest: who owns it, where it hangs (an index into what was made before; None is a root), its own scope
# and category where it is a root.
NODE = st.tuples(
    PERSON, st.none() | st.integers(0, 8), st.sampled_from(["open", "isolated"]), st.sampled_from(["", "A", "B"])
)


def make_forest(people, nodes):
    """Threads of random forests, written as rows: what the filter must cope with is more than the product makes."""
    threads: list[Thread] = []
    for person, at, scope, category in nodes:
        owner = people[person]
        parents = [thread for thread in threads if thread.owner_id == owner.pk]
        parent = parents[at % len(parents)] if at is not None and parents else None
        thread = Thread(owner=owner, parent=parent, category=category, kind="web")
        if parent is not None and parent.scope == "isolated":
            thread.scope, thread.island_id = "isolated", parent.island_id
        thread.save()
        if parent is None and scope == "isolated":
            thread.scope, thread.island_id = "isolated", thread.pk
            thread.save()
        Generation.objects.create(thread=thread, owner=owner, ordinal=1)
        threads.append(thread)
    return threads


@pytest.mark.django_db
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nodes=st.lists(NODE, min_size=1, max_size=9))
def test_the_sql_filter_says_what_the_pure_rule_says(django_user_model, nodes):
    class Undone(Exception):
        pass

    with pytest.raises(Undone), transaction.atomic():
        people = [User.objects.create(username=f"person{number}") for number in range(2)]
        threads = [*make_forest(people, nodes), *Thread.objects.filter(kind="main")]
        messages = Message.objects.bulk_create(
            Message(thread=thread, owner_id=thread.owner_id, generation=thread.generations.get(), role="user")
            for thread in threads
        )
        for target in threads:
            viewer = Viewer.of_thread(target)
            allowed = {
                source.pk
                for source in threads
                if source.owner_id == target.owner_id and can_flow(Level.of_thread(source), viewer.level)
            }
            found = Thread.objects.filter(thread_filter(viewer)).values_list("pk", flat=True)
            assert set(found) == allowed
            seen = Message.objects.filter(message_filter(viewer)).values_list("pk", flat=True)
            assert set(seen) == {message.pk for message in messages if message.thread_id in allowed}
        raise Undone


@pytest.mark.django_db
def test_owners_never_mix(alice, bob):
    say(thread_of(bob), Message.Role.USER, "open and without category")
    viewer = Viewer.of_thread(thread_of(alice))
    assert set(Thread.objects.filter(thread_filter(viewer)).values_list("owner_id", flat=True)) == {alice.pk}
    assert not Message.objects.filter(message_filter(viewer)).exists()


@pytest.mark.django_db
def test_a_viewer_outside_any_thread_sees_its_level(alice):
    thread_of(alice, scope="isolated")
    viewer = Viewer(alice.pk, None, Level())
    assert {thread.scope for thread in Thread.objects.filter(thread_filter(viewer))} == {"open"}
