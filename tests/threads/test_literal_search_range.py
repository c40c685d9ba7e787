"""What a search by words leaves out, and how far it reaches: other levels, branches, every conversation."""

import pytest

from maxclaw import clock
from memory.chunks import embedded_rows
from tests.threads.records import exchange, give_result, say, thread_of
from tests.threads.test_literal_search import ids, many, result_of_tool, search
from threads import copying
from threads.history import HistoryRefused
from threads.literal_search import literal_search, literal_search_everywhere
from threads.models import Message, Thread
from threads.transcript import text_block
from threads.visibility import Level, Viewer

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(alice):
    return thread_of(alice)


# What is left out


def test_newer_rows_that_are_not_shown_take_no_place_of_older_ones_with_words_of_the_query(thread):
    say(thread, "user", "nothing of it")
    rows = many(thread, 12, "gateway migration, then the rollback token")
    hidden = ({"meta": {"looks_back": True}}, {"meta": {"source": "framework"}}, {"model_visible": False})
    for options in hidden:
        many(thread, 24, "the token of the gateway migration, its rollback", **options)
    result = search(thread, "gateway migration rollback token status")
    assert set(ids(result)) == {row.pk for row in rows[12 - len(set(ids(result))) :]}
    assert (result.total, result.exact) == (12, True)


def test_rewound_rows_take_no_place_of_older_ones_with_words_of_the_query(thread):
    rows = many(thread, 10, "the copper harbour")
    many(thread, 30, "harbour of copper")
    copying.rewind(thread, rows[-1], acting_user=thread.owner)
    result = search(thread, "copper harbour master")
    assert (result.total, result.exact) == (10, True)
    assert set(ids(result)) <= {row.pk for row in rows}


def test_copies_take_no_place_of_what_they_copy(thread):
    first = say(thread, "user", "begin")
    rows = many(thread, 30, "the copper harbour")
    copying.rewind(thread, first, acting_user=thread.owner)
    copying.undo_rewind(thread, acting_user=thread.owner)
    found = search(thread, "copper harbour master")
    assert (found.total, found.exact) == (30, True)
    assert set(ids(found)) <= {row.pk for row in rows}
    only_cold = search(thread, "copper harbour master", only_cold=True)
    assert (only_cold.total, only_cold.exact) == (0, True)


def test_newer_rows_that_are_not_shown_take_no_place_of_older_ones_with_the_whole_query(thread, monkeypatch):
    monkeypatch.setattr("threads.search_range.COUNT_MAX", 20)
    rows = many(thread, 200, "the copper harbour")
    short = say(thread, "user", "the copper harbour")
    many(thread, 70, "the copper harbour")
    for _number in range(25):
        say(thread, "user", "the copper harbour")
    copying.rewind(thread, short, acting_user=thread.owner)
    result = search(thread, "copper harbour")
    assert ids(result)[:2] == [short.pk, rows[-1].pk]
    assert result.total >= 40


def test_rows_of_the_framework_are_never_found(thread):
    for source in ("framework", "kernel/overflow"):
        say(thread, "event", f"needle {source}", meta={"source": source})
        result = say(thread, "event", "needle result", meta={"source": "task/abc"})
        assert ids(search(thread, "needle"))[0] == result.pk
    assert all("framework" not in hit.text and "kernel" not in hit.text for hit in search(thread, "needle").hits)


def test_rows_that_no_model_sees_are_never_found(thread):
    say(thread, "user", "needle one", model_visible=False)
    say(thread, "event", "needle two", model_visible=False, meta={"notice": "x"})
    give_result(thread, text="needle three " * 1_000).delete()
    result_of_tool(thread, "needle four " * 1_000, model_visible=False)
    assert search(thread, "needle").total == 0


def test_rewound_rows_are_never_found(thread):
    kept, _answer = exchange(thread, "needle kept", "yes")
    exchange(thread, "needle gone", "needle gone too")
    result_of_tool(thread, "needle long " * 1_000)
    copying.rewind(thread, Message.objects.get(pk=kept.pk), acting_user=thread.owner)
    assert ids(search(thread, "needle")) == [kept.pk]


def test_what_a_rewind_and_its_undoing_copied_is_shown_once_as_the_original(thread):
    rows = [*exchange(thread, "needle one", "ok"), *exchange(thread, "needle two", "needle " + "long " * 900)]
    copying.rewind(thread, rows[0], acting_user=thread.owner)
    copying.undo_rewind(thread, acting_user=thread.owner)
    assert sorted(ids(search(thread, "needle"))) == [rows[0].pk, rows[2].pk, rows[3].pk]


def test_cold_rows_alone_can_be_asked_for(thread):
    cold, _answer = exchange(thread, "needle cold", "ok")
    exchange(thread, "needle live", "ok")
    Message.objects.filter(pk=cold.pk).update(left_at_cut=1, left_because="cold")
    assert ids(search(thread, "needle", only_cold=True)) == [cold.pk]
    assert len(search(thread, "needle").hits) == 2


def test_an_isolated_conversation_gives_an_outsider_nothing(alice):
    isolated, other = thread_of(alice, scope="isolated"), thread_of(alice)
    row = say(isolated, "user", "needle inside")
    with pytest.raises(HistoryRefused) as caught:
        search(isolated, "needle", Viewer.of_thread(other))
    assert isolated.channel in str(caught.value)
    assert "isolated" in str(caught.value)
    assert "needle" not in str(caught.value)
    with pytest.raises(HistoryRefused):
        search(isolated, "needle", Viewer(alice.pk, None, Level()))
    assert ids(search(isolated, "needle")) == [row.pk]
    task = thread_of(alice, parent=isolated, kind=Thread.Kind.TASK)
    assert ids(search(isolated, "needle", Viewer.of_thread(task))) == [row.pk]


def test_the_unknown_and_another_owners_channel_answer_identically(alice, bob):
    thread, foreign = thread_of(alice), thread_of(bob)
    say(foreign, "user", "needle")
    answers = set()
    for channel in (foreign.channel, "nosuchthread", "", "x" * 500, "\x00", "\ud800"):
        with pytest.raises(HistoryRefused) as caught:
            literal_search(Viewer.of_thread(thread), channel, "needle")
        answers.add(str(caught.value))
    assert len(answers) == 1


@pytest.mark.parametrize(
    "query", ["", "  \n", "ab", "中", "가", "ᄀ\u1161", '"', "a b", "%", "\u3000\u3000", "x" * 200_001]
)
def test_a_query_that_asks_for_nothing_is_refused_with_what_to_change(thread, query):
    if query == "a b":
        assert search(thread, query).hits == []
        return
    with pytest.raises(HistoryRefused, match=r"The query is (empty|too short|too long)"):
        search(thread, query)


# Forks


def test_a_branch_reads_what_it_was_copied_from_up_to_that_point(alice):
    source = thread_of(alice)
    early, answer = exchange(source, "needle early", "needle answer " * 300)
    branch = copying.fork(alice, source, answer, acting_user=alice)
    exchange(source, "needle later", "needle later")
    own = say(branch, "user", "needle own")
    assert ids(search(branch, "needle"))[:3] == [own.pk, answer.pk, early.pk]
    assert search(branch, "needle").total == 3
    second = copying.fork(alice, branch, Message.objects.get(pk=own.pk), acting_user=alice)
    assert sorted(set(ids(search(second, "needle")))) == [early.pk, answer.pk, own.pk]


def test_a_branch_keeps_its_copies_when_the_source_is_out_of_reach(alice):
    source = thread_of(alice)
    early, answer = exchange(source, "needle early", "needle answer " * 300)
    branch = copying.fork(alice, source, answer, acting_user=alice)
    copies = sorted(branch.messages.values_list("pk", flat=True))
    copying.rewind(source, early, acting_user=alice, keep=False)
    assert sorted(set(ids(search(branch, "needle")))) == copies, "rewound in the source, not here"
    Thread.objects.filter(pk=source.pk).update(deleted=clock.now())
    assert sorted(set(ids(search(branch, "needle")))) == copies
    Thread.objects.filter(pk=source.pk).delete()
    branch.refresh_from_db()
    assert sorted(set(ids(search(branch, "needle")))) == copies


def test_a_branch_does_not_reach_into_a_source_that_became_isolated(alice):
    source = thread_of(alice)
    early, answer = exchange(source, "needle early", "ok")
    branch = copying.fork(alice, source, answer, acting_user=alice)
    copied = branch.messages.get(copied_from=early)
    Thread.objects.filter(pk=source.pk).update(scope="isolated", island=source)
    assert ids(search(branch, "needle")) == [copied.pk]


def test_words_said_beside_a_search_are_found_and_a_call_alone_is_not(thread):
    def looking(text):
        blocks = [text_block(text)] if text else []
        blocks.append({"type": "tool_use", "id": "toolu_9", "name": "search_memory", "input": {"query": "login zlorp"}})
        return say(thread, "assistant", text, blocks=blocks, model="emulator-main")

    saying = looking("The database port is 5433, not 5432. Let me look up the login.")
    alone, blank = looking(""), looking(" \n")
    assert ids(search(thread, "The database port is 5433")) == ids(search(thread, "5433")) == [saying.pk]
    assert not {alone.pk, blank.pk} & set(ids(search(thread, "zlorp")))
    assert literal_search_everywhere(Viewer.of_thread(thread), "5433").total == 1
    assert list(embedded_rows(Message.objects.filter(thread=thread))) == [saying]


# In every conversation


def test_rows_that_may_not_be_shown_take_no_place_of_others_anywhere(alice, thread, monkeypatch):
    monkeypatch.setattr("threads.search_range.COUNT_MAX", 5)
    monkeypatch.setattr("threads.search_range.RECHECKED_ALL", 5)
    monkeypatch.setattr("threads.search_range.RECHECKED_FIRST", 5)
    rows = many(thread, 4, "the copper harbour")
    many(thread_of(alice, scope="isolated"), 12, "the copper harbour")
    many(thread, 12, "the copper harbour", model_visible=False)
    many(thread, 12, "copp oppe pper er h harb rbou bour r ha")  # seems to hold it
    found = literal_search_everywhere(Viewer(alice.pk, None, Level()), "copper harbour")
    assert set(ids(found)) == {row.pk for row in rows}
    assert (found.total, found.exact) == (4, True)
