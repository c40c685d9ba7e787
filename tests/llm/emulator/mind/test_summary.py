"""The structured summary, by rule."""

import re

from tests.llm.emulator.mind.talking import ALL, OPENING, Talk

ASKED = "Summarise the conversation so far in ten numbered sections."
TITLES = [
    "1. The request",
    "2. Standing instructions and corrections in the user's words",
    "3. Decisions and their reasons",
    "4. Where the work stands",
    "5. Files and artefacts",
    "6. Errors and their fixes",
    "7. What failed",
    "8. Questions open to the user",
    "9. The next step",
    "10. How to reach each resource used",
]


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^(?=\d+\. )", text, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def worked() -> Talk:
    talk = Talk(*ALL)
    talk.tools.append({"name": "read_file", "input_schema": {"type": "object"}})
    talk.say("Help me repair the build. Always answer in short sentences.")
    talk.say("Please never touch src/main.py without asking.")
    talk.say("We decided to use make because it is everywhere. 以后不要用缩写。")
    talk.say('use read_file {"path": "src/build/Makefile"}')
    talk.give("make: *** Error 2. See https://example.org/logs/17 and `make clean`.")
    return talk


def test_it_has_the_ten_sections_in_order():
    assert list(sections(worked().text(ASKED))) == TITLES
    assert list(sections(Talk().text(ASKED))) == TITLES


def test_instructions_are_quoted_word_for_word():
    quoted = sections(worked().text(ASKED))[TITLES[1]]
    assert quoted.splitlines() == [
        '- "Always answer in short sentences."',
        '- "Please never touch src/main.py without asking."',
        '- "以后不要用缩写。"',
    ]


def test_the_other_sections_hold_what_they_name():
    found = sections(worked().text(ASKED))
    assert "Help me repair the build." in found[TITLES[0]]
    assert "We decided to use make because it is everywhere." in found[TITLES[2]]
    assert "read_file" in found[TITLES[3]]
    assert "src/main.py" in found[TITLES[4]]
    assert "Error 2" in found[TITLES[5]]
    assert found[TITLES[6]] == "None."
    for resource in ("https://example.org/logs/17", "src/main.py", "make clean", "tool read_file"):
        assert resource in found[TITLES[9]]


def test_ids_stand_where_the_rows_show_them():
    rows = (
        f"{ASKED}\n\n[m:12] user, generation 3, 2026-11-02 08:10 UTC:\nAlways use docs/plan.md for notes.\n\n"
        "[m:13] tool result, generation 3, 2026-11-02 08:11 UTC:\nRead docs/plan.md and docs/old.md."
    )
    found = sections(Talk().text(rows))
    assert found[TITLES[1]] == '- "Always use docs/plan.md for notes." (m:12, 2026-11-02 08:10)'
    assert "docs/plan.md (m:12" in found[TITLES[9]]
    assert "docs/old.md (m:13" in found[TITLES[9]]


def test_an_earlier_summary_is_carried_on():
    first = worked().text(ASKED)
    talk = Talk(*ALL, opening=OPENING.replace("</framework>", f"\n{first}\n</framework>"))
    talk.say("Always wear a hat.")
    quoted = sections(talk.text(ASKED))[TITLES[1]]
    assert '- "Always answer in short sentences."' in quoted
    assert '- "Always wear a hat."' in quoted


def test_naming_the_sections_asks_for_them_too():
    asked = "Write, in this order: " + "; ".join(TITLES)
    assert list(sections(worked().text(asked))) == TITLES


def test_asking_about_a_summary_is_no_request_for_one():
    assert "1. The request" not in str(worked().say("What is a summary?"))
