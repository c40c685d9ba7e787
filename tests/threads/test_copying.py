"""Forking, rewinding and undoing: the same context again, and nothing of the record lost."""

import pytest
from django.db import transaction

from maxclaw import clock
from tests.threads.records import call_tool, exchange, give_result, live, say, thread_of
from threads.access import NoSuchMessage, NoSuchThread
from threads.copying import copy_into_new_generation, fork, rewind, undo_rewind, with_live_copy
from threads.lifecycle import LifecycleRefused, end
from threads.models import Generation, Message, Thread
from threads.request import rows_of_call, wire_messages
from threads.signals import SettledReason, thread_settled
from threads.transcript import lock_thread

pytestmark = pytest.mark.django_db
LATEST = 2**62
THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


def context(thread, model_name="emulator-main"):
    """What the next request of a thread would hold: the contents of its messages."""
    generation = live(thread)
    rows = rows_of_call(generation.pk, LATEST, generation.cut)
    messages = wire_messages(generation.opening, rows, model_name=model_name, thinking_from=generation.thinking_from)
    return [(message.role, message.content) for message in messages]


def begin_next_generation(thread, reason="threshold", opening='[{"type":"text","text":"summary"}]'):
    """What compaction does to the record."""
    generation = live(thread)
    Generation.objects.filter(pk=generation.pk).update(ended=clock.now(), end_reason=reason)
    return Generation.objects.create(
        thread=thread, owner_id=thread.owner_id, ordinal=generation.ordinal + 1, opening=opening
    )


def prune(thread, *messages):
    """What overflow does to the record: rows leave as cold."""
    generation = live(thread)
    cut = generation.cut + 1
    newest = Message.objects.filter(thread=thread).order_by("-pk").first().pk
    Generation.objects.filter(pk=generation.pk).update(cut=cut, thinking_from=newest + 1)
    ids = [message.pk for message in messages]
    Message.objects.filter(pk__in=ids).update(left_at_cut=cut, left_because="cold")


def state(message):
    message.refresh_from_db()
    return message.left_because


def test_rewinding_within_the_live_generation_is_a_cut(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread, "one")
    before = context(thread)
    second, second_answer = exchange(thread, "two")
    generation = live(thread)
    assert rewind(thread, answer, acting_user=alice) == generation
    assert context(thread) == before
    assert live(thread).cut == 1
    assert [state(row) for row in (first, answer, second, second_answer)] == ["", "", "superseded", "superseded"]
    # Earlier requests are still what they were.
    assert [row.id for row in rows_of_call(generation.pk, second.pk, 0)] == [first.pk, answer.pk, second.pk]


def test_rewinding_into_an_earlier_generation_copies_into_a_new_one(alice):
    thread = thread_of(alice)
    Generation.objects.filter(thread=thread).update(opening='[{"type":"text","text":"opening"}]')
    first, answer = exchange(thread, "one")
    before = context(thread)
    cold, later = exchange(thread, "two")
    prune(thread, cold)
    begin_next_generation(thread)
    latest, latest_answer = exchange(thread, "three")
    generation = rewind(thread, answer, acting_user=alice)
    assert generation.ordinal == 3
    assert context(thread) == before
    assert [state(row) for row in (first, answer)] == ["", ""]
    for row in (cold, later, latest, latest_answer):
        assert state(row) == "superseded"
    assert Generation.objects.get(thread=thread, ordinal=2).end_reason == "rewind"
    copies = Message.objects.filter(generation=generation, model_visible=True).order_by("pk")
    assert [copy.copied_from_id for copy in copies] == [first.pk, answer.pk]
    for original, copy in zip((first, answer), copies, strict=True):
        for name in ("role", "text", "search_text", "wire", "model", "created", "meta"):
            assert getattr(copy, name) == getattr(original, name)


def test_a_generation_that_a_rewind_or_its_undoing_ended_is_told_after_the_commit(
    alice, django_capture_on_commit_callbacks
):
    heard = []

    def listen(thread, reason, **_signal):
        heard.append((thread, reason))

    thread = thread_of(alice)
    first, answer = exchange(thread, "one")
    exchange(thread, "two")
    thread_settled.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            rewind(thread, answer, acting_user=alice)
        assert heard == []  # a cut ends no generation
        begin_next_generation(thread)
        exchange(thread, "three")
        for change in (
            lambda: rewind(thread, first, acting_user=alice),
            lambda: undo_rewind(thread, acting_user=alice),
        ):
            heard.clear()
            with django_capture_on_commit_callbacks(execute=True):
                change()
                assert heard == []
            assert set(heard) == {(thread.pk, SettledReason.GENERATION_ENDED)}
    finally:
        thread_settled.disconnect(listen)


def test_a_rows_cut_is_set_once_however_often_it_is_superseded(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread, "one")
    cold, later = exchange(thread, "two")
    prune(thread, cold)
    rewind(thread, answer, acting_user=alice)
    cuts = list(Message.objects.filter(pk__in=(cold.pk, later.pk)).order_by("pk").values_list("left_at_cut", flat=True))
    assert cuts == [1, 2]
    exchange(thread, "again")
    rewind(thread, first, acting_user=alice)
    again = Message.objects.filter(pk__in=(cold.pk, later.pk)).order_by("pk").values_list("left_at_cut", flat=True)
    assert list(again) == cuts


def test_undoing_a_rewind_brings_the_context_back(alice):
    thread = thread_of(alice)
    _first, answer = exchange(thread, "one")
    second, _second_answer = exchange(thread, "two")
    before = context(thread)
    rewind(thread, answer, acting_user=alice)
    said_since, _its_answer = exchange(thread, "instead")
    generation = undo_rewind(thread, acting_user=alice)
    assert context(thread) == before
    assert generation.ordinal == 2
    assert state(said_since) == "superseded"
    assert state(second) == "superseded"
    counted = Message.objects.filter(with_live_copy(thread.pk), thread=thread)
    assert second in counted
    assert said_since not in counted


def test_undoing_restores_every_generation_that_the_rewind_left_behind(alice):
    thread = thread_of(alice)
    _first, answer = exchange(thread, "one")
    cold, middle = exchange(thread, "two")
    prune(thread, cold)
    begin_next_generation(thread)
    between, _its_answer = exchange(thread, "three")
    begin_next_generation(thread)
    last, _last_answer = exchange(thread, "four")
    before = context(thread)
    rewind(thread, answer, acting_user=alice)
    undo_rewind(thread, acting_user=alice)
    assert context(thread) == before
    counted = set(Message.objects.filter(with_live_copy(thread.pk), thread=thread).values_list("pk", flat=True))
    assert {middle.pk, between.pk, last.pk} <= counted
    # What had gone cold is found again by search, and in no request.
    copy = Message.objects.get(copied_from=cold)
    assert copy.left_because == "cold"
    assert copy.text == "two"


def test_standing_instructions_and_summaries_come_along(alice):
    thread = thread_of(alice)
    standing = [{"text": "be brief", "message_id": 1}]
    Generation.objects.filter(thread=thread).update(standing=standing, summary_before="long ago")
    _first, answer = exchange(thread, "one")
    forked = live(fork(alice, thread, answer, acting_user=alice))
    assert (forked.standing, forked.summary_before) == (standing, "long ago")
    Generation.objects.filter(thread=thread).update(summary="what was said")
    begin_next_generation(thread, opening=None)
    Generation.objects.filter(thread=thread, ended__isnull=True).update(summary_before="what was said")
    rewind(thread, answer, acting_user=alice)
    assert (live(thread).standing, live(thread).summary, live(thread).summary_before) == (standing, "", "long ago")
    generation = undo_rewind(thread, acting_user=alice)
    before = Generation.objects.get(thread=thread, ordinal=generation.ordinal - 1)
    assert (before.standing, before.summary_before) == (standing, "long ago")
    assert (generation.opening, generation.summary_before) == (None, "what was said")


def test_rewinds_are_undone_newest_first_and_once(alice):
    thread = thread_of(alice)
    contexts = []
    answers = []
    for number in range(3):
        answers.append(exchange(thread, str(number))[1])
        contexts.append(context(thread))
    rewind(thread, answers[1], acting_user=alice)
    rewind(thread, answers[0], acting_user=alice)
    undo_rewind(thread, acting_user=alice)
    assert context(thread) == contexts[1]
    undo_rewind(thread, acting_user=alice)
    assert context(thread) == contexts[2]
    with pytest.raises(LifecycleRefused):
        undo_rewind(thread, acting_user=alice)


def test_rewinding_to_the_last_row_changes_nothing(alice):
    thread = thread_of(alice)
    _first, answer = exchange(thread)
    rewind(thread, answer, acting_user=alice)
    assert live(thread).cut == 0
    second, _answer = exchange(thread)
    rewind(thread, answer, acting_user=alice)
    rewind(thread, answer, acting_user=alice)
    assert live(thread).cut == 1
    assert state(second) == "superseded"


def test_a_row_that_went_cold_can_be_gone_back_to(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread, "one")
    before = context(thread)
    exchange(thread, "two")
    prune(thread, first, answer)
    rewind(thread, answer, acting_user=alice)
    assert context(thread) == before


def test_a_rewound_row_cannot_be_gone_back_to_without_undoing(alice):
    thread = thread_of(alice)
    _first, answer = exchange(thread, "one")
    second, second_answer = exchange(thread, "two")
    before = context(thread)
    rewind(thread, answer, acting_user=alice)
    with pytest.raises(LifecycleRefused, match="rewound"):
        rewind(thread, second, acting_user=alice)
    undo_rewind(thread, acting_user=alice)
    exchange(thread, "three")
    rewind(thread, second_answer, acting_user=alice)
    assert context(thread) == before


def test_rewinding_to_an_original_uses_its_copy_in_the_live_context(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread, "one")
    before = context(thread)
    exchange(thread, "two")
    begin_next_generation(thread)
    exchange(thread, "three")
    rewind(thread, answer, acting_user=alice)
    ordinal = live(thread).ordinal
    said, _answer = exchange(thread, "four")
    rewind(thread, answer, acting_user=alice)
    assert live(thread).ordinal == ordinal
    assert context(thread) == before
    assert state(said) == "superseded"
    assert state(first) == ""


def test_tool_calls_and_results_are_not_parted(alice):
    thread = thread_of(alice)
    question = say(thread, Message.Role.USER)
    blocks = [{"type": "tool_use", "id": f"toolu_{n}", "name": "look", "input": {}} for n in (1, 2)]
    call = say(thread, Message.Role.ASSISTANT, "", blocks=blocks, model="emulator-main")
    one, two = give_result(thread, "toolu_1"), give_result(thread, "toolu_2")
    say(thread, Message.Role.ASSISTANT, "done", model="emulator-main")
    for target in (call, one):
        with pytest.raises(LifecycleRefused, match="tool calls"):
            rewind(thread, target, acting_user=alice)
        with pytest.raises(LifecycleRefused, match="tool calls"):
            fork(alice, thread, target, acting_user=alice)
    assert live(thread).cut == 0
    assert Thread.objects.filter(owner=alice, kind="web").count() == 1
    rewind(thread, two, acting_user=alice)
    rewind(thread, question, acting_user=alice)


@pytest.mark.parametrize("busy", ["running", "waiting"])
def test_a_thread_at_work_is_not_rewound(alice, busy):
    import uuid

    thread = thread_of(alice)
    first, _answer = exchange(thread)
    lease = {"lease_token": uuid.uuid4(), "lease_until": clock.now()} if busy == "running" else {}
    Thread.objects.filter(pk=thread.pk).update(state=busy, **lease)
    for change in (lambda: rewind(thread, first, acting_user=alice), lambda: undo_rewind(thread, acting_user=alice)):
        with pytest.raises(LifecycleRefused, match="at work"):
            change()


def test_an_ended_thread_is_not_rewound(alice):
    thread = thread_of(alice)
    first, _answer = exchange(thread)
    end(thread)
    with pytest.raises(LifecycleRefused):
        rewind(thread, first, acting_user=alice)


def test_only_ones_own_thread_and_its_own_messages(alice, bob):
    thread, other = thread_of(alice), thread_of(alice)
    first, _answer = exchange(thread)
    for change in (rewind, lambda *args, **kw: fork(bob, *args, **kw)):
        with pytest.raises(NoSuchThread):
            change(thread, first, acting_user=bob)
    with pytest.raises(NoSuchThread):
        undo_rewind(thread, acting_user=bob)
    with pytest.raises(NoSuchMessage):
        rewind(other, first, acting_user=alice)
    with pytest.raises(NoSuchMessage):
        fork(alice, other, first, acting_user=alice)


def test_a_fork_holds_the_same_context_and_lives_by_itself(alice):
    thread = thread_of(alice, title="Trip", scope="isolated")
    Generation.objects.filter(thread=thread).update(opening='[{"type":"text","text":"opening"}]')
    first, answer = exchange(thread, "one")
    before = context(thread)
    exchange(thread, "two")
    branch = fork(alice, thread, answer, acting_user=alice)
    assert context(branch) == before
    assert (branch.title, branch.kind, branch.island_id, branch.copied_from_id) == (
        "Trip",
        "web",
        thread.pk,
        answer.pk,
    )
    assert live(branch).ordinal == 1
    exchange(branch, "elsewhere")
    assert len(context(thread)) == 5
    copies = Message.objects.filter(thread=branch, copied_from__isnull=False).order_by("pk")
    assert [copy.copied_from_id for copy in copies] == [first.pk, answer.pk]


def test_a_copy_of_a_copy_goes_back_to_the_first_in_its_thread(alice):
    thread = thread_of(alice)
    first, answer = exchange(thread, "one")
    exchange(thread, "two")
    for _round in range(2):
        rewind(thread, answer, acting_user=alice)
        undo_rewind(thread, acting_user=alice)
    copies = Message.objects.filter(thread=thread, text="one").exclude(pk=first.pk)
    assert len(copies) == 2
    assert {copy.copied_from_id for copy in copies} == {first.pk}
    branch = fork(alice, thread, answer, acting_user=alice)
    assert Message.objects.get(thread=branch, text="one").copied_from_id == first.pk
    again = fork(alice, branch, Message.objects.filter(thread=branch).latest("pk"), acting_user=alice)
    assert Message.objects.get(thread=again, text="one").copied_from.thread_id == branch.pk


def test_thinking_goes_along_where_its_prefix_does(alice):
    thread = thread_of(alice)
    say(thread, Message.Role.USER)
    stripped = say(
        thread, Message.Role.ASSISTANT, blocks=[THINKING, {"type": "text", "text": "a"}], model="emulator-main"
    )
    Generation.objects.filter(thread=thread).update(thinking_from=stripped.pk + 1)
    say(thread, Message.Role.USER)
    kept = say(thread, Message.Role.ASSISTANT, blocks=[THINKING, {"type": "text", "text": "b"}], model="emulator-main")
    before = context(thread)
    branch = fork(alice, thread, kept, acting_user=alice)
    assert context(branch) == before
    assert "thinking" not in before[1][1]
    assert "thinking" in before[3][1]
    short = fork(alice, thread, stripped, acting_user=alice)
    assert context(short) == before[:2]
    exchange(short, "more")
    assert live(short).thinking_from > 0


def test_copying_into_a_new_generation_needs_the_lock_and_ends_the_live_one(alice):
    thread = thread_of(alice)
    _first, answer = exchange(thread)
    before = context(thread)
    with transaction.atomic():
        generation = copy_into_new_generation(lock_thread(thread.pk), answer, reason="manual")
    assert (generation.ordinal, Generation.objects.get(thread=thread, ordinal=1).end_reason) == (2, "manual")
    assert context(thread) == before


def test_a_note_of_the_rewind_is_for_people_alone(alice):
    thread = thread_of(alice)
    _first, answer = exchange(thread)
    call_tool(thread)
    give_result(thread)
    before = len(context(thread))
    rewind(thread, answer, acting_user=alice)
    note = Message.objects.filter(thread=thread).latest("pk")
    assert (note.role, note.model_visible, note.wire) == ("event", False, None)
    assert note.text == "The conversation was rewound to an earlier message."
    assert len(context(thread)) == before - 2
