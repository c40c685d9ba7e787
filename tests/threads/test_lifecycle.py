"""How a conversation begins, is named, put away, ended, erased and made stricter."""

from types import ModuleType

import pytest

from accounts import erasing
from tests.threads.records import exchange, live, say
from threads.access import NoSuchThread
from threads.lifecycle import (
    LifecycleRefused,
    archive,
    create_thread,
    end,
    erase,
    narrow,
    rename,
    title_from,
    unarchive,
)
from threads.models import Generation, Message, Thread
from threads.signals import SettledReason, thread_settled

pytestmark = pytest.mark.django_db


@pytest.fixture
def settled():
    """What was told the apps above, in order."""
    heard = []

    def listen(thread, reason, **_kwargs):
        heard.append((thread, reason))

    thread_settled.connect(listen)
    yield heard
    thread_settled.disconnect(listen)


def test_an_account_comes_with_its_main_thread(alice):
    main = Thread.objects.get(owner=alice, kind="main")
    assert live(main).ordinal == 1
    with pytest.raises(LifecycleRefused):
        create_thread(alice, kind="main")


def test_a_thread_begins_with_its_first_generation(alice):
    thread = create_thread(alice, title="  Trip\n to   Rome ")
    assert thread.title == "Trip to Rome"
    assert (thread.kind, thread.scope, thread.category, thread.island_id) == ("web", "open", "", None)
    generation = live(thread)
    assert (generation.ordinal, generation.cut, generation.opening, generation.owner_id) == (1, 0, None, alice.pk)


def test_an_isolated_thread_is_the_root_of_its_island(alice):
    first, second = (create_thread(alice, scope="isolated") for _index in range(2))
    assert first.island_id == first.pk
    assert second.island_id == second.pk != first.pk


def test_tasks_and_branches_inherit_the_level(alice):
    root = create_thread(alice, scope="isolated", category="personal")
    message = say(root, Message.Role.USER)
    for child in (
        create_thread(alice, kind="task", parent=root),
        create_thread(alice, copied_from=message),
        create_thread(alice, parent=root, scope="isolated"),
    ):
        assert (child.scope, child.island_id, child.category) == ("isolated", root.pk, "personal")


def test_a_task_may_be_stricter_than_what_started_it(alice):
    root = create_thread(alice)
    task = create_thread(alice, kind="task", parent=root, scope="isolated", category="work")
    assert (task.scope, task.island_id, task.category) == ("isolated", task.pk, "work")


def test_a_task_cannot_leave_its_category(alice):
    with pytest.raises(LifecycleRefused, match="personal"):
        create_thread(alice, parent=create_thread(alice, category="personal"), category="work")


def test_two_islands_at_once_are_refused(alice):
    message = say(create_thread(alice, scope="isolated"), Message.Role.USER)
    with pytest.raises(LifecycleRefused):
        create_thread(alice, parent=create_thread(alice, scope="isolated"), copied_from=message)


def test_an_unknown_category_is_refused_and_nothing_is_made(alice):
    before = Thread.objects.count()
    with pytest.raises(LifecycleRefused, match="secret"):
        create_thread(alice, category="secret")
    assert Thread.objects.count() == before


def test_someone_elses_thread_is_no_origin(alice, bob):
    foreign = create_thread(bob)
    with pytest.raises(NoSuchThread):
        create_thread(alice, parent=foreign)
    with pytest.raises(NoSuchThread):
        create_thread(alice, copied_from=say(foreign, Message.Role.USER))


def test_a_title_has_at_least_one_visible_character(alice):
    thread = create_thread(alice)
    for blank in ("", " \n ", "\u200b"):
        with pytest.raises(LifecycleRefused):
            rename(thread, blank, acting_user=alice)
    rename(thread, "x" * 500 + "\x00", acting_user=alice)
    assert Thread.objects.get(pk=thread.pk).title == "x" * 200


def test_only_the_owner_changes_a_thread(alice, bob):
    thread = create_thread(alice)
    for change in (
        lambda: rename(thread, "mine", acting_user=bob),
        lambda: archive(thread, acting_user=bob),
        lambda: unarchive(thread, acting_user=bob),
        lambda: narrow(thread, scope="isolated", acting_user=bob),
        lambda: erase(thread, acting_user=bob),
    ):
        with pytest.raises(NoSuchThread):
            change()
    assert Thread.objects.get(pk=thread.pk).title == ""


def test_archiving_is_told_once_and_can_be_taken_back(alice, settled, django_capture_on_commit_callbacks):
    thread = create_thread(alice)
    with django_capture_on_commit_callbacks(execute=True):
        archive(thread, acting_user=alice)
        archive(thread, acting_user=alice)
    assert settled == [(thread.pk, SettledReason.THREAD_ARCHIVED)]
    unarchive(thread, acting_user=alice)
    assert Thread.objects.get(pk=thread.pk).status == "active"


def test_an_ended_thread_stays_ended(alice, settled, django_capture_on_commit_callbacks):
    thread = create_thread(alice, kind="task", parent=create_thread(alice))
    with django_capture_on_commit_callbacks(execute=True):
        end(thread)
        end(thread)
    assert settled == [(thread.pk, SettledReason.THREAD_ENDED)]
    assert Generation.objects.get(thread=thread).end_reason == "closed"
    for change in (archive, unarchive):
        with pytest.raises(LifecycleRefused):
            change(thread, acting_user=alice)


def test_the_main_thread_cannot_be_put_away(alice):
    main = Thread.objects.get(owner=alice, kind="main")
    for change in (
        lambda: archive(main, acting_user=alice),
        lambda: end(main),
        lambda: narrow(main, scope="isolated", acting_user=alice),
        lambda: erase(main, acting_user=alice),
    ):
        with pytest.raises(LifecycleRefused):
            change()


def test_a_failing_listener_stops_no_other(alice, settled, django_capture_on_commit_callbacks):
    def fail(**_kwargs):
        raise RuntimeError("broken listener")

    thread_settled.connect(fail)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            archive(create_thread(alice), acting_user=alice)
    finally:
        thread_settled.disconnect(fail)
    assert len(settled) == 1


def level(thread):
    thread = Thread.objects.get(pk=thread.pk)
    return thread.scope, thread.island_id, thread.category


def test_narrowing_carries_tasks_and_branches_along(alice):
    thread = create_thread(alice)
    message, _answer = exchange(thread)
    task = create_thread(alice, kind="task", parent=thread)
    branch = create_thread(alice, copied_from=message)
    branch_of_task = create_thread(alice, copied_from=say(task, Message.Role.USER))
    apart = create_thread(alice)
    narrow(thread, scope="isolated", acting_user=alice)
    for member in (thread, task, branch, branch_of_task):
        assert level(member) == ("isolated", thread.pk, "")
    assert level(apart) == ("open", None, "")
    narrow(thread, category="personal", acting_user=alice)
    for member in (thread, task, branch, branch_of_task):
        assert level(member) == ("isolated", thread.pk, "personal")


def test_what_is_stricter_by_itself_stays_as_it_is(alice):
    thread = create_thread(alice)
    isolated_task = create_thread(alice, kind="task", parent=thread, scope="isolated")
    work_task = create_thread(alice, kind="task", parent=thread, category="work")
    narrow(thread, scope="isolated", category="personal", acting_user=alice)
    assert level(isolated_task) == ("isolated", isolated_task.pk, "personal")
    assert level(work_task) == ("isolated", thread.pk, "work")


def test_nothing_becomes_wider(alice):
    thread = create_thread(alice, scope="isolated", category="personal")
    for wider in ({"scope": "open"}, {"category": "work"}, {"category": ""}):
        with pytest.raises(LifecycleRefused):
            narrow(thread, acting_user=alice, **wider)
    assert level(thread) == ("isolated", thread.pk, "personal")


def test_every_app_adjusts_what_it_keeps_beside_a_narrowed_thread(alice, monkeypatch):
    thread = create_thread(alice)
    task = create_thread(alice, kind="task", parent=thread)
    heard = []
    app = ModuleType("app.erasure")
    app.narrow_thread = lambda member: heard.append((member.pk, member.scope))
    monkeypatch.setattr(erasing, "registered", lambda: [app])
    narrow(thread, scope="isolated", acting_user=alice)
    narrow(thread, scope="isolated", acting_user=alice)
    assert heard == [(thread.pk, "isolated"), (task.pk, "isolated")]


def test_a_failing_app_leaves_nothing_narrowed(alice, monkeypatch):
    thread = create_thread(alice)
    app = ModuleType("app.erasure")

    def fail(_member):
        raise RuntimeError

    app.narrow_thread = fail
    monkeypatch.setattr(erasing, "registered", lambda: [app])
    with pytest.raises(RuntimeError):
        narrow(thread, scope="isolated", acting_user=alice)
    assert level(thread) == ("open", None, "")


def test_a_title_comes_from_the_first_words():
    assert title_from("  Plan\nthe   trip ") == "Plan the trip"
    assert title_from("") == title_from(" \n ") == ""
    assert title_from("word " * 100) == "word " * 10 + "word…"
    assert title_from("旅" * 100) == "旅" * 59 + "…"
    assert len(title_from("x" * 1_000_000)) <= 60
    family = "👨‍👩‍👧‍👦"
    assert title_from(family * 30).rstrip("…") == family * (59 // len(family))
    assert title_from("a\x00b") == "a␀b"
