"""From where shadows read: settled once, taken over from the steward, and their own from then on."""

import pytest
from django.core.management import call_command
from django.db import transaction

from accounts import erasing
from memory.models import Digest, Episode
from shadow import cursors, material
from shadow.models import ShadowActivation, ShadowBaseline, ShadowCursor, ShadowRun
from tests.shadow.records import next_generation_of, run_row
from tests.threads.records import copied, exchange, say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads.models import Generation, Message

pytestmark = pytest.mark.django_db


def digest(*rows):
    """The steward has read these rows."""
    for row in rows:
        episode = Episode.objects.create(
            owner_id=row.owner_id, thread_id=row.thread_id, generation_id=row.generation_id, through_seq=row.pk
        )
        Digest.objects.create(message=row, owner_id=row.owner_id, episode=episode)


def baselines(thread):
    rows = ShadowBaseline.objects.filter(thread=thread).order_by("generation__ordinal")
    return list(rows.values_list("baseline", flat=True))


def unread(thread):
    generations = Generation.objects.filter(thread=thread).order_by("ordinal")
    return [pk for one in generations for pk in cursors.unread_of(one).values_list("pk", flat=True)]


def test_the_stewards_place_is_taken_over_where_it_was_and_everything_is_skipped_where_it_was_not(alice):
    inherited, skipped, strict = thread_of(alice), thread_of(alice), thread_of(alice, scope="isolated")
    one, _answer = exchange(inherited)
    next_generation_of(inherited)
    two, two_answer = exchange(inherited)
    digest(two)
    exchange(skipped)
    exchange(strict)
    made = cursors.initialize()
    greatest = Message.objects.latest("pk").pk
    assert (made.activated, ShadowActivation.objects.get().through_seq) == (True, greatest)
    assert dict(ShadowCursor.objects.values_list("thread", "initialization")) == {
        inherited.pk: "steward",
        skipped.pk: "enabled",
    }
    # A generation of which it digested nothing is read from its beginning.
    assert baselines(inherited) == [0, two.pk]
    assert unread(inherited) == [one.pk, _answer.pk, two_answer.pk]
    assert unread(skipped) == []
    assert Digest.objects.count() == 1
    new = say(skipped, "user", "new")
    assert unread(skipped) == [new.pk]


def test_afterwards_the_two_go_their_own_ways_and_what_is_missing_comes_from_the_watermark(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread)
    digest(first)
    cursors.initialize()
    # The steward goes on; the shadow's place is its own.
    digest(answer)
    later = thread_of(alice)
    late, late_answer = exchange(later)
    digest(late)
    newer = next_generation_of(thread)
    again, _answer = exchange(thread)
    digest(again)
    made = cursors.initialize()
    assert (made.activated, made.cursors, made.baselines) == (False, 1, 2)
    assert baselines(thread) == [first.pk, 0]
    assert unread(later) == [late.pk, late_answer.pk]
    assert ShadowCursor.objects.get(thread=later).initialization == "enabled"
    # Completed runs alone move it.
    run_row(thread, newer, status="failed", through_seq=again.pk)
    assert cursors.reached(newer) == 0
    run_row(thread, newer, through_seq=again.pk)
    assert cursors.reached(newer) == again.pk
    made = cursors.initialize()
    assert (made.cursors, made.baselines) == (0, 0)


def test_a_conversation_that_no_tick_saw_yet_is_read_all_the_same(alice):
    early = thread_of(alice)
    exchange(early)
    assert material.gather(early.pk) is None  # shadows have not begun
    cursors.initialize()
    fresh = thread_of(alice)
    said, answer = exchange(fresh)
    assert material.gather(fresh.pk).page.ids == [said.pk, answer.pk]
    assert baselines(fresh) == [0]


def test_copies_are_not_read_nor_what_was_rewound(alice):
    cursors.initialize()
    thread = thread_of(alice)
    said, answer = exchange(thread)
    copy = copied(said, thread)
    Message.objects.filter(pk=answer.pk).update(left_at_cut=1, left_because="superseded")
    cursors.initialize()
    assert copy.pk not in unread(thread)
    assert unread(thread) == [said.pk]


def test_the_command_says_what_it_made(alice, capsys):
    exchange(thread_of(alice))
    call_command("init_shadow_cursors")
    call_command("init_shadow_cursors")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "Shadow turns begin now. Cursors made: 1, baselines made: 1."
    assert second == "Shadow turns began before. Cursors made: 0, baselines made: 0."


@pytest.mark.django_db(transaction=True)
def test_two_processes_at_once_do_it_once(alice):
    exchange(thread_of(alice))
    first = Elsewhere(cursors.initialize)
    first.began.wait(20)
    second = Elsewhere(cursors.initialize)
    wait_until_blocked()
    first.finish()
    second.finish()
    assert (first.error, second.error) == (None, None)
    assert [first.result.activated, second.result.activated] == [True, False]
    assert (first.result.cursors, second.result.cursors) == (1, 0)


@pytest.mark.django_db(transaction=True)
def test_a_conversation_that_is_erased_meanwhile_gets_none_and_the_others_theirs(alice):
    kept, erased = thread_of(alice), thread_of(alice)
    for thread in (kept, erased):
        exchange(thread)
    erasing_it = Elsewhere(lambda: erasing.erase_thread(erased))
    erasing_it.began.wait(20)
    initializing = Elsewhere(cursors.initialize)
    wait_until_blocked()
    erasing_it.finish()
    made = initializing.finish()
    assert (erasing_it.error, initializing.error) == (None, None)
    assert (made.activated, made.cursors, made.baselines) == (True, 1, 1)
    assert ShadowCursor.objects.get().thread_id == kept.pk


@pytest.mark.django_db(transaction=True)
def test_a_message_that_commits_meanwhile_is_read_by_exactly_one_side_of_the_watermark(alice):
    slow, fast = thread_of(alice), thread_of(alice)
    exchange(slow)
    writing = Elsewhere(lambda: say(slow, "user", "uncommitted, with the smaller id"))
    writing.began.wait(20)
    seen = say(fast, "user", "committed, with the greater id")
    with transaction.atomic():
        cursors.initialize()
        late = writing.finish()
    assert late.pk < seen.pk == ShadowActivation.objects.get().through_seq
    # It is within the watermark, and above what was there when the baseline was taken.
    assert unread(slow) == [late.pk]
    assert unread(fast) == []
    assert not ShadowRun.objects.exists()
