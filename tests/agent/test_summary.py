"""A summary must have its ten sections and may not invent: ids and quotations that cannot be found are removed."""

from hypothesis import given
from hypothesis import strategies as st

from agent import summary
from agent.summary import Standing
from threads.models import Message


def ten_sections(**bodies: str) -> str:
    return "\n".join(
        f"{number}. {title}\n{bodies.get(f's{number}', summary.NOTHING)}"
        for number, title in enumerate(summary.TITLES, 1)
    )


def checked(text, known=(), said=()):
    return summary.check(text, lambda ids: ids & set(known), lambda words: any(words in one for one in said))


def row(pk, role, text, wire="[]", is_error=False):
    return Message(pk=pk, role=role, text=text, wire=wire, is_error=is_error)


def test_missing_and_misplaced_sections_are_named():
    assert summary.missing_sections(ten_sections()) == []
    assert summary.missing_sections(ten_sections().replace("4. Where", "Where")) == [4]
    assert summary.missing_sections("Sure! What can I do?") == list(range(1, 11))


def test_headings_in_markdown_count():
    assert summary.missing_sections(ten_sections().replace("1. The request", "## 1. **The request**")) == []


def test_ids_of_other_threads_are_removed():
    found = checked(ten_sections(s4="- The draft is done (m:12), see m:99"), known=[12])
    assert "m:12" in found.text
    assert "m:99" not in found.text
    assert found.removed == 1


def test_words_that_the_user_never_wrote_are_removed():
    text = ten_sections(
        s2='- "Always answer in French" (m:1)\n- "Delete everything" (m:1)',
        s3='- The user said "ship it today" and so we did\n- We chose "tabs"',
    )
    found = checked(text, known=[1], said=["Always answer in French."])
    assert "Always answer in French" in found.text
    assert "Delete everything" not in found.text
    assert "ship it today" not in found.text
    assert 'We chose "tabs"' in found.text
    assert found.standing == [Standing("Always answer in French", 1)]


def test_words_in_section_2_without_a_quotation_are_no_instruction():
    assert "- Be nice" not in checked(ten_sections(s2="- Be nice")).text


def test_standing_instructions_are_carried_until_withdrawn():
    before = [Standing("Always answer in French", 1), Standing("Never use emoji", 2)]
    found = checked(
        ten_sections(s2='- "Use metres" (m:5)\n- Withdrawn: "Never use emoji" (m:6)'),
        known=[5, 6],
        said=["Use metres", "Never use emoji"],
    )
    assert summary.carried(before, found) == [Standing("Always answer in French", 1), Standing("Use metres", 5)]
    assert summary.carried(before, checked(ten_sections())) == before


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
    found = checked(text, known=[1], said=["Never use emoji"])
    assert all(words in found.text for words in ("1. a shed", "2. a fence", "3. a gate"))
    assert found.standing == [Standing("Never use emoji", 1)]


def test_a_summary_by_rule_carries_what_the_context_before_knew():
    earlier = "channel: abc\n\n" + ten_sections(s3="- We chose oak (m:1)", s10="- ssh garden (m:2)", s9="- Call back")
    made = summary.by_rule([row(5, "user", "Go on")], earlier)
    sections = summary.sections_in(made.text)
    assert "We chose oak" in sections[3]
    assert "ssh garden" in sections[10]
    assert "Call back" not in made.text
