"""Renewing the context: when, along which prefix, and what may never be lost."""

import asyncio
import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from agent import notices, opening, renewal, revising, summarizing
from agent.models import InboxItem, TaskFrame, ToolCall
from agent.projection import message_views
from agent.refusals import Refused
from llm.emulator.client import text, tool_use
from llm.models import ModelCall
from maxclaw import clock
from maxclaw.database_threads import in_database
from tests.agent.renewing import ASKED, LONG, compactions, fill, generations, play, summary_text
from tests.threads.records import say
from threads.lifecycle import create_thread
from threads.models import Generation, Message
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_context_over_its_threshold_is_renewed_at_the_turn_boundary(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("Roses, then."), times=-1)

    async def scenario(world):
        thread = await fill(world, alice)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)
        await world.ask(thread, "And tulips?")
        return thread

    thread = play(emulator, scenario)
    first, second = generations(thread)
    assert (first.end_reason, second.ended) == ("threshold", None)
    assert "The garden" in first.summary
    assert "The garden" in second.opening
    assert thread.channel in second.opening
    last = json.dumps(emulator.bodies()[-1]["messages"])
    assert "Some words about the garden" not in last
    assert "And tulips?" in last
    frames = list(TaskFrame.objects.filter(thread=thread).order_by("id").values_list("source", "state"))
    assert frames == [("user", "done"), ("compaction/threshold", "done"), ("user", "done")]
    report = verify_thread(thread)
    assert report.calls == report.proved == 2


def test_the_summary_is_asked_for_along_the_warm_prefix(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("Roses, then."))

    async def scenario(world):
        thread = await fill(world, alice)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)

    play(emulator, scenario)
    turn, asked = emulator.requests(path="/v1/messages")
    before = turn["usage"]["input_tokens"] + turn["usage"]["cache_creation_input_tokens"]
    assert asked["usage"]["cache_read_input_tokens"] >= before
    one, two = json.loads(turn["body"]), json.loads(asked["body"])
    assert (one["system"], one["tools"]) == (two["system"], two["tools"])
    assert len(two["messages"]) == len(one["messages"]) + 2
    assert "cache_control" not in json.dumps(two["messages"][-1])


def test_three_short_turns_after_a_cut_cause_no_further_cut(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text(summary_text()), match=ASKED, times=-1)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await fill(world, alice)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)
        for number in range(3):
            await world.ask(thread, f"Short {number}")
        return thread

    assert len(generations(play(emulator, scenario))) == 2


def test_words_sent_while_it_runs_enter_the_new_generation_once_and_in_order(
    emulator, alice, small_budget, roomy_messages
):
    emulator.answer(text(summary_text()), match=ASKED, hold="summary")
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, LONG)
        await world.held()
        await world.say(thread, "One")
        await world.say(thread, "Two")
        emulator.release("summary")
        await world.rest(thread)
        return thread

    thread = play(emulator, scenario)
    second = generations(thread)[1]
    said = Message.objects.filter(thread=thread, role="user").order_by("id")
    assert [row.text for row in said] == [LONG, "One", "Two"]
    assert [row.generation_id for row in said][1:] == [second.pk, second.pk]
    assert not InboxItem.objects.filter(state="waiting").exists()


def test_stopped_while_words_wait_it_leaves_the_old_generation_whole_and_runs_at_the_next_boundary(
    emulator, alice, small_budget, roomy_messages
):
    emulator.answer(text(summary_text()), match=ASKED, hold="summary")
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("Yes."))
    emulator.answer(text("Yes, yes."), hold="turn")

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, LONG)
        await world.held()
        await world.say(thread, "One")
        await world.say(thread, "Two")
        await world.stop(thread, await world.running_frame(thread))
        await world.until(lambda: Message.objects.filter(thread=thread, text="Two").exists())
        await world.held()
        while_it_goes_on = await in_database(generations, thread), await in_database(verify_thread, thread)
        emulator.release("turn")
        emulator.release("summary")
        await world.rest(thread)
        return thread, while_it_goes_on

    thread, ((old,), report) = play(emulator, scenario)
    assert (old.ended, old.summary) == (None, "")
    assert report.calls == report.proved
    first, second = generations(thread)
    assert (first.pk, first.end_reason, second.ended) == (old.pk, "threshold", None)
    rows = Message.objects.filter(thread=thread, wire__isnull=False).order_by("id")
    assert [row.text for row in rows] == [LONG, "Yes.", "One", "Two", "Yes, yes."]
    assert {row.generation_id for row in rows} == {old.pk}
    assert not InboxItem.objects.filter(state="waiting").exists()
    frames = list(TaskFrame.objects.filter(thread=thread).order_by("id").values_list("source", "end_reason"))
    assert frames == [
        ("user", "answered"),
        ("compaction/threshold", "stopped"),
        ("user", "answered"),
        ("compaction/threshold", "answered"),
    ]
    report = verify_thread(thread)
    assert report.calls == report.proved == 2


def test_a_summary_that_lacks_a_section_is_asked_for_once_more(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text("1. The request\nOnly this."), match=ASKED)
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("Yes."))

    async def scenario(world):
        thread = await fill(world, alice)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        return await world.rest(thread)

    thread = play(emulator, scenario)
    assert "The garden" in generations(thread)[0].summary
    assert "lacked section 2, 3" in json.dumps(emulator.bodies()[-1]["messages"][-1])


def test_what_a_summary_says_is_looked_up_before_it_is_kept(emulator, alice):
    """Ids of another conversation, and words that the user never wrote, reach neither the record nor the opening."""
    elsewhere = say(create_thread(alice), "user", "Said in another conversation")
    emulator.answer(text("Fine."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        rows = await world.ask(thread, "Keep the garden. Use short words.")
        own = f'- "Use short words" (m:{rows[0].pk})\n- "Cut down all trees" (m:{rows[0].pk})'
        made = summary_text(s2=own, s4=f"- The garden stands (m:{rows[0].pk}), (m:{elsewhere.pk})")
        emulator.answer(text(made), match=ASKED)
        await in_database(renewal.request, alice, thread.channel)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)
        return thread, rows[0].pk

    thread, own_id = play(emulator, scenario)
    first, second = generations(thread)
    for kept in (first.summary, second.opening):
        assert f"The garden stands (m:{own_id})" in kept and "Use short words" in kept
        assert f"m:{elsewhere.pk}" not in kept and "Cut down all trees" not in kept


@pytest.mark.parametrize(
    "blocks",
    [[tool_use("message_history_read", {"channel": "x"})], [text("Fine.")], [text("")], [], None],
    ids=["a tool call", "no summary", "an empty text", "nothing", "an error"],
)
def test_a_model_that_gives_no_summary_blocks_no_conversation(emulator, alice, small_budget, roomy_messages, blocks):
    if blocks is None:
        emulator.fault("status", status=500, match=ASKED, times=-1)
    else:
        emulator.answer(*blocks, match=ASKED, times=-1)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await fill(world, alice)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)
        await world.ask(thread, "Still there?")
        return thread

    thread = play(emulator, scenario)
    assert "1. The request" in generations(thread)[0].summary
    assert "Some words about the garden" in generations(thread)[0].summary
    assert Message.objects.filter(thread=thread).order_by("-id").first().text == "Yes."
    # One that answers otherwise is asked once more; where it fails, the light models are asked.
    asked = [model for model, _outcome in compactions()]
    if blocks is None:
        assert set(asked) == {"emulator-main", "emulator-light", "emulator-light-all"}
    else:
        assert asked == ["emulator-main"] * 2
    # No call of a tool was run: what a summary's answer asks for is nobody's.
    assert not ToolCall.objects.exists()


def test_models_that_time_out_block_no_conversation(emulator, alice, small_budget, roomy_messages, monkeypatch):
    monkeypatch.setattr(summarizing, "CALL_TIMEOUT_SECONDS", 0.3)
    emulator.answer(text(summary_text()), match=ASKED, hold="for ever", times=-1)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await fill(world, alice)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)
        assert (await world.ask(thread, "Still there?"))[-1].text == "Yes."
        return thread

    assert "1. The request" in generations(play(emulator, scenario))[0].summary
    # Along the warm prefix, then each light model that may read the conversation: nobody is asked again.
    assert compactions() == [
        ("emulator-main", "transient"),
        ("emulator-light", "transient"),
        ("emulator-light-all", "transient"),
    ]


def test_a_passing_error_is_retried_then_the_light_models_are_asked(emulator, alice, small_budget, roomy_messages):
    emulator.fault("status", status=529, match={"model": "emulator-main", **ASKED}, times=3)
    emulator.fault("status", status=401, match={"model": "emulator-light"})
    emulator.answer(text(summary_text(s3="- ROSEGARDEN")), match={"model": "emulator-light-all"})
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await fill(world, alice)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        return await world.rest(thread)

    assert "ROSEGARDEN" in generations(play(emulator, scenario))[0].summary
    assert compactions() == [
        *[("emulator-main", "transient")] * 3,
        ("emulator-light", "credential"),
        ("emulator-light-all", "complete"),
    ]


def test_a_page_that_no_model_summarises_loses_neither_the_pages_before_nor_itself(
    emulator, alice, small_budget, monkeypatch
):
    monkeypatch.setattr(summarizing, "PAGE_TOKENS", 1)
    light = {"model": "emulator-light"}
    emulator.answer(text("Yes."), match={"model": "emulator-main"}, times=-1)
    emulator.answer(text(summary_text(s3="- FIRSTPAGE")), match=light)
    emulator.answer(text(""), match=light)
    emulator.answer(tool_use("clock", {}), match=light)
    emulator.answer(text("Sure."), match=light)
    emulator.answer(text(summary_text(s3="- FIRSTPAGE\n- THIRDPAGE")), match=light)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "One")
        await world.ask(thread, "Two")
        with clock.moved(3600):
            await in_database(renewal.request, alice, thread.channel)
            await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
            await world.rest(thread)
        return thread

    thread = play(emulator, scenario)
    asked = [json.dumps(body["messages"]) for body in emulator.bodies() if body["model"] == "emulator-light"]
    rows = list(Message.objects.filter(thread=thread, wire__isnull=False).order_by("id"))
    # The second page was asked for twice in vain, and added by rule to what the first one gave.
    assert ["lacked section" in body for body in asked] == [False, False, True, False, True, False]
    assert "FIRSTPAGE" in asked[3]
    assert f"- Yes. (m:{rows[1].pk})" in asked[3]
    # Each page lists the ids of its own rows alone.
    assert [f"m:{rows[0].pk} user: One" in body for body in asked[:2]] == [True, False]


def test_a_failure_at_the_commit_leaves_the_old_generation_live_and_whole(
    emulator, alice, small_budget, roomy_messages, monkeypatch
):
    emulator.answer(text(summary_text()), match=ASKED, times=-1)
    emulator.answer(text("Yes."), times=-1)
    render = opening.render
    failed = []

    def broken(thread, generation, ahead=None):
        if generation.ordinal == 1:
            return render(thread, generation, ahead)
        failed.append(generation.pk)
        raise RuntimeError("no opening")

    monkeypatch.setattr(opening, "render", broken)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        await world.ask(thread, "Still there?")
        return thread, await world.rows(thread)

    thread, rows = play(emulator, scenario)
    (only,) = generations(thread)
    assert (only.ended, only.summary) == (None, "")
    assert [row.text for row in rows if row.model_visible] == [LONG, "Yes.", "Still there?", "Yes."]
    assert {row.generation_id for row in rows} == {only.pk}
    ends = TaskFrame.objects.filter(thread=thread).order_by("id").values_list("source", "end_reason")
    assert list(ends) == [("user", "answered"), ("compaction/threshold", "error")] * 2
    assert len(failed) == 2
    assert verify_thread(thread).proved == 2


def test_the_user_asks_for_a_new_generation(emulator, alice):
    emulator.answer(text(summary_text(s2='- "Never use emoji" (m:%d)')), match={"contains": "unreachable"})
    emulator.answer(text("Fine."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        rows = await world.ask(thread, "Never use emoji. Hello.")
        emulator.answer(text(summary_text(s2=f'- "Never use emoji" (m:{rows[0].pk})')), match=ASKED)
        await in_database(renewal.request, alice, thread.channel)
        await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
        await world.rest(thread)
        return thread, rows

    thread, rows = play(emulator, scenario)
    first, second = generations(thread)
    assert first.end_reason == "manual"
    assert second.standing == [{"text": "Never use emoji", "message_id": rows[0].pk}]
    assert "Standing instructions" in second.opening
    # The mark of it is read in the reader's language, whatever was spoken when it was made.
    notice = Message.objects.get(thread=thread, meta__notice=notices.RENEWED)
    for language, words in (("en", "The context was renewed"), ("zh-hans", "上下文已更新")):
        with translation.override(language):
            assert words in next(view["text"] for view in message_views(thread) if view["id"] == notice.pk)
    assert notice.text.startswith("The context was renewed") and notice.wire is None
    with pytest.raises(Refused):
        renewal.request(alice, thread.channel)


def test_the_command_says_whether_the_context_was_renewed(emulator, alice):
    emulator.answer(text(summary_text()), match=ASKED, hold="first")
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("Fine."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "Hello")
        renewed, refused = io.StringIO(), io.StringIO()

        def compact(**streams):
            call_command("compact", thread.channel, wait=30, **streams)

        asked = asyncio.create_task(in_database(compact, stderr=refused))
        await world.held()
        await in_database(lambda: say(thread, "event", "A row that the summary does not know", blocks=None))
        emulator.release("first")
        with pytest.raises(CommandError):
            await asked
        before = await in_database(generations, thread)
        await in_database(compact, stdout=renewed)
        return before, refused.getvalue(), renewed.getvalue()

    before, refused, renewed = play(emulator, scenario)
    assert len(before) == 1
    assert "not renewed. The context is as it was." in refused
    assert "renewed, now in generation 2." in renewed


def test_a_stranger_cannot_ask_for_it(alice, bob, emulator):
    thread = create_thread(alice)
    with pytest.raises(Refused) as refused:
        renewal.request(bob, thread.channel)
    assert refused.value.code == "no-such-thread"


def test_a_cold_transcript_is_read_in_pages_by_the_light_model(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text("Yes."), match={"model": "emulator-main"})
    emulator.answer(text(summary_text()), match={"model": "emulator-light"})

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "Short and cold")
        with clock.moved(3600):
            await in_database(renewal.request, alice, thread.channel)
            await world.until(lambda: Generation.objects.filter(thread=thread, ordinal=2).exists())
            await world.rest(thread)
        return thread

    play(emulator, scenario)
    call = ModelCall.objects.get(purpose="compaction")
    assert call.model == "emulator-light"


def test_a_second_cold_summary_knows_what_the_first_one_held(emulator, alice, small_budget):
    emulator.answer(text("Yes."), match={"model": "emulator-main"}, times=-1)
    emulator.answer(text(summary_text(s3="- GARDENPLAN is oak")), match={"model": "emulator-light"}, times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        for ordinal in (2, 3):
            await world.ask(thread, f"Words {ordinal}")
            with clock.moved(3600 * ordinal):
                await in_database(renewal.request, alice, thread.channel)
                await world.until(
                    lambda ordinal=ordinal: Generation.objects.filter(thread=thread, ordinal=ordinal).exists()
                )
                await world.rest(thread)
        rows = await world.ask(thread, "Words 4")
        # A branch holds the opening, and no generation before it.
        branch = await in_database(revising.fork, alice, thread.channel, rows[-1].pk)
        with clock.moved(3600 * 4):
            await in_database(renewal.request, alice, branch.channel)
            await world.until(lambda: Generation.objects.filter(thread=branch, ordinal=2).exists())
            await world.rest(branch)

    play(emulator, scenario)
    asked = [json.dumps(body) for body in emulator.bodies() if body["model"] == "emulator-light"]
    assert ["GARDENPLAN" in body for body in asked] == [False, True, True]
    assert not any("This is the opening" in body for body in asked), "an opening holds more than the summary"
