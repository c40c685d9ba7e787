"""The steward: every row read once, whichever way its generation ended, and facts with evidence that holds."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django_q.models import OrmQ

from agent import health
from agent.ticking import run_tick
from llm.emulator.client import text, tool_use
from llm.models import ModelCall
from maxclaw import clock
from memory import steward, steward_work
from memory.forgetting import forget
from memory.models import Digest, Episode, Fact, FactEvidence, ReadingPause
from tests.memory.facts import remember
from tests.memory.steward_world import (
    digested_ids,
    drain,
    end_generation,
    import_lines,
    outcomes,
    read_page,
    readable_ids,
    rests,
    texts,
)
from tests.threads.records import exchange, say, thread_of
from threads import lifecycle
from threads.copying import fork, rewind, undo_rewind
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)

GARDEN = [
    ("I live in Lisbon. What grows there?", "Lemons and bougainvillea."),
    ("I prefer tea in the morning.", "Noted."),
    ("We decided to paint the fence yesterday, because it was grey.", "A good reason."),
    ("Do I like roses?", "You never said."),
]
BOAT = [
    ("我住在杭州。", "好的。"),
    ("我喜欢安静的早晨。", "明白了。"),
    ("How deep is the lake?", "I prefer not to guess."),
]


def calls():
    return ModelCall.objects.filter(purpose="steward")


def test_every_row_is_read_once_across_every_way_a_generation_can_end(emulator, alice):
    garden, boat = import_lines(alice, "garden", GARDEN[:1]), import_lines(alice, "boat", BOAT[:1])
    for number, reason in enumerate(("threshold", "idle", "manual"), 1):
        end_generation(garden, reason)
        import_lines(alice, "garden", GARDEN[number : number + 1], first=number)
    end_generation(boat, "idle")
    import_lines(alice, "boat", BOAT[1:], first=1)
    lifecycle.archive(garden, acting_user=alice)
    lifecycle.end(boat)
    rests(garden, boat)
    assert Generation.objects.filter(ended__isnull=False).count() == 5
    assert drain() == 6  # one page for each generation
    assert digested_ids() == readable_ids(garden, boat)
    assert Episode.objects.filter(outcome="done").count() == 6
    assert texts(alice) == [
        "The user said: I live in Lisbon.",
        "The user said: I prefer tea in the morning.",
        "The user said: We decided to paint the fence 2023-05-07, because it was grey.",
        "The user said: 我住在杭州。",
        "The user said: 我喜欢安静的早晨。",
    ]
    for evidence in FactEvidence.objects.select_related("message", "fact"):
        words = evidence.fact.text.removeprefix("The user said: ").replace("2023-05-07", "yesterday")
        assert words in evidence.message.text
    # Again: no call, no change.
    made, facts = calls().count(), list(Fact.objects.values())
    assert drain(thorough=True) == 0
    assert (calls().count(), list(Fact.objects.values())) == (made, facts)
    assert set(calls().values_list("outcome", "model")) == {("complete", "emulator-light")}


def test_a_conversation_that_goes_on_is_read_when_it_rests(emulator, alice):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    thread_ended = thread_of(alice)
    exchange(thread_ended, "I prefer tea.")
    end_generation(thread_ended, "manual")
    exchange(thread_ended, "I prefer coffee at night.")
    assert drain() == 1
    assert texts(alice) == ["The user said: I prefer tea."]
    with clock.moved(601):
        assert drain() == 2
    assert len(texts(alice)) == 3


def test_an_archived_conversation_is_read_without_waiting(emulator, alice):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    assert drain() == 0
    lifecycle.archive(thread, acting_user=alice)
    assert drain() == 1
    assert texts(alice) == ["The user said: I live in Lisbon."]


def test_what_is_not_to_be_read_is_not(emulator, alice):
    isolated = thread_of(alice, scope="isolated")
    gone, told = thread_of(alice), thread_of(alice)
    task = thread_of(alice, kind="task", parent=told)
    for thread in (isolated, gone, task):
        exchange(thread, "I live in Lisbon.")
    Thread.objects.filter(pk=gone.pk).update(deleted=clock.now())
    first, _answer = exchange(told, "I prefer tea.")
    say(told, Message.Role.USER, "I prefer hidden things.", model_visible=False)
    say(told, Message.Role.EVENT, "I prefer frames.", meta={"source": "framework"})
    _later, last = exchange(told, "I prefer coffee at night.")
    copy = fork(alice, told, last, acting_user=alice)
    rewind(told, first, acting_user=alice)
    rests(isolated, gone, task, told, copy)
    assert drain(thorough=True) == 1
    assert digested_ids() == [first.pk]
    assert texts(alice) == ["The user said: I prefer tea."]
    # What is brought back is read: once, by its first row.
    undo_rewind(told, acting_user=alice)
    rests(told)
    assert drain(thorough=True) == 1
    assert digested_ids() == readable_ids(told)
    assert len(texts(alice)) == 2


def test_under_the_shadow_it_reads_the_main_conversation_alone(emulator, alice, settings):
    settings.MEMORY_WRITER = "shadow"
    main = Thread.objects.get(owner=alice, kind="main")
    web = thread_of(alice)
    for thread in (main, web):
        exchange(thread, f"I prefer {thread.kind} things.")
    rests(main, web)
    assert drain(thorough=True) == 1
    assert texts(alice) == ["The user said: I prefer main things."]


def test_three_failures_pause_a_generation_for_six_hours_and_are_charged(emulator, alice, settings):
    settings.MODEL_RETRIES = 0
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    rests(thread)
    emulator.fault("status", status=529, times=-1)
    assert [drain() for _attempt in range(5)] == [0] * 5
    assert outcomes() == ["failed"] * 3
    # Each attempt asked both models of the palette.
    assert list(calls().values_list("outcome", flat=True)) == ["transient"] * 6
    assert calls().filter(reserved_tokens=0).count() == 0
    emulator.reset()
    with clock.moved(6 * 3600 - 60):
        assert drain() == 0
    with clock.moved(6 * 3600 + 60):
        assert drain() == 1
    assert outcomes() == ["failed"] * 3 + ["done"]
    assert texts(alice) == ["The user said: I live in Lisbon."]


def test_a_pause_holds_up_no_other_generation(emulator, alice):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    first = Generation.objects.get(thread=thread)
    end_generation(thread, "idle")
    exchange(thread, "I prefer tea.")
    rests(thread)
    for _attempt in range(3):
        Episode.objects.create(owner=alice, thread=thread, generation=first, through_seq=1, outcome="failed")
    assert drain() == 1
    assert texts(alice) == ["The user said: I prefer tea."]
    with clock.moved(6 * 3600 + 60):
        assert drain(thorough=True) == 1
    assert len(texts(alice)) == 2


def test_a_spent_budget_is_no_failure_and_nobody_elses(emulator, alice, bob, settings):
    mine, his = thread_of(alice), thread_of(bob)
    for thread in (mine, his):
        exchange(thread, "I live in Lisbon.")
    rests(mine, his)
    settings.BUDGET_USER_TOKENS = 60_000
    ModelCall.objects.create(
        purpose="steward",
        owner=alice,
        header=calls_header(),
        model="emulator-light",
        body_sha256="",
        max_tokens=1,
        reserved_tokens=59_000,
    )
    assert drain() == 1
    assert (texts(alice), texts(bob)) == ([], ["The user said: I live in Lisbon."])
    assert outcomes(owner=alice) == []
    # The minutes of that day ask for nothing more, and the next day goes on.
    OrmQ.objects.all().delete()
    [pause] = ReadingPause.objects.all()
    assert pause.owner == alice
    left = (pause.until - clock.now()).total_seconds()
    assert 0 < left <= 24 * 3600
    before = len(emulator.requests())
    for moment in (0, left - 600):
        with clock.moved(moment):
            run_tick(clock.now())
            assert not [task for task in OrmQ.objects.all() if task.task["func"] == "memory.tasks.read_for_memory"]
            assert drain() == 0
    assert len(emulator.requests()) == before
    with clock.moved(left + 60):
        run_tick(clock.now())
        assert [task for task in OrmQ.objects.all() if task.task["func"] == "memory.tasks.read_for_memory"]
        assert drain() == 1
    assert texts(alice) == ["The user said: I live in Lisbon."]


def test_a_category_that_no_light_model_may_read_waits_until_the_catalog_changes(emulator, alice, settings, tmp_path):
    file = tmp_path / "catalog.toml"
    file.write_text('[models.emulator-light-all]\nreads = ["work"]\n')
    settings.MAXCLAW_CATALOG = str(file)
    threads = [thread_of(alice, category=label) for label in ("personal", "work", "")]
    Thread.objects.filter(pk=thread_of(alice, category="personal").pk).update(category="given up")
    everywhere = Thread.objects.filter(kind="web")
    for thread in everywhere:
        exchange(thread, f"I live in {thread.category or 'Lisbon'}.")
    rests(*everywhere)
    assert set(steward_work.due_threads(clock.now(), 10, thorough=True)) == {thread.pk for thread in threads[1:]}
    assert drain() == 2
    assert not steward_work.due_threads(clock.now(), 1, thorough=True), "the next minute asks in vain"
    assert outcomes() == ["done"] * 2
    assert health.work().unread_by_light == "personal, confidential"
    settings.MAXCLAW_CATALOG = ""
    assert health.work().unread_by_light == ""
    assert drain() == 2


def test_many_conversations_that_cannot_be_read_hold_up_no_others(emulator, alice, bob, settings, monkeypatch):
    """More than are looked for at a time: paused ones, and those of somebody whose budget is spent, rest longest."""
    monkeypatch.setattr(steward, "THREADS_MAX", 3)
    paused = [thread_of(bob) for _number in range(4)]
    spent = [thread_of(alice) for _number in range(4)]
    for thread in (*paused, *spent):
        exchange(thread, "I live in Lisbon.")
    rests(*paused, *spent)
    for thread in paused:
        for _attempt in range(3):
            generation = Generation.objects.get(thread=thread)
            Episode.objects.create(owner=bob, thread=thread, generation=generation, through_seq=0, outcome="failed")
    last = thread_of(bob)
    exchange(last, "I prefer tea.")
    Thread.objects.filter(pk=last.pk).update(updated=clock.now() - timedelta(minutes=30))
    settings.BUDGET_USER_TOKENS = 60_000
    ModelCall.objects.create(
        purpose="steward",
        owner=alice,
        header=calls_header(),
        model="emulator-light",
        body_sha256="",
        max_tokens=1,
        reserved_tokens=59_000,
    )
    order = steward_work.due_threads(clock.now(), 100)
    owners = dict(Thread.objects.values_list("pk", "owner"))
    assert [owners[pk] for pk in order] == [bob.pk, alice.pk] * 4 + [bob.pk], "each person's next in turn"
    assert drain() == 1
    assert (texts(alice), texts(bob)) == ([], ["The user said: I prefer tea."])


def calls_header():
    from llm.wire import remember_header

    return remember_header('{"model":"none"}')


def test_a_claim_is_one_workers_and_a_dead_one_counts_as_a_failure(emulator, alice):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    rests(thread)
    reading = steward_work.claim(thread.pk)
    assert reading is not None
    assert read_page(thread.pk) is False
    assert calls().count() == 0
    with clock.moved(15 * 60 + 1):
        assert steward_work.sweep(clock.now()) == 1
        assert drain() == 1
    assert outcomes() == ["failed", "done"]
    with pytest.raises(steward_work.Lost):
        steward_work.finish(reading, None)
    assert Digest.objects.count() == 2


def test_two_workers_at_once_read_a_page_once(emulator, alice):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    rests(thread)
    emulator.answer(text("done"), hold="page")
    first = threading.Thread(target=lambda: (drain(), connection.close()))
    first.start()
    emulator.wait_for_held(1)
    assert drain() == 0
    emulator.release()
    first.join()
    assert outcomes() == ["done"]
    assert calls().count() == 1


def test_a_crash_before_the_end_of_a_page_reads_it_again_and_doubles_no_fact(emulator, alice, monkeypatch):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    rests(thread)

    def crash(*_args):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(steward_work, "finish", crash)
        assert drain() == 0
    assert (outcomes(), len(texts(alice)), Digest.objects.count()) == (["failed"], 1, 0)
    assert drain() == 1
    assert (outcomes(), len(texts(alice)), FactEvidence.objects.count()) == (["failed", "done"], 1, 1)


def test_what_is_isolated_or_deleted_while_it_is_read_is_not_written(emulator, alice):
    thread = thread_of(alice)
    said, _answer = exchange(thread, "I live in Lisbon.")
    rests(thread)
    emulator.answer(tool_use("write_fact", written(said)), hold="page")
    worker = threading.Thread(target=lambda: (drain(), connection.close()))
    worker.start()
    emulator.wait_for_held(1)
    lifecycle.narrow(thread, acting_user=alice, scope="isolated")
    emulator.release()
    worker.join()
    assert (Fact.objects.count(), Digest.objects.count(), outcomes()) == (0, 0, [])


def test_what_was_forgotten_is_not_learnt_again_from_words_that_nobody_has_read(emulator, alice, monkeypatch):
    """Written on request and forgotten before the steward came; written by the steward, whose page was not finished;
    forgotten while a page is read."""
    thread, again = thread_of(alice), thread_of(alice)
    said, _answer = exchange(thread, "I live in Lisbon.")
    exchange(thread, "I prefer tea.")
    exchange(again, "As ever: Alice lives in Lisbon.")
    forget(remember(said, "Alice lives in Lisbon.", writer="remember").fact, writer="person")
    rests(thread, again)

    def crash(*_args):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(steward_work, "finish", crash)
        assert drain() == 0
    assert texts(alice) == ["The user said: I prefer tea."]
    forget(Fact.objects.get(), writer="person")
    assert drain() == 2
    assert texts(alice) == []
    assert digested_ids() == readable_ids(thread, again)
    later, _answer = exchange(thread, "I live in Porto.")
    fact = remember(later, "Alice lives in Porto.", writer="remember").fact
    rests(thread)
    emulator.answer(tool_use("write_fact", written(later)), hold="page")
    worker = threading.Thread(target=lambda: (drain(), connection.close()))
    worker.start()
    emulator.wait_for_held(1)
    forget(fact, writer="person")
    emulator.release()
    worker.join()
    drain()
    assert texts(alice) == []
    assert digested_ids() == readable_ids(thread, again)


def written(said, **more):
    return {
        "text": "Alice lives in Lisbon.",
        "kind": "about-user",
        "aspect": "fact",
        "tone": "remark",
        "evidence": [{"kind": "max-stated", "message_id": f"m:{said.pk}"}],
        **more,
    }
