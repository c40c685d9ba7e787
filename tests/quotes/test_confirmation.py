"""The matrix: who is asked before content is handed over, for messages and for whole conversations."""

import pytest

from accounts.models import User
from agent.refusals import Refused
from quotes import ingress
from tests.quotes.records import at, send, stored
from tests.threads.records import exchange
from threads import copying
from threads.lifecycle import create_thread
from threads.models import Thread

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("model")]

LEVELS = {
    "open": {},
    "isolated": {"scope": "isolated"},
    "category A": {"category": "personal"},
    "category B": {"category": "work"},
}
# (source, target, asked). "Another island" is the target's own where both are isolated.
MATRIX = [
    ("open", "open", False),
    ("open", "isolated", False),
    ("open", "category A", False),
    ("isolated", "open", True),
    ("isolated", "isolated", True),
    ("category A", "category A", False),
    ("category A", "category B", True),
    ("category A", "open", True),
]
KINDS = ("message", "conversation")


def pointer(kind: str, source: Thread):
    _question, answer = exchange(source, "How deep is the lake?", "Forty metres.")
    return at(source, answer) if kind == "message" else at(source)


def check(asked: bool, target: Thread, quote) -> None:
    """Preview and send agree; what is to be confirmed goes when it was, and not otherwise."""
    seen = ingress.preview(target.owner, target.channel, quote)
    assert seen["needs_confirm"] is asked
    assert bool(seen["confirm_text"]) is asked
    if asked:
        before = stored(target)
        with pytest.raises(Refused) as refused:
            send(target, quote)
        assert refused.value.code == "confirm-needed"
        assert refused.value.sentence == seen["confirm_text"]
        assert stored(target) == before
    item = send(target, quote, confirmed=True if asked else None)
    assert item.quote["needs_confirm"] is asked
    assert item.quote["confirm_text"] == seen["confirm_text"]
    assert (item.quote["confirmed_at"] is not None) is asked


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("source", "target", "asked"), MATRIX)
def test_only_what_would_not_flow_by_itself_is_asked_about(alice, kind, source, target, asked):
    check(
        asked,
        create_thread(alice, title="Target", **LEVELS[target]),
        pointer(kind, create_thread(alice, title="Source", **LEVELS[source])),
    )


def island(alice: User, place: str, root: Thread) -> Thread:
    """A conversation on the root's island: itself, a branch or a task of it, a task of a branch."""
    if place == "root":
        return root
    if place == "task":
        return create_thread(alice, title="Task", kind="task", parent=root)
    _question, answer = exchange(root)
    branch = copying.fork(alice, root, answer, acting_user=alice)
    if place == "branch":
        return branch
    return create_thread(alice, title="Task of a branch", kind="task", parent=branch)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["root", "branch", "task", "task of a branch"])
@pytest.mark.parametrize("source", ["root", "branch"])
@pytest.mark.parametrize("category", ["", "personal"])
def test_nobody_is_asked_on_one_island(alice, kind, source, target, category):
    root = create_thread(alice, title="Root", scope="isolated", category=category)
    check(False, island(alice, target, root), pointer(kind, island(alice, source, root)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", ["root", "branch"])
@pytest.mark.parametrize("target", ["open", "another island's task", "a branch of an open one"])
def test_whoever_leaves_the_island_is_asked(alice, kind, source, target):
    root = create_thread(alice, title="Root", scope="isolated")
    elsewhere = {
        "open": lambda: create_thread(alice, title="Open"),
        "another island's task": lambda: island(alice, "task", create_thread(alice, scope="isolated")),
        "a branch of an open one": lambda: island(alice, "branch", create_thread(alice, title="Open")),
    }[target]()
    check(True, elsewhere, pointer(kind, island(alice, source, root)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_sentence_names_the_target_and_each_boundary(alice, kind):
    source = create_thread(alice, title="Blood tests", scope="isolated", category="personal")
    quote = pointer(kind, source)
    to_none = ingress.preview(alice, create_thread(alice, title="Holiday").channel, quote)["confirm_text"]
    assert "The source is isolated, and “Holiday” is not on its island." in to_none
    assert "The source belongs to the category “personal”, and “Holiday” to none." in to_none
    other = create_thread(alice, title="Contracts", category="work")
    to_other = ingress.preview(alice, other.channel, quote)["confirm_text"]
    assert "The source belongs to the category “personal”, and “Contracts” to “work”." in to_other
    branch = island(alice, "branch", source)
    assert ingress.preview(alice, branch.channel, quote)["confirm_text"] == ""
    same_category = create_thread(alice, title="Diet", category="personal")
    one_boundary = ingress.preview(alice, same_category.channel, quote)["confirm_text"]
    assert "isolated" in one_boundary and "category" not in one_boundary


def test_the_sentence_tells_a_copy_from_an_address(alice):
    source, target = create_thread(alice, scope="isolated"), create_thread(alice, title="Holiday")
    message = ingress.preview(alice, target.channel, pointer("message", source))["confirm_text"]
    conversation = ingress.preview(alice, target.channel, pointer("conversation", source))["confirm_text"]
    assert message.endswith(
        "Its text is copied there and stays there. Hand this message over to “Holiday” all the same?"
    )
    assert "stays as unreadable there as before" in conversation


@pytest.mark.parametrize("confirmed", [None, False, 1, "true", "yes", [True], {"confirmed": True}])
def test_only_true_itself_confirms(alice, confirmed):
    source, target = create_thread(alice, scope="isolated"), create_thread(alice, title="Holiday")
    quote = pointer("message", source)
    before = stored(target)
    with pytest.raises(Refused) as refused:
        send(target, quote, confirmed=confirmed)
    assert refused.value.code == "confirm-needed"
    assert stored(target) == before
