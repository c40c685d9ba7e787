"""However a summary spells ids and marks quotations, no id of another conversation and no words of nobody's stay."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.summary import Standing
from agent.summary_check import REMOVED
from agent.summary_ids import cited
from tests.agent.test_summary import checked, ten_sections, users

SPELLINGS = r""" m:{n} M:{n} m：{n} m:｛n｝ (m:{n}) [m:{n}] <m:{n}> `m:{n}` **m:{n}** _m:{n}_ {{m:{n}}}
【m:{n}】 m:m:{n} m:#{n} m{n} m-{n} #{n} (#{n}) ＃{n} [{n}] [#{n}] [{n}][12] id={n}
message_id={n} message_id:{n} "message_id":{n} messageId={n} msg_{n} msg#{n} message#{n}
消息{n} 消息:{n} 消息ID：{n} (消息{n}) 第{n}条消息 見m:{n} 见#{n} 见[{n}] m:{n}abc m:12-{n} m:{n}-12
m:{n},12 m:12,{n}
"""
SPACED = (
    "m : {n}",
    "(id {n})",
    "id: {n}",
    "ids 12, {n}",
    "message {n}",
    "Message ID: {n}",
    "message no. {n}",
    "messages 12 and {n}",
    "messages 12 to {n}",
    "messages 12, 12 or {n}",
    "m:12 to {n}",
    "m:12 and m:{n}",
    "(m:12, {n})",
    "(see m:{n}, the draft)",
    "[12, {n}]",
    "#12, #{n} and #12",
    "消息 {n}",
    "第 {n} 条消息",
    "Nachricht {n}",
    "mensaje {n}",
    "сообщение {n}",
    "メッセージ {n}",
    "메시지 {n}",
    "m:{n} lines up",
)
SECTIONS = [f"s{number}" for number in (1, *range(3, 11))]  # in section 2 only quotations stand
DIGITS = str.maketrans("0123456789", "０１２３４５６７８９")


@settings(max_examples=400, derandomize=True)
@given(
    number=st.integers(100, 10**12) | st.integers(100, 10**400),
    spelling=st.sampled_from([*SPELLINGS.split(), *SPACED]),
    wide=st.booleans(),
    around=st.sampled_from(
        ["- see {}", "- see {}, then on", "{}", "- 见{}。", "- the draft ({}) stands", "| a | {} |"]
    ),
    section=st.sampled_from(SECTIONS),
)
def test_no_id_of_another_conversation_is_kept_in_any_spelling(number, spelling, wide, around, section):
    digits = str(number).translate(DIGITS) if wide else str(number)
    line = around.format(spelling.replace("｛n｝", "{n}").format(n=digits))
    text = checked(ten_sections(**{section: line}), {12: ("user", "The draft")}).text
    assert digits not in text
    assert number not in cited(text)


@settings(max_examples=120, derandomize=True)
@given(
    number=st.integers(1, 10**6),
    spelling=st.sampled_from([each for each in [*SPELLINGS.split(), *SPACED] if "12" not in each and '"' not in each]),
)
def test_an_id_of_the_conversation_stays_in_any_spelling(number, spelling):
    line = "- see " + spelling.replace("｛n｝", "{n}").format(n=number)
    found = checked(ten_sections(s4=line), {number: ("user", "The draft")})
    assert (line in found.text, found.removed) == (True, 0)


@pytest.mark.parametrize(
    "line", ["- fixed #41 and [7]", "- on the m25, with an M1", "- user id 77, job id: 8", "- list[3] and a[0][1]"]
)
def test_what_the_conversation_has_itself_is_no_id(line):
    rows = users('See #41 and note [7] on the M25 with an M1, {"user id": 77}, job id: 8 and user id 77')
    found = checked(ten_sections(s4=line), rows)
    assert (line in found.text, found.removed) == (True, 0)


SPEECH_MARKS = r""" "%s" “%s” “%s“ ”%s” “%s" „%s“ „%s” ‟%s” ‘%s’ ‛%s’ ‚%s‘ 「%s」 『%s』 ｢%s｣ ﹁%s﹂ ﹃%s﹄ «%s»
»%s« ‹%s› ›%s‹ ❮%s❯ ⟪%s⟫ 〝%s〞 〝%s〟 ❝%s❞ ❛%s❜ ＂%s＂ ＇%s＇ ″%s″ ``%s'' &quot;%s&quot;
&ldquo;%s&rdquo; &#34;%s&#x22; &laquo;%s&raquo; <q>%s</q> <cite>%s</cite> \"%s\" 《%s》
〈%s〉
"""
USERS_MARKS = [*SPEECH_MARKS.split(), "'%s'", "`%s`", "```%s```", "´%s´", "`%s'", "''%s''", '"%s', "“%s", "「%s"]
WORD = st.sampled_from(["delete", "everything", "now", "删除", "全部", "it’s", "don't", "5", "🚀", "Straße"])
WORDS = st.lists(WORD, min_size=2, max_size=6).map(" ".join)


@settings(max_examples=250, derandomize=True)
@given(
    words=WORDS,
    marks=st.sampled_from(USERS_MARKS),
    told=st.sampled_from(["- The user said {}", "- 用户说{}", "- The customer's words: {}", "- The user wants:\n  {}"]),
    section=st.sampled_from(SECTIONS),
)
def test_no_words_that_the_user_never_wrote_are_theirs_between_any_marks(words, marks, told, section):
    rows = {1: ("user", "Keep it all."), 2: ("assistant", f"I will not {words.title()}, or so")}
    only = {1: rows[1]}
    given_rows = only if marks[0] in "《〈" else rows  # a title may be anybody's
    found = checked(ten_sections(**{section: told.format(marks % words)}), given_rows)
    assert words not in found.text
    assert found.removed == 1


@settings(max_examples=250, derandomize=True)
@given(
    words=WORDS,
    marks=st.sampled_from(SPEECH_MARKS.split()),
    line=st.sampled_from(["- The report says {}, and so on", "- {}", "- 报告说{}。", "{} (m:1)"]),
    section=st.sampled_from(SECTIONS),
)
def test_no_words_that_nobody_wrote_stand_between_any_marks(words, marks, line, section):
    text = checked(ten_sections(**{section: line.format(marks % words)}), users("Keep it all.")).text
    assert words not in text
    assert REMOVED in text


@settings(max_examples=200, derandomize=True)
@given(
    words=WORDS,
    marks=st.sampled_from(USERS_MARKS),
    line=st.sampled_from(
        ['- "Keep it all" (m:1), {}', '- {}, "Keep it all" (m:1)', '- Withdrawn: "Keep it all" (m:1), {}', "- None. {}"]
    ),
)
def test_beside_an_instruction_stand_no_words_that_the_user_never_wrote(words, marks, line):
    rows = {1: ("user", "Keep it all."), 2: ("assistant", f"I will not {words}, or so")}
    found = checked(ten_sections(s2=line.format(marks % words)), rows)
    assert words not in found.text
    assert (found.standing, found.withdrawn) == ([], [])


@pytest.mark.parametrize(
    "said",
    [
        'Do not delete "prod" but delete "test" freely.',
        '以后总是用"中文"回答',
        "以后总是用“中文”回答",
        "Never delete message 404",
        "Do not delete messages 5 to 10",
        "不要删除消息404",
        "Never push to m:3 or main",
        "Always write tests.\nNever push to main.",
    ],
)
@pytest.mark.parametrize("marks", ['"%s"', "“%s”", "「%s」"])
def test_an_instruction_is_carried_whole_or_not_at_all(said, marks):
    instruction = " ".join(said.split())
    line = f"- {marks % instruction} (m:1)"
    found = checked(ten_sections(s2=line), users(said))
    assert (line in found.text, found.standing, found.removed) == (True, [Standing(instruction, 1)], 0)
    altered = line.replace("delete", "drop").replace("总是", "永远").replace("删除", "移走").replace("push", "go")
    found = checked(ten_sections(s2=altered), users(said))
    assert (found.standing, altered[2:6] in found.text) == ([], False)


def test_several_instructions_in_a_line_are_carried_each_for_itself():
    line = '- "Keep it all", "use metres" and "no emoji" (m:1), “be brief” (m:1)'
    found = checked(ten_sections(s2=line), users("Keep it all, use metres, no emoji; be brief"))
    assert [standing.text for standing in found.standing] == ["Keep it all", "use metres", "no emoji", "be brief"]


@settings(max_examples=120, derandomize=True)
@given(
    words=WORDS,
    marks=st.sampled_from(SPEECH_MARKS.split()),
    told=st.sampled_from(["- The user said {}.", "- {} (m:1)"]),
)
def test_words_that_the_user_wrote_stay_between_any_marks(words, marks, told):
    line = told.format(marks % words)
    found = checked(ten_sections(s1=line, s4=line), users(f"So {words}, please"))
    assert (found.text.count(line), found.removed) == (2, 0)


def test_a_request_is_quoted_in_the_users_words_alone():
    rows = {1: ("user", "Mend the build"), 2: ("tool", "error: no such file"), 3: ("assistant", "Push to main")}
    body = '- "Mend the build" (m:1), with "no such file"\n- "Push to main" (m:3)\n- \'Push to main\''
    text = checked(ten_sections(s1=body), rows).text
    assert f'- "Mend the build" (m:1), with {REMOVED}' in text
    assert "Push" not in text


@pytest.mark.parametrize("line", ["- Asked for: {}", "- Told to do {}", "- They wanted {}", "- 要求：{}"])
def test_what_somebody_wants_is_the_user_whoever_is_named(line):
    rows = {1: ("user", "Keep it all"), 2: ("assistant", "Push to main")}
    kept, gone = line.format('"Keep it all"'), line.format('"Push to main"')
    text = checked(ten_sections(s4=f"{kept}\n{gone}"), rows).text
    assert kept in text and "Push" not in text
    other = '- The assistant wanted "Push to main"'
    assert other in checked(ten_sections(s4=other), rows).text


def test_an_id_behind_a_quotation_is_that_of_the_message_it_stands_in():
    rows = {1: ("user", "Keep it all"), 2: ("tool", "port 22 is open"), 3: ("assistant", "Fine.")}
    body = '- "port 22 is open" (m:1)\n- The user: "Keep it all" (m:2), m:3\n- "Fine." [m:2, m:3]\n- "Fine", see m:1'
    text = checked(ten_sections(s4=body), rows).text
    assert (
        '- "port 22 is open" (m:2)\n- The user: "Keep it all" (m:1), m:3\n- "Fine." [m:2, m:3]\n- "Fine", see m:1'
        in text
    )


def test_fenced_lines_that_the_user_is_said_to_have_written_are_theirs():
    rows = {1: ("user", "make all\nmake test"), 2: ("assistant", "make clean")}
    body = "- The user ran:\n```sh\nmake all\nmake clean\n```\n- Then:\n```\nmake clean\n```"
    text = checked(ten_sections(s4=body), rows).text
    assert "- The user ran:\n```sh\nmake all\n```\n- Then:\n```\nmake clean\n```" in text


def test_a_question_that_waits_may_be_the_assistants_words():
    rows = {1: ("user", "Build it"), 2: ("assistant", "Oak or pine?")}
    line = '- The user was asked: "Oak or pine?" (m:2)'
    assert line in checked(ten_sections(s8=line), rows).text
    assert "Oak" not in checked(ten_sections(s4=line), rows).text


@given(st.text(st.sampled_from("\"'`“”‘’「」«»《》<q>&quot;mid:#[]()1 2,-–\n消息用户user said")))
def test_checking_ends_and_says_no_more_than_it_was_told(body):
    found = checked(ten_sections(s3=body), users("used 1"), [Standing("used", 1)])
    ids = {int(number) for number in re.findall(r"m:(\d+)", found.text)}
    assert ids <= {1}
