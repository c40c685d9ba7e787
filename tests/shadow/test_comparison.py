"""The comparison: each measure by itself, in a transaction that cannot write, and no word of an isolated conversation
in any prompt."""

import csv
import io
import json
from datetime import timedelta
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.db import InternalError, connection
from hypothesis import given
from hypothesis import strategies as st

from llm import budgets
from llm.emulator.client import tool_use
from llm.models import ModelCall, RequestHeader
from maxclaw import clock
from memory.models import Digest, Episode, Fact
from shadow import comparison, comparison_figures, comparison_reading, comparison_report, pairing
from shadow.comparison import Examined, Item, PairingRefused, Reading
from shadow.comparison_figures import Spent
from shadow.models import ProposalReview, ShadowBaseline, ShadowFactProposal, ShadowRun
from tests.memory.facts import fact_row
from tests.shadow.records import proposal_row, run_row
from tests.threads.records import exchange, live, say, thread_of
from threads import lifecycle
from threads.models import Generation, Message, Thread

PRICES = {"input": "1", "output": "10", "cache_read": "0.1", "cache_write_5m": "1.25", "cache_write_1h": "2"}
words = st.text(st.sampled_from("ab c.，。Ａ１1"), max_size=6)
items = st.builds(
    lambda number, owner, text, sources, category: (number, owner, text, sources, category),
    st.integers(1, 999),
    st.integers(1, 2),
    words,
    st.frozensets(st.sampled_from(["m:1", "m:2", "g:1"])),
    st.frozensets(st.sampled_from(["x", "y"]), max_size=1),
)


def made(kind, rows):
    return [Item(f"{kind}:{row[0]}", *row[1:]) for row in {row[0]: row for row in rows}.values()]


def compare(*options):
    out = io.StringIO()
    call_command("shadow_compare", "--format", "json", *options, stdout=out)
    return json.loads(out.getvalue())


@given(st.lists(items, max_size=8), st.lists(items, max_size=8))
def test_measures_are_of_one_person_symmetric_and_never_beyond_their_items(left, right):
    steward, shadow = made("f", left), made("p", right)
    by_key = {item.key: item for item in [*steward, *shadow]}
    turned = [Item("f:" + item.key[2:], *list(vars(item).values())[1:]) for item in shadow]
    turned_back = [Item("p:" + item.key[2:], *list(vars(item).values())[1:]) for item in steward]
    for measure in (comparison.exact, comparison.by_evidence):
        found = measure(steward, shadow)
        assert all(by_key[one].owner_id == by_key[other].owner_id for one, other in found.pairs)
        assert 0 <= found.steward_by_shadow.covered <= len(steward)
        assert 0 <= found.shadow_by_steward.covered <= len(shadow)
        back = measure(turned, turned_back)
        assert (back.steward_by_shadow, back.shadow_by_steward) == (found.shadow_by_steward, found.steward_by_shadow)


@given(st.lists(items, max_size=9), st.lists(items, max_size=9))
def test_each_two_items_of_a_group_meet_in_one_piece(left, right):
    steward, shadow = made("f", left), made("p", right)
    pieces = [piece for group in comparison.groups(steward, shadow) for piece in comparison.pieces(group, 2)]
    assert all(len(side) <= 2 for piece in pieces for side in (piece.steward, piece.shadow))
    assert all(piece.steward and piece.shadow for piece in pieces)
    met = [(one.key, other.key) for piece in pieces for one in piece.steward for other in piece.shadow]
    wanted = {
        (one.key, other.key)
        for one in steward
        for other in shadow
        if (one.owner_id, one.categories) == (other.owner_id, other.categories)
    }
    assert len(met) == len(set(met)) and set(met) == wanted


@given(st.integers(0, 60), st.integers(0, 60), st.lists(st.integers(0, 99), max_size=30))
def test_an_interval_holds_its_share_and_a_percentile_is_one_of_the_values(one, other, values):
    successes, trials = sorted((one, other))
    low, high = comparison_figures.wilson(successes, trials)
    if trials:
        assert 0 <= low <= successes / trials <= high <= 1
    else:
        assert low is None and high is None
    for percent in (50, 95):
        found = comparison_figures.percentile(values, percent)
        if values:
            assert sum(value <= found for value in values) * 100 >= percent * len(values) and found in values
        else:
            assert found is None


def test_the_interval_is_that_of_wilson():
    low, high = comparison_figures.wilson(45, 50)
    assert (round(low, 4), round(high, 4)) == (0.7864, 0.9565)


def test_a_rewording_is_a_neighbour_and_no_exact_coverage():
    steward = [Item("f:1", 1, "部署使用独立工作区。", frozenset({"m:5"}))]
    shadow = [
        Item("p:1", 1, "部署有独立工作区", frozenset({"m:5"})),
        Item("p:2", 1, "部署 使用，独立工作区", frozenset({"m:9"})),
    ]
    exact, evidence = comparison.exact(steward, shadow[:1]), comparison.by_evidence(steward, shadow)
    assert exact.steward_by_shadow.share == 0 and exact.pairs == []
    assert evidence.steward_by_shadow.share == 1 and evidence.pairs == [("f:1", "p:1")]
    assert evidence.shadow_by_steward.share == 0.5
    assert comparison.exact(steward, shadow).pairs == [("f:1", "p:2")]
    # Another person's same words and no words at all are nobody's counterpart.
    assert comparison.exact(steward, [Item("p:3", 2, "部署使用独立工作区")]).pairs == []
    assert comparison.exact([Item("f:2", 1, "。")], [Item("p:4", 1, "！")]).pairs == []


def test_an_index_out_of_range_is_an_error():
    [group] = comparison.groups([Item("f:1", 1, "a")], [Item("p:1", 1, "b"), Item("p:2", 1, "c")])
    assert comparison.pairs_of(group, [(0, 1)]) == [("f:1", "p:2")]
    for pair in ((1, 0), (0, 2), (-1, 0), (0, -1)):
        with pytest.raises(PairingRefused):
            comparison.pairs_of(group, [(0, 0), pair])


def test_a_missing_price_makes_the_row_unknown_and_hot_answers_have_a_column_of_their_own():
    def hot(**fields):
        return Spent("hot", "big", "completed", output_tokens=100, cache_read_tokens=1000, **fields)

    priced = hot(cost=Decimal("0.0011"), output_price=Decimal(10))
    cold = Spent("cold", "small", "completed", output_tokens=50, cost=Decimal("0.1"), output_price=Decimal(1))
    whole = {(row.path, row.status): row for row in comparison_figures.costs([priced, priced, cold])}
    assert whole["hot", "completed"].cost == Decimal("0.0022")
    assert whole["hot", "completed"].hot_output_tokens == 200
    assert whole["hot", "completed"].hot_output_cost == Decimal("0.002")
    assert whole["cold", "completed"].hot_output_tokens is None and whole["cold", "completed"].hot_output_cost is None
    broken = comparison_figures.costs([priced, hot(), Spent("hot", "big", "cancelled", called=False)])
    assert [(row.status, row.runs, row.calls, row.cost) for row in broken] == [
        ("cancelled", 1, 0, Decimal(0)),
        ("completed", 2, 2, None),
    ]
    assert broken[1].hot_output_cost is None


def test_each_message_is_counted_by_how_often_it_was_read():
    readings = [Reading(1, 0, 3), Reading(1, 3, 5), Reading(2, 4, 6), Reading(2, 5, 7)]
    times = comparison.times_read([(1, 1), (1, 3), (1, 4), (1, 6), (2, 6), (2, 7), (3, 1)], readings)
    assert times == [1, 1, 1, 0, 2, 1, 0]
    assert comparison.examined(times) == Examined(once=4, never=2, again=1)
    assert comparison.examined([]).share is None


@pytest.mark.django_db
def test_the_database_refuses_to_write_while_a_comparison_reads(alice):
    with pytest.raises(InternalError, match="read-only"), comparison_reading.reading_only():
        Thread.objects.filter(owner=alice).update(title="written")
    Thread.objects.filter(owner=alice).update(title="written")


@pytest.mark.django_db(transaction=True)
def test_a_report_reads_one_moment_in_a_transaction_that_cannot_write(alice):
    proposal_row(say(thread_of(alice), "user", "I like tea."))
    seen = []

    def ask_first(execute, sql, params, many, context):
        """Before each statement that reads a table, how its transaction stands."""
        if "FROM" in sql:
            with context["connection"].connection.cursor() as beside:
                how = "current_setting('transaction_isolation'), current_setting('transaction_read_only')"
                seen.append(beside.execute(f"SELECT {how}").fetchone())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(ask_first):
        comparison_report.report(comparison_reading.last_week())
    assert len(seen) > 10 and set(seen) == {("repeatable read", "on")}


@pytest.mark.django_db
def test_facts_of_words_from_before_shadows_began_are_outside_of_what_is_compared(alice):
    thread = thread_of(alice)
    said, answer = exchange(thread, "I like tea.", "Noted.")
    ShadowBaseline.objects.create(generation=live(thread), thread=thread, owner=alice, baseline=answer.pk)
    fact_row(alice, said, "Prefers tea.")
    fact_row(alice, say(thread, "user", "I like milk."), "Prefers milk.")
    found = compare()
    assert (found["items"]["steward"], found["items"]["steward_outside_of_shadows"]) == (1, 1)


def priced_call(thread, **fields):
    header, _made = RequestHeader.objects.get_or_create(sha256="0" * 64, defaults={"text": "{}"})
    values = {
        "purpose": "shadow",
        "owner": thread.owner,
        "thread_id": thread.pk,
        "generation_id": live(thread).pk,
        "model": "emulator-light",
        "header": header,
        "max_tokens": 10,
        "outcome": "complete",
        "input_tokens": 100,
        "output_tokens": 10,
        "prices": PRICES,
        "cost": Decimal("0.0002"),
        "total_ms": 700,
    }
    return ModelCall.objects.create(**values | fields)


@pytest.mark.django_db
def test_the_report_holds_each_measure_and_what_it_does_not_show(alice, bob):
    thread, main = thread_of(alice), Thread.objects.get(owner=alice, kind="main")
    said, answer = exchange(thread, "I like tea.", "Noted.")
    ShadowBaseline.objects.create(generation=live(thread), thread=thread, owner=alice, baseline=0)
    fact = fact_row(alice, said, "Prefers tea.")
    fact_row(alice, say(main, "user", "I like milk."), "Prefers milk.")
    island = thread_of(alice, scope="isolated")
    fact_row(alice, say(island, "user", "Secret."), "Secret.", scope="isolated", island=island)
    fact_row(alice, said, "Old.", created=clock.now() - timedelta(days=30))
    episode = Episode.objects.create(owner=alice, thread=thread, generation=live(thread), through_seq=answer.pk)
    Digest.objects.create(message=said, owner=alice, episode=episode)
    priced_call(thread, purpose="steward")
    priced_call(thread, purpose="steward", outcome="transient", input_tokens=None, cost=None)
    hot_usage = {"input_tokens": 5, "output_tokens": 100, "cache_read_tokens": 1000, "cost": Decimal("0.0011")}
    kept = priced_call(thread, model="big", **hot_usage)
    priced_call(thread, outcome="interrupted", input_tokens=None, cost=None)
    hot = {"path": "hot", "path_reason": "", "model": "big", "through_seq": answer.pk}
    run = run_row(thread, call=kept.pk, duration_ms=900, **hot)
    unpriced = priced_call(thread, model="small", cost=None, prices=None)
    empty = run_row(thread, model="small", call=unpriced.pk, through_seq=said.pk, started=run.started)
    good = proposal_row(said, "Likes tea", run=run)
    twin = proposal_row(said, "Prefers  tea", run=run, position=1)
    raw = {"text": "x", "evidence": [{"kind": "max-stated", "message_id": 999_999_999}, "nonsense"]}
    proposal_row(said, run=run, position=2, validation_error="There is no message.", raw=raw)
    ProposalReview.objects.create(proposal=good, owner=alice, reviewer=bob, verdict="correct")
    ProposalReview.objects.create(proposal=twin, owner=alice, reviewer=bob, verdict="duplicate")

    found = compare()
    assert found["items"] == {
        "steward": 1,
        "shadow": 2,
        "steward_outside_of_shadows": 2,
        "shadow_rejected": 1,
    }
    pair = {"steward": f"f:{fact.pk}", "shadow": f"p:{twin.pk}"}
    assert found["exact_coverage"]["pairs"] == [pair]
    assert found["exact_coverage"]["shadow_by_steward"] == {"covered": 1, "total": 2, "share": 0.5}
    assert len(found["evidence_coverage"]["neighbours"]) == 2 and "pairs" not in found["evidence_coverage"]
    assert found["semantic_coverage"] is None and found["semantic_calls_planned"] == 1
    # Two runs that began at once both read what the user said; the steward has not read the answer.
    assert found["examined_once"]["shadow"]["live"] == {"once": 1, "never": 0, "again": 1, "share": 0.5}
    assert found["examined_once"]["steward"]["live"] == {"once": 1, "never": 1, "again": 0, "share": 0.5}
    waste = {(row["path"], row["model"]): (row["calls"], row["barren"]) for row in found["waste"]}
    assert waste == {
        ("hot", "big"): (1, 0),
        ("cold", "small"): (1, 1),
        ("repeated", "emulator-light"): (1, 1),
        ("steward", "emulator-light"): (2, 0),
    }
    cost = {(row["path"], row["status"]): (row["cost"], row["hot_output_cost"]) for row in found["cost"]}
    assert cost == {
        ("hot", "completed"): ("0.00110000", "0.001"),
        ("cold", "completed"): (None, None),
        ("repeated", "interrupted"): (None, None),
        ("steward", "complete"): ("0.00020000", None),
        ("steward", "transient"): ("0", None),
    }
    assert {row["path"]: row["p95"] for row in found["latency_ms"]}["hot"] == 900
    quality = {(row["path"], row["kind"]): (row["pointers"], row["missing"]) for row in found["evidence_quality"]}
    assert quality == {
        ("hot", "max-stated"): (3, 1),
        ("hot", "unreadable"): (1, 1),
        ("steward", "max-stated"): (2, 0),
    }
    [hot_row] = [row for row in found["precision"] if row["path"] == "hot"]
    assert (hot_row["proposed"], hot_row["rejected"], hot_row["judged"], hot_row["precision"]) == (3, 1, 2, 0.5)
    assert 0 < hot_row["low"] < 0.5 < hot_row["high"] < 1
    text, lines = io.StringIO(), io.StringIO()
    call_command("shadow_compare", stdout=text)
    call_command("shadow_compare", "--format", "csv", stdout=lines)
    for output in (text.getvalue(), lines.getvalue(), json.dumps(found)):
        assert "no coverage by meaning" in output and "no bill" in output and "fact is true" in output
        assert "tea" not in output.lower()
    table = list(csv.DictReader(io.StringIO(lines.getvalue())))
    assert {"measure": "exact", "of": f"f:{fact.pk}", "model": "", "status": "", "figure": "pair"} | {
        "value": f"p:{twin.pk}"
    } in table
    assert empty.pk and compare("--first", "2020-01-01", "--last", "2020-01-07")["items"]["steward"] == 0
    with pytest.raises(CommandError):
        call_command("shadow_compare", "--first", "2020-02-01", "--last", "2020-01-07")


@pytest.mark.parametrize("option", ["--first", "--last"])
@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-03", "9999-12-31"])
def test_a_day_beyond_all_records_is_refused_in_words(option, day):
    with pytest.raises(CommandError, match=f"^{option} {day}: give a day from"):
        call_command("shadow_compare", option, day)


@pytest.mark.django_db
@pytest.mark.parametrize("way", [*Generation.EndReason.values, ""])
def test_examined_once_is_one_for_every_way_a_generation_can_end(alice, way):
    thread = thread_of(alice)
    rows = [message for _turn in range(3) for message in exchange(thread)]
    generation = live(thread)
    ShadowBaseline.objects.create(generation=generation, thread=thread, owner=alice, baseline=rows[0].pk)
    before = clock.now() - timedelta(minutes=5)
    for number, row in enumerate((rows[3], rows[5])):
        at = before + timedelta(minutes=number)
        run_row(thread, generation, through_seq=row.pk, started=at, ended=at + timedelta(seconds=30))
    run_row(thread, generation, "failed", through_seq=rows[5].pk)
    if way:
        Generation.objects.filter(pk=generation.pk).update(ended=clock.now(), end_reason=way)
    found = compare()["examined_once"]["shadow"]
    assert found == {way or "live": {"once": 5, "never": 0, "again": 0, "share": 1.0}}


@pytest.fixture
def two_sides(alice):
    thread, work = thread_of(alice), thread_of(alice, category="work")
    said, there = say(thread, "user", "I like tea."), say(work, "user", "I like work.")
    facts = [fact_row(alice, said, "Prefers tea."), fact_row(alice, there, "Likes work.", category="work")]
    proposals = [proposal_row(said, "Likes tea most."), proposal_row(said, "Has a boat.", position=0)]
    return facts, proposals


@pytest.mark.django_db(transaction=True)
def test_a_light_model_pairs_what_says_the_same_in_calls_of_their_own(emulator, alice, two_sides):
    facts, proposals = two_sides
    island = thread_of(alice, scope="isolated")
    fact_row(alice, say(island, "user", "Island words."), "Island words.", scope="isolated", island=island)
    runs = list(ShadowRun.objects.values())
    found = compare("--semantic", "--dry-run")
    assert found["semantic_coverage"] is None and found["semantic_calls_planned"] == 1
    # Nothing was asked, nothing is charged, and no run was made of it.
    assert not emulator.requests() and not ModelCall.objects.exists()
    assert budgets.spent_today(alice).tokens == 0 == budgets.spent_today(None).tokens
    assert list(ShadowRun.objects.values()) == runs

    emulator.answer(tool_use("report_pairs", {"pairs": [{"first": 1, "second": 1}]}), match={"contains": "Second list"})
    found = compare("--semantic")["semantic_coverage"]
    assert found["pairs"] == [{"steward": f"f:{facts[0].pk}", "shadow": f"p:{proposals[0].pk}"}]
    # What was written in a category where the other side wrote nothing was missed.
    assert found["steward_by_shadow"] == {"covered": 1, "total": 2, "share": 0.5}
    assert found["shadow_by_steward"] == {"covered": 1, "total": 2, "share": 0.5}
    # A category that has one side alone asked nobody, and nothing isolated was sent.
    [call] = ModelCall.objects.all()
    assert (call.purpose, call.owner_id, call.thread_id, [call.pk]) == ("comparison", alice.pk, None, found["calls"])
    assert call.reserved_tokens > 0 and budgets.spent_today(alice).tokens > 0
    [sent] = emulator.requests()
    assert "Island" not in json.dumps(sent) and "Likes work" not in json.dumps(sent)

    emulator.answer(tool_use("report_pairs", {"pairs": [{"first": 1, "second": 3}]}), match={"contains": "Second list"})
    with pytest.raises(CommandError, match="named the pair"):
        compare("--semantic")
    assert Fact.objects.count() == 3 and ShadowFactProposal.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_what_is_isolated_before_it_is_asked_reaches_no_prompt(emulator, alice, two_sides):
    """What is isolated already is no item; what becomes so after the rows were read is dropped before it is asked."""
    thread = Message.objects.get(text="I like tea.").thread
    open_fact = fact_row(alice, say(thread, "user", "I like rain."), "Likes rain.")
    island = thread_of(alice, scope="isolated")
    there = say(island, "user", "Island words.")
    fact_row(alice, there, "Island words.", scope="isolated", island=island)
    later = thread_of(alice)
    becomes = fact_row(alice, say(later, "user", "I like caves."), "Likes caves.")
    proposal_row(say(later, "user", "Caves again."), "Likes caves most.")
    found = comparison_report.report(comparison_reading.last_week())
    keys = {item.key for item in found.steward}
    assert {f"f:{open_fact.pk}", f"f:{becomes.pk}"} < keys
    assert not any("Island" in item.text for item in found.steward)
    lifecycle.narrow(later, acting_user=alice, scope="isolated")
    emulator.answer(tool_use("report_pairs", {"pairs": []}), match={"contains": "Second list"})
    judged = async_to_sync(pairing.judge)(found.steward, found.shadow)
    assert judged.unjudged == []
    [sent] = emulator.requests()
    assert "Likes rain." in sent["body"] and "Likes tea most." in sent["body"]
    assert "Island" not in sent["body"] and "caves" not in sent["body"]


@pytest.mark.django_db(transaction=True)
def test_what_is_outspent_is_not_judged_and_a_group_with_one_side_left_asks_nobody(
    emulator, alice, settings, two_sides
):
    found = comparison_report.report(comparison_reading.last_week())
    settings.BUDGET_USER_TOKENS = 1
    judged = async_to_sync(pairing.judge)(found.steward, found.shadow)
    assert judged.unjudged == ["budget"]
    assert async_to_sync(pairing.judge)(found.steward, found.shadow, most_calls=0).unjudged == ["most-calls"]
    # What waits for a judge is neither covered nor missed; a category with one side alone needs none.
    assert comparison_report.semantic(judged).matched.steward_by_shadow == comparison.Coverage(0, 1)
    assert comparison_report.semantic(judged).matched.shadow_by_steward == comparison.Coverage(0, 0)
    Fact.objects.update(scope="isolated", category="", island=thread_of(alice, scope="isolated"))
    judged = async_to_sync(pairing.judge)(found.steward, found.shadow)
    assert judged.unjudged == []
    assert comparison_report.semantic(judged).matched.shadow_by_steward == comparison.Coverage(0, 2)
    assert not emulator.requests()
    assert Message.objects.exists()
