"""Old words are found exactly, in bounded windows, and nothing that must not be seen is."""

import re

import pytest
from django.db import transaction

from maxclaw import clock
from tests.threads.records import call_tool, exchange, give_result, live, say, thread_of
from threads.literal_search import WORDS_SHOWN_FIRST, WORDS_SHOWN_MAX, literal_search, literal_search_everywhere
from threads.literal_windows import LITERAL_MAX_CHARS
from threads.models import Generation
from threads.search_range import Range
from threads.transcript import NewMessage, append_many, lock_thread
from threads.visibility import Viewer

pytestmark = pytest.mark.django_db
NEXT = iter(range(10**9))


def search(thread, query, viewer=None, **options):
    return literal_search(viewer or Viewer.of_thread(thread), thread.channel, query, **options)


def ids(result):
    return [hit.message_id for hit in result.hits]


def result_of_tool(thread, text, **options):
    """A tool's result, with the call before it."""
    call_id = f"toolu_{next(NEXT)}"
    call_tool(thread, call_id=call_id)
    return give_result(thread, call_id=call_id, text=text, **options)


def many(thread, count, text, **options):
    """Rows of the user's with the same long text, written at once."""
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        new = NewMessage("user", text=f"{text} {'.' * 2_000}", wire="[]", **options)
        return append_many(locked, live(locked), [new] * count)


def begin_generation(thread):
    with transaction.atomic():
        generation = live(lock_thread(thread.pk))
        Generation.objects.filter(pk=generation.pk).update(ended=clock.now(), end_reason="manual", summary="a summary")
        return Generation.objects.create(
            thread=thread,
            owner=thread.owner,
            ordinal=generation.ordinal + 1,
            opening='[{"type":"text","text":"opened"}]',
        )


@pytest.fixture
def thread(alice):
    return thread_of(alice)


# What is found


def test_text_and_arguments_of_tool_calls_are_read(thread):
    call = call_tool(
        thread, arguments={"command": "ssh -i ~/.ssh/id_vault root@gateway", "paths": [{"at": "C:\\Users"}]}
    )
    result = give_result(thread, text="connected to gateway")
    assert ids(search(thread, "~/.ssh/id_vault")) == [call.pk]
    (hit,) = search(thread, "c:\\uSERS").hits
    assert (hit.message_id, hit.field, hit.role, hit.generation_id) == (
        call.pk,
        "look.paths.at",
        "assistant",
        live(thread).pk,
    )
    assert ids(search(thread, "connected to")) == [result.pk]


def test_every_generation_is_read_and_summaries_and_openings_are_not(thread):
    command = 'ssh -p 2222 -i ~/.ssh/id_vault ann@gateway "tail -n 5 C:\\logs\\vault.log"'
    call = call_tool(thread, arguments={"command": command})
    give_result(thread, text="connected")
    begin_generation(thread)
    begin_generation(thread)
    exchange(thread, "and now?", "nothing")
    for query in ("gateway", "~/.ssh/id_vault", "C:\\logs\\vault.log", command, f'"{command}"', f"  {command}\n"):
        assert ids(search(thread, query)) == [call.pk], query
    for query in ("a summary", '"op"'):
        assert search(thread, query).hits == []


def test_quotes_around_the_query_and_around_its_words_do_not_matter(thread):
    row = say(thread, "user", "the vault is red")
    say(thread, "user", "blue")
    for query in ('"vault is"', "“vault is”", "「vault is」", "\"vault\" 'purple'"):
        assert ids(search(thread, query)) == [row.pk], query


def test_rows_with_the_query_as_given_come_before_those_without_the_quotes_around_it(alice, thread):
    exact = say(thread, "user", 'It logs {"level": "error"} and stops.')
    for _number in range(30):
        say(thread, "user", 'It logs {"sublevel": "errors"} and goes on.')
    for query in ('"level": "error"', ' "level": "error"'):
        found = literal_search(Viewer.of_thread(thread), thread.channel, query)
        assert found.hits[0].message_id == exact.pk
        assert found.total == 31
    assert literal_search_everywhere(Viewer.of_thread(thread), '"level": "error"').hits[0].message_id == exact.pk


def test_the_query_as_given_finds_quotes_that_belong_to_it(thread):
    quoted = say(thread, "user", 'she said "vault"')
    assert ids(search(thread, '"vault"')) == [quoted.pk]


def test_signs_of_other_languages_of_patterns_are_only_signs(thread):
    rows = {
        needle: say(thread, "user", f"before {needle} after") for needle in ("100%", "a_b", "x\\y", "it's", "[a-z]*")
    }
    say(thread, "user", "1000 axb xy its az")
    for needle, row in rows.items():
        assert ids(search(thread, needle)) == [row.pk], needle


def test_case_does_not_matter_where_a_script_has_it(thread):
    for text, query in (
        ("Die Straße ist lang", "STRASSE"),
        ("the ﬁle is full", "FILE"),
        ("ΑΘΗΝΑ", "αθηνα"),
        ("Привет, мир", "ПРИВЕТ"),
        ("Zoe\u0308 was here", "ZOË WAS"),
        ("İstanbul", "İSTANBUL"),
    ):
        row = say(thread, "user", text)
        assert ids(search(thread, query))[0] == row.pk, query


def test_two_characters_are_enough_where_a_script_writes_without_spaces(thread):
    row = say(thread, "user", "我们在长沙见面")
    say(thread, "user", "我们在上海见面")
    assert ids(search(thread, "长沙")) == [row.pk]


def test_a_picture_is_enough(thread):
    row = say(thread, "user", "shipped 🚀 today")
    say(thread, "user", "nothing shipped")
    assert ids(search(thread, "🚀")) == [row.pk]


@pytest.mark.parametrize(
    ("long_text", "needle"),
    [("ﬃ ß İ é e\u0301 🇩🇪🇫🇷 " * 400, "the needle"), ("中文" * 3_000, "针在这里"), ("ǰ\u0323" * 3_000, "Nadel")],
)
def test_a_window_stands_where_the_match_is_although_folding_changes_lengths(thread, long_text, needle):
    result_of_tool(thread, f"{long_text}{needle.upper()}{long_text}")
    (hit,) = search(thread, needle).hits
    assert needle.upper() in hit.window.text
    assert 150 <= hit.window.text.index(needle.upper()) <= 210


# Which ones come first


def test_rows_with_the_whole_query_come_first_and_the_newest_of_them_at_the_top(thread):
    first = say(thread, "user", "restart the red vault service")
    words = say(thread, "user", "vault vault vault red service restart")
    second = say(thread, "user", "please restart the red vault service, again")
    say(thread, "user", "nothing of it")
    assert ids(search(thread, "restart the red vault service")) == [second.pk, first.pk, words.pk]


def test_rare_words_count_more_than_common_ones(thread):
    rare = say(thread, "user", "the aardvark slept")
    for number in range(20):
        say(thread, "user", f"a report of day {number}")
    assert ids(search(thread, "aardvark report"))[0] == rare.pk


def test_of_each_row_it_is_known_which_words_it_holds(thread):
    needles = ("harbour", "copper", "vault")
    held = {bits: " and ".join(word for bit, word in enumerate(needles) if bits >> bit & 1) for bits in range(1, 8)}
    short = {say(thread, "user", words).pk: bits for bits, words in held.items()}
    long = {many(thread, 1, words)[0].pk: bits for bits, words in held.items()}
    searched = Range(Viewer.of_thread(thread), thread)
    with transaction.atomic():
        found = searched.holding_any(needles)
        assert {id: bits for id, bits, _size in found.short} == short
        assert searched.held([id for id, _bits in found.long], needles) == long


def test_the_newest_comes_first_among_equals(thread):
    rows = [say(thread, "user", "about the harbour") for _number in range(4)]
    assert ids(search(thread, "harbour master")) == [row.pk for row in reversed(rows)]


def test_words_are_found_in_other_forms(thread):
    row = say(thread, "user", "Melanie painted a lake")
    say(thread, "user", "Melanie slept")
    assert ids(search(thread, "What paintings are there?")) == [row.pk]


def test_words_of_a_question_without_spaces_are_found(thread):
    row = say(thread, "user", "周末我去看了岳麓山的银杏")
    say(thread, "user", "今天下雨")
    assert ids(search(thread, "什么时候去看的银杏？")) == [row.pk]


def test_a_word_without_spaces_that_is_found_is_not_taken_apart(thread):
    row = say(thread, "user", "岳麓山脚下的银杏黄了")
    say(thread, "user", "山脚下有一家店")
    assert ids(search(thread, "岳麓山脚下的银杏")) == [row.pk]
    assert len(search(thread, "岳麓山脚下的枫叶").hits) == 2


def test_rows_that_share_a_common_word_alone_leave_their_room_to_what_is_near_in_meaning(thread):
    for number in range(40):
        say(thread, "user", f"a harbour of some kind, number {number}")
    best = say(thread, "user", "the copper bell of the harbour rang at the gateway")
    result = search(thread, "copper bell harbour gateway rang")
    assert ids(result)[0] == best.pk
    assert len(result.hits) == WORDS_SHOWN_FIRST
    assert (result.total, result.left_out, result.exact) == (41, 41 - WORDS_SHOWN_FIRST, True)
    assert f"{result.left_out} more hits are not shown" in result.text
    equals = search(thread, "harbour kind absent")
    assert len(equals.hits) == WORDS_SHOWN_MAX
    # Rows with the query itself are never too many to show.
    assert len(search(thread, "harbour of some kind").hits) == 41


def test_a_path_is_taken_as_it_stands(thread):
    say(thread, "user", "the etc of nginx and conf")
    row = say(thread, "user", "see /etc/nginx/nginx.conf there")
    assert ids(search(thread, "/etc/nginx/nginx.conf")) == [row.pk]
    assert ids(search(thread, "open /etc/nginx/nginx.conf")) == [row.pk]


def test_a_long_row_is_shown_where_its_words_stand_together(thread):
    text = f"copper {'.' * 3_000} harbour {'.' * 3_000} the copper harbour bell {'.' * 3_000}"
    result_of_tool(thread, text)
    (hit,) = search(thread, "bells of a copper harbour").hits
    assert "the copper harbour bell" in hit.window.text


# How much is shown


def test_windows_are_bounded_and_what_is_left_out_is_counted(thread):
    for number in range(120):
        result_of_tool(thread, "x" * 30_000 + f" the needle {number} " + "x" * 29_980)
    result = search(thread, "needle")
    assert result.total == 120
    assert result.exact
    assert len(set(ids(result))) == 120 - result.left_out
    assert f"\n{result.left_out} more hits are not shown. Narrow the query" in result.text
    assert len(result.text) <= LITERAL_MAX_CHARS
    assert "x" * 801 not in result.text
    lengths = [len(hit.window.text) for hit in result.hits]
    assert max(lengths) <= 800
    assert lengths == sorted(lengths, reverse=True)
    assert len(lengths) > 15


def test_a_window_that_lacks_part_of_its_text_says_so_and_where_the_rest_is(thread):
    row = result_of_tool(thread, "x" * 5_000 + "needle" + "x" * 5_000)
    (hit,) = search(thread, "needle").hits
    assert hit.text.endswith(f"[part of it: message_context_read m:{row.pk} offset {hit.window.begin}]")
    assert 4_790 <= hit.window.begin <= 4_810
    assert "part of it" not in search(thread, "nothing of it").text
    say(thread, "user", "a short word")
    assert "part of it" not in search(thread, "short word").text


def test_overlapping_matches_share_a_window_and_distant_ones_of_one_row_do_not(thread):
    row = result_of_tool(thread, f"{'x' * 3_000} needle needle needle {'x' * 3_000} needle {'x' * 3_000}")
    result = search(thread, "needle")
    assert ids(result) == [row.pk, row.pk]
    assert result.hits[0].window.end <= result.hits[1].window.begin
    assert (result.total, result.left_out) == (1, 0)


def test_a_window_is_cut_between_signs(thread):
    family = "👩\u200d👩\u200d👧\u200d👦"
    row = result_of_tool(thread, f"{family * 300} needle {family * 300}")
    (hit,) = search(thread, "needle").hits
    assert hit.window.text == f"…{row.text[hit.window.begin : hit.window.end]}…"
    assert hit.window.begin % len(family) == 0
    assert (len(row.text) - hit.window.end) % len(family) == 0


def test_the_bound_holds_for_many_short_rows(thread):
    for number in range(300):
        say(thread, "user", f"needle number {number} 🧑‍🧑‍🧒‍🧒")
    result = search(thread, "needle")
    assert len(result.text) <= LITERAL_MAX_CHARS
    assert (result.total, result.exact) == (300, True)
    assert result.left_out == 300 - len(result.hits)


def test_an_inexact_count_says_that_it_is_one(thread, monkeypatch):
    monkeypatch.setattr("threads.search_range.COUNT_MAX", 150)
    for _number in range(160):
        say(thread, "user", "nee#dle " + "x" * 100)
    result = search(thread, "nee#dle")
    assert not result.exact
    # How many windows fit depends on how long their ids are.
    said = re.search(r"At least (\d+) more hits", result.text)
    assert said and 0 < int(said.group(1)) < 150


def test_long_rows_that_were_not_read_for_single_words_are_mentioned(thread):
    many(thread, 64 + 1, "copper and a harbour")
    result = search(thread, "a harbour of copper")
    assert not result.exact
    assert result.total == 64
    assert f"At least {result.left_out} more hits" in result.text


def test_nothing_stored_is_told_from_nothing_found(thread):
    assert search(thread, "needle").nothing_stored
    say(thread, "user", "hay")
    result = search(thread, "needle")
    assert (result.hits, result.total, result.nothing_stored) == ([], 0, False)


def test_nothing_found_among_those_read_is_not_said_of_all(thread, monkeypatch):
    monkeypatch.setattr("threads.literal_search.LONG_READ", (2,))
    many(thread, 3, "harb rbou bour")  # has every run of three letters of the word, and not the word
    unread = search(thread, "harbour master")
    assert (unread.hits, unread.total, unread.exact) == ([], 0, False)
    assert "not all were read. Narrow the query" in unread.text
    assert "No message holds" not in unread.text
    assert search(thread, "lighthouse keeper").text == "No message holds these words."


def test_long_rows_that_only_seem_to_hold_a_word_take_no_place_of_those_that_do(thread):
    rows = many(thread, 3, "the copper harbour")
    many(thread, 60, "harb rbou bour copp oppe pper")
    result = search(thread, "a harbour of copper")
    assert set(ids(result)) == {row.pk for row in rows}
    assert (result.total, result.exact) == (3, True)


def test_what_a_search_of_several_words_looks_at_does_not_grow_with_the_conversation(thread, monkeypatch):
    monkeypatch.setattr("threads.search_range.CANDIDATES_MAX", 20)
    monkeypatch.setattr("threads.literal_search.LONG_READ", (8, 8))
    [oldest] = many(thread, 1, "the copper harbour, its bell")
    looked_at = []
    for _growth in range(2):
        for words in ("a copper roof", "some harbour", "that bell"):
            many(thread, 40, words)
        result = search(thread, "bell of a copper harbour")
        assert result.hits[0].message_id == oldest.pk, "however many newer rows have each of its words"
        with transaction.atomic():
            found = Range(Viewer.of_thread(thread), thread).holding_any(("copper", "harbour", "bell"))
        looked_at.append((len(found.long), result.total, result.exact))
    assert looked_at == [(61, 16, False)] * 2
