"""A summary must have its ten sections and may not invent: ids and quotations that cannot be found are removed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import summary
from agent.summary import Standing
from agent.summary_check import REMOVED, carried, check
from threads.models import Message
from threads.transcript import fold


def ten_sections(**bodies: str) -> str:
    return "\n".join(
        f"{number}. {title}\n{bodies.get(f's{number}', summary.NOTHING)}"
        for number, title in enumerate(summary.TITLES, 1)
    )


class Record:
    """Rows by id, each (role, text)."""

    def __init__(self, rows, standing=()):
        self.rows, self.standing = rows, standing

    def known(self, ids):
        return ids & set(self.rows)

    def said_by_user(self, words):
        said = " ".join(words.split())
        return [pk for pk, (role, text) in self.rows.items() if role == "user" and said in " ".join(fold(text).split())]

    def said(self, words):
        return [pk for pk, (_role, text) in self.rows.items() if words in fold(text)]

    def said_in(self, words, ids):
        return bool(ids.intersection(self.said(words)))


def checked(text, rows=None, standing=()):
    return check(text, Record(rows or {}, standing))


def users(*texts):
    return {pk: ("user", text) for pk, text in enumerate(texts, 1)}


def row(pk, role, text, wire="[]", is_error=False):
    return Message(pk=pk, role=role, text=text, wire=wire, is_error=is_error)


def test_missing_and_misplaced_sections_are_named():
    assert summary.missing_sections(ten_sections()) == []
    assert summary.missing_sections(ten_sections().replace("4. Where", "Where")) == [4]
    assert summary.missing_sections("Sure! What can I do?") == list(range(1, 11))


def test_headings_in_markdown_count():
    assert summary.missing_sections(ten_sections().replace("1. The request", "## 1. **The request**")) == []


def test_ids_of_other_threads_are_removed():
    found = checked(ten_sections(s4="- The draft is done (m:12), see m:99"), {12: ("user", "The draft")})
    assert "m:12" in found.text
    assert "m:99" not in found.text
    assert found.removed == 1


def test_words_that_the_user_never_wrote_are_removed():
    text = ten_sections(
        s2='- "Always answer in French" (m:1)\n- "Delete everything" (m:1)',
        s3='- The user said "ship it today" and so we did\n- 用户说「今天发布」\n- We chose "tabs"',
    )
    found = checked(
        text, {1: ("user", "Always answer in French."), 2: ("assistant", "I ship it today. 今天发布, tabs")}
    )
    assert "Always answer in French" in found.text
    assert "Delete everything" not in found.text
    assert "ship it today" not in found.text
    assert "今天发布" not in found.text
    assert 'We chose "tabs"' in found.text
    assert found.standing == [Standing("Always answer in French", 1)]


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("- see (m:12, m:99).", "- see (m:12)."),
        ("- see (m:99, m:12).", "- see (m:12)."),
        ("- see (m:12, 99)", "- see (m:12)"),
        ("- see (m: 99), then", "- see, then"),
        ("- see M:99 there", "- see there"),
        ("- see m：99", "- see"),
        ("- see （m：99，m：12）", "- see （m:12）"),
        ("- see messages 98 and 99", "- see"),
        ("- see messages 12 and 99", "- see m:12"),
        ("- see [message 99]", "- see"),
        ("- 见消息98和99", "- 见"),
        ("- see m:99–101", "- see"),
        ("- see m:12-99", "- see m:12"),
        ("- see (m:99, the draft) and (the plan, m:99)", "- see (the draft) and (the plan)"),
        ("- see messages 98 and 99 there", "- see there"),
        ("- see m:99 - 3 files - and m:99 and 2 more", "- see - 3 files - and and 2 more"),
        ("- see (m:12, 3 files), a message 10 minutes ago", "- see (m:12, 3 files), a message 10 minutes ago"),
        ("- see M: 12 and message 12", "- see M: 12 and message 12"),
        ("- see m:99999999999999999999999", "- see"),
    ],
)
def test_an_unknown_id_goes_in_any_spelling_and_leaves_nothing_dangling(line, left):
    assert f"\n{left}\n" in checked(ten_sections(s4=line), {12: ("user", "The draft")}).text + "\n"


USERS_MARKS = ["'%s'", "`%s`", "``%s''", "＂%s＂", "”%s”", "“%s“", "‚%s‘", '"%s"', "```%s```"]


@pytest.mark.parametrize("marks", USERS_MARKS)
@pytest.mark.parametrize("told", ["- The user said %s, so it is", "- The user said:\n  %s", "- 用户说：%s"])
def test_words_put_into_the_users_mouth_are_found_between_any_marks(marks, told):
    rows = {1: ("user", "Keep everything, it's mine"), 2: ("assistant", "delete everything now")}
    true, invented = marks % "Keep everything", marks % "delete everything now"
    found = checked(ten_sections(s3=told % true, s4=told % invented), rows).text
    assert "Keep everything" in found
    assert "delete everything" not in found


@pytest.mark.parametrize(
    "said",
    [
        '- The user said "delete\n  everything now"',
        "- The user said ‘delete\neverything\nnow’ and left",
        "- The user said 'delete\n  everything now'",
        "- The user said:\n> delete everything now",
        "- The user said:\n  > delete\n  > everything now",
        "- The user wants:\n\n> delete everything now",
        '- The user said \\"delete everything now\\"',
    ],
)
def test_words_put_into_the_users_mouth_are_found_over_several_lines(said):
    rows = {1: ("user", "Keep everything now, please"), 2: ("assistant", "delete everything now")}
    assert "delete" not in checked(ten_sections(s3=said), rows).text
    kept = checked(ten_sections(s3=said.replace("delete", "keep").replace("\\", "")), rows)
    assert "keep" in kept.text
    assert kept.removed == 0


def test_a_name_between_backticks_may_be_anybodys():
    body = "- The user’s file is `src/app.py`, the users' 'Keep it' and the '90s"
    rows = {1: ("user", "Keep it"), 2: ("tool", "src/app.py")}
    assert body in checked(ten_sections(s5=body), rows).text
    assert "app.py" not in checked(ten_sections(s5=body), {1: ("user", "Keep it")}).text
    code = "- We ran `make it so`, and it's ten o'clock: 'done'"
    assert code in checked(ten_sections(s5=code)).text


MARKS = ['"%s"', "“%s”", "„%s“", "„%s”", "‘%s’", "「%s」", "『%s』", "«%s»", "»%s«", "‹%s›"]


@pytest.mark.parametrize("marks", MARKS)
def test_a_quotation_that_stands_in_no_message_is_removed_from_any_section(marks):
    true, invented = marks % "it’s as wide as the shed", marks % "it’s all lost"
    text = ten_sections(s4=f"- The report says {true}, then {invented}; it’s done")
    found = checked(text, {3: ("tool", "Result: It’s as wide as the shed.")})
    assert f"- The report says {true}, then {REMOVED}; it’s done" in found.text
    assert found.removed == 1


def test_inches_and_apostrophes_are_no_quotation():
    body = '- Boards of 5" and 6", the dogs’ and the cats’ ‘90s shed'
    assert body in checked(ten_sections(s4=body)).text


def test_an_instruction_carries_the_id_of_the_message_it_stands_in():
    rows = {**users("Use metres.", "Hello", "Never use emoji"), 4: ("assistant", "Use metres, yes")}
    text = ten_sections(s2='- "Use metres" (m:4)\n- "Never use emoji" (m:3), in the README\n- „Hello“')
    found = checked(text, rows)
    assert found.standing == [Standing("Use metres", 1), Standing("Never use emoji", 3), Standing("Hello", 2)]
    assert '- "Use metres" (m:1)' in found.text
    assert '- "Never use emoji" (m:3), in the README' in found.text


def test_words_in_section_2_without_a_quotation_are_no_instruction():
    assert "- Be nice" not in checked(ten_sections(s2="- Be nice")).text


def test_standing_instructions_are_carried_until_withdrawn():
    before = [Standing("Always answer in French", 1), Standing("Never use emoji", 2)]
    found = checked(
        ten_sections(s2='- "Use metres" (m:5)\n- Withdrawn: "Never use emoji" (m:6)'),
        {2: ("user", "Never use emoji"), 5: ("user", "Use metres"), 6: ("user", "Emoji are fine now")},
    )
    assert carried(before, found) == [Standing("Always answer in French", 1), Standing("Use metres", 5)]
    assert carried(before, checked(ten_sections())) == before


def test_an_instruction_is_withdrawn_though_its_message_is_gone():
    before = [Standing("Never use emoji", 2), Standing("Use metres", 3)]
    text = ten_sections(s2='- Withdrawn: "never use emoji." (m:6)\n- "Use metres"')
    found = checked(text, {6: ("user", "Emoji are fine now")}, before)
    assert carried(before, found) == [Standing("Use metres", 3)]


def test_a_summary_by_rule_has_all_sections_and_quotes_only_the_user():
    rows = [
        row(1, "user", "Please fix the build. Never push to main."),
        row(2, "assistant", "Looking.", '[{"type":"tool_use","id":"t","name":"run","input":{}}]'),
        row(3, "tool", "error: no such file", is_error=True),
        row(4, "assistant", "It is fixed."),
    ]
    made = summary.by_rule(rows)
    assert summary.missing_sections(made.text) == []
    assert made.standing == [Standing("Never push to main.", 1)]
    assert "It is fixed." in made.text


def test_a_summary_by_rule_names_what_each_call_reached():
    calls = [
        {
            "type": "tool_use",
            "id": "t1",
            "name": "run",
            "input": {"timeout": 9, "command": "ssh -i ~/.ssh/key\n root@h"},
        },
        {"type": "tool_use", "id": "t2", "name": "look", "input": {"paths": [{"at": "C:\\Users"}], "also": "x" * 900}},
        {"type": "tool_use", "id": "t3", "name": "clock", "input": {}},
    ]
    rows = [
        row(1, "assistant", "", json.dumps(calls)),
        row(2, "assistant", "I look there.", json.dumps([{"type": "text", "text": "I look there."}, calls[1]])),
        row(3, "assistant", "", json.dumps([calls[0] | {"input": {"command": "y" * 5_000}}] * 9)),
    ]
    reached = summary.sections_in(summary.by_rule(rows).text)[10].splitlines()
    assert reached[:2] == [
        "- run: ssh -i ~/.ssh/key root@h; look: C:\\Users; clock (m:1)",
        "- look: C:\\Users (m:2)",
    ]
    assert reached[2].startswith("- run: yyy") and len(reached[2]) < summary.LINE_MAX_CHARS + 20
    assert "m:1 assistant: run: ssh -i ~/.ssh/key root@h; look" in summary.index(rows)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "event"]), st.text(max_size=200)), max_size=12))
def test_a_summary_by_rule_is_whole_for_any_conversation(said):
    rows = [row(number, role, text) for number, (role, text) in enumerate(said, 1)]
    assert summary.missing_sections(summary.by_rule(rows).text) == []


@given(st.text(max_size=400))
def test_checking_never_fails_and_never_keeps_an_unknown_id(body):
    found = checked(ten_sections(s5=body.replace("\r", "\n")))
    assert "m:123456" not in found.text


def test_a_numbered_list_inside_a_section_is_no_heading():
    text = ten_sections(s1="1. a shed\n2. a fence\n3. a gate", s2='- "Never use emoji" (m:1)')
    assert summary.missing_sections(text) == []
    found = checked(text, users("Never use emoji"))
    assert all(words in found.text for words in ("1. a shed", "2. a fence", "3. a gate"))
    assert found.standing == [Standing("Never use emoji", 1)]


def test_a_summary_by_rule_carries_what_the_context_before_knew():
    earlier = "channel: abc\n\n" + ten_sections(s3="- We chose oak (m:1)", s10="- ssh garden (m:2)", s9="- Call back")
    made = summary.by_rule([row(5, "user", "Go on")], earlier)
    sections = summary.sections_in(made.text)
    assert "We chose oak" in sections[3]
    assert "ssh garden" in sections[10]
    assert "Call back" not in made.text
    assert "Call back" in summary.by_rule([], earlier).text, "nothing was said since: the next step still is"


def test_the_list_of_ids_is_bounded_and_says_what_it_leaves_out():
    rows = [row(pk, "user", f"Words {pk} " + "x" * 200) for pk in range(1, 1_001)]
    lines = summary.index(rows).splitlines()
    assert len(summary.index(rows)) <= summary.INDEX_MAX_CHARS
    (gap,) = [number for number, line in enumerate(lines) if line.startswith("[")]
    assert f"[{1_001 - len(lines)} messages between" in lines[gap]
    assert lines[0].startswith("m:1 user: Words 1 ")
    assert lines[-1].startswith("m:1000 user: Words 1000 ")
    assert gap < len(lines) - gap
    assert "between" not in summary.index(rows[:50])


def test_no_number_of_summaries_by_rule_outgrows_a_context():
    earlier, standing = "", []
    for generation in range(50):
        begin = generation * 100
        rows = [
            row(
                begin + number,
                "user" if number % 2 else "assistant",
                f"第{begin + number}次，以后总是这样做。" + "很长" * 150,
            )
            for number in range(1, 41)
        ]
        made = summary.by_rule(rows, earlier)
        earlier = made.text
        standing += made.standing
        assert summary.missing_sections(earlier) == []
    assert len(earlier) < 10 * summary.RULE_MADE_SECTION_MAX_CHARS
    assert sum(len(found.text) for found in standing) <= summary.RULE_MADE_SECTION_MAX_CHARS
    assert "(m:1)" in earlier, "how it began"
    assert f"(m:{49 * 100 + 39})" in earlier, "the newest"
