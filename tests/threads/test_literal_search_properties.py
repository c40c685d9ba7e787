"""What holds of the literal search for any text: each piece is found, nothing else is, as grep would say."""

import json
import shutil
import subprocess

import pytest
import regex
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from maxclaw.text import visible
from tests.threads.conversation import Conversation
from tests.threads.records import call_tool, say, thread_of
from tests.threads.test_literal_search import many, result_of_tool, search
from tests.threads.test_verification import STEP, take_step
from threads.erasure import export
from threads.excerpts import Folded
from threads.lexical import is_spaceless
from threads.literal_windows import LITERAL_MAX_CHARS
from threads.models import Message
from threads.search_range import Range
from threads.search_terms import terms_of
from threads.transcript import fold
from threads.visibility import Viewer

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(alice):
    return thread_of(alice)


LETTERS = st.sampled_from(
    [
        *"abcXYZ  %_\\\"'`.\n\x1f\x00",
        *"éßİıǰﬁﬃΣσςÅ가각ᄀ\u1161\u11a8",
        *"中文长沙日本ไทย",
        *("e\u0301", "\u0345", "\u0301", "ŉ", "ᾳ\u0301", "नि", "\r\n", "\ud800", "\ufdfa"),
        *("🚀", "👩\u200d👩\u200d👧\u200d👦", "🇩🇪", "🇫🇷"),
    ]
)
TEXT = st.lists(LETTERS, min_size=3, max_size=60).map("".join)


@given(text=TEXT)
def test_the_way_back_from_folded_text_leads_to_what_folds_to_it(text):
    text = visible(text)
    folded = Folded(text)
    assert folded.folded == fold(text)
    for place in range(len(folded.folded)):
        begin, end = folded.origin(place, place + 1)
        before, piece = fold(text[:begin]), fold(text[begin:end])
        assert before + piece == folded.folded[: len(before) + len(piece)]
        assert len(before) <= place < len(before) + len(piece)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    text=TEXT, data=st.data(), padding=st.sampled_from(["", "", "word " * 500, "长" * 900, "ﬃ" * 2_100, "pad " * 2_600])
)
def test_any_piece_of_any_text_is_found(thread, text, data, padding):
    if data.draw(st.booleans()):
        row = say(thread, "user", f"{padding}{text}{padding}")
        stored, at = row.text, len(padding)
    else:
        call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"value": ["first", text + padding]}}
        row = say(thread, "assistant", "", blocks=[call])
        stored, at = json.loads(row.wire)[0]["input"]["value"][1], 0
    stops = [match.end() for match in regex.finditer(r"\X", stored) if at <= match.end() <= at + len(text) + 12]
    begin, end = sorted((data.draw(st.sampled_from([0, *stops])), data.draw(st.sampled_from([0, *stops]))))
    needle = stored[begin:end]
    if len(needle) < 3 or not needle.strip():
        return
    if len(needle) > 3 and fold(needle) not in fold(seeming(needle)):
        many(thread, 2, seeming(needle))
    result = search(thread, needle)
    assert result.hits[0].message_id == row.pk
    assert len(result.text) <= LITERAL_MAX_CHARS
    assert all(len(hit.window.text) <= 800 for hit in result.hits)
    if len(needle) < 100:
        assert fold(terms_of(needle).whole) in fold(result.hits[0].window.text)


def seeming(needle):
    """Text with every run of three bytes of a needle, and not the needle."""
    return "|".join(needle[place : place + 3] for place in range(len(needle) - 2))


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(word=st.text("bjkqvwxz", min_size=5, max_size=12), other=st.sampled_from(["", " absent", " seeming to"]))
def test_a_word_is_found_however_many_long_texts_seem_to_hold_it(thread, word, other):
    row = result_of_tool(thread, f"{'.' * 2_000} {word} {'.' * 2_000}")
    many(thread, 40, f"{seeming(word)} seeming")
    assert search(thread, f"{word}{other}").hits[0].message_id == row.pk


EVERY_SIGN = "".join(map(chr, [*range(0x20, 0xD800), *range(0xE000, 0x110000)]))
DENSE = [
    *("Thai", "Lao", "Khmer", "Myanmar", "Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Ahom", "Balinese", "Batak"),
    *("Javanese", "Cham", "Brahmi", "Grantha", "Tulu_Tigalari", "Dives_Akuru", "Makasar", "Kawi", "Gurung_Khema"),
    *("Tibetan", "Phags_Pa", "Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Tangut", "Nushu", "Khitan_Small_Script"),
]
SPACED = ["Latin", "Greek", "Cyrillic", "Hebrew", "Arabic", "Devanagari", "Tamil", "Ethiopic", "Hangul"]
BREAKS_WITHOUT_SPACES = [f"Line_Break={name}" for name in ("SA", "AK", "AP", "AS", "VI", "VF")]
EAST_ASIAN_PUNCTUATION = "、。〈〉《》「」『』【】〔〕〖〗〜・！（），．：；？［］｛｝～｡｢｣､￥—…“”‘’㈠㊗㍿"


def signs_of(*properties):
    """Every character with one of some properties of Unicode."""
    return regex.findall("[{}]".format("".join(rf"\p{{{name}}}" for name in properties)), EVERY_SIGN)


def test_every_sign_of_a_script_without_spaces_is_known_as_one():
    assert [sign for sign in signs_of(*DENSE, *BREAKS_WITHOUT_SPACES) if not is_spaceless(sign)] == []
    assert not any(map(is_spaceless, signs_of(*SPACED)))


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data(), script=st.sampled_from([*DENSE, ""]), padding=st.sampled_from(["", "word", "长" * 900]))
def test_two_signs_are_found_in_a_script_without_spaces(thread, data, script, padding):
    signs = signs_of(f"Script={script}") if script else EAST_ASIAN_PUNCTUATION
    others = st.sampled_from("中文ไทยカ、。가나")
    text = data.draw(st.text(st.sampled_from(signs) | others, min_size=2, max_size=9))
    row = say(thread, "user", f"{padding}{text}{padding}")
    place = data.draw(st.integers(0, len(text) - 2))
    needle = text[place : place + 2]
    result = search(thread, needle)
    assert result.hits[0].message_id == row.pk
    assert fold(needle) in fold(result.hits[0].window.text)


def test_two_signs_as_other_programs_write_them_are_found(thread):
    for needle in ("⽤⼾", "⺀⺁", "！？", "、。", "……", "——", "𗀀𗀁", "𛅰𛅱", "𘬀𘬁", "𛀀𛀁", "𑜀𑜁", "ꡀꡁ"):
        row = say(thread, "user", f"before {needle} after")
        assert search(thread, needle).hits[0].message_id == row.pk, needle


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, min_size=3, max_size=14), long=st.booleans(), only_cold=st.booleans())
def test_what_is_found_is_what_may_be_shown(db, steps, long, only_cold):
    class Undone(Exception):
        pass

    needle = "needle"
    padding = " padding" * 300 if long else ""
    with pytest.raises(Undone), transaction.atomic():
        conversations = [Conversation(User.objects.create(username="somebody"))]
        for step in steps:
            take_step(conversations, step | {"text": f"{needle} {step['text']}{padding}"})
        for conversation in conversations:
            thread = conversation.thread
            thread.refresh_from_db()
            found = Range(Viewer.of_thread(thread), thread, only_cold=only_cold).holding(needle)
            assert found.complete
            assert found.ids == sorted(shown_by_hand(thread, needle, only_cold), reverse=True)
        raise Undone


def shown_by_hand(thread, needle, only_cold, may_see=lambda _thread: True):
    """The rule in plain code, over rows read one by one."""
    spans = [(thread, None)]
    while (source := spans[-1][0].copied_from) is not None:
        spans.append((source.thread, source.pk))
    spans = [span for span in spans if may_see(span[0])]
    rows = {
        row.pk: row
        for part, upto in spans
        for row in Message.objects.filter(thread=part)
        if upto is None or row.pk <= upto
    }
    live_copies = {
        (row.copied_from_id, row.thread_id)
        for row in Message.objects.filter(left_at_cut=None, copied_from__isnull=False)
    }

    def stands(row):
        if not row.model_visible or row.wire is None or row.meta.get("source") == "framework":
            return False
        if only_cold and row.left_because != "cold":
            return False
        return row.left_because != "superseded" or (row.pk, row.thread_id) in live_copies

    return [
        row.pk
        for row in rows.values()
        if needle in row.search_text
        and stands(row)
        and not (row.copied_from_id in rows and stands(rows[row.copied_from_id]))
    ]


NEEDLES = [
    "/srv/app/config.yaml",
    '"level": "error"',
    "C:\\Users\\ann\\vault.kdbx",
    "长沙",
    "🚀",
    "100%",
    "snake_case_name",
    "\\d+\\.\\d*",
    "it's",
    "absent from everything",
]


def test_the_same_rows_as_grep_over_the_exported_thread_but_those_that_look_back(thread, tmp_path):
    assert shutil.which("grep")
    for number in range(60):
        held = [needle for place, needle in enumerate(NEEDLES[:-1]) if (number + place) % 7 == 0]
        words = f" row {number} ".join(["", *held, "/srv/app-config.yaml", "100 percent", "snake case name"])
        if number % 3 == 0:
            result_of_tool(thread, words + "\n" + "filling of a log 长 沙 \\ % _ \n" * 100)
        elif number % 3 == 1:
            say(thread, "user", words)
        else:
            call_tool(thread, call_id=f"toolu_grep_{number}", arguments={"first": held, "then": {"all": [words]}})
    # The one exception: what only looks back repeats words that are found where they were said.
    looks_back = set()
    for number, needle in enumerate(NEEDLES):
        asked = {"type": "tool_use", "id": f"toolu_back_{number}", "name": "search_memory", "input": {"query": needle}}
        looks_back.add(say(thread, "assistant", "", blocks=[asked], model="emulator-main").pk)
        shown = {"type": "tool_result", "tool_use_id": asked["id"], "content": f"found {needle}"}
        meta = {"looks_back": True}
        looks_back.add(say(thread, "tool", f"found {needle}", blocks=[shown], tool_call_id=asked["id"], meta=meta).pk)
    exported = [record for record in export(thread.owner) if record["record"] == "message"]
    assert len(exported) == Message.objects.filter(thread=thread).count() == 100
    for record in exported:
        calls = [block["input"] for block in json.loads(record["wire"]) if block["type"] == "tool_use"]
        (tmp_path / str(record["id"])).write_text("\n".join([record["text"], *strings_in(calls)]))
    reader = Range(Viewer.of_thread(thread), thread)
    for needle in NEEDLES:
        listed = subprocess.run(["grep", "-rlF", needle, str(tmp_path)], capture_output=True, text=True, check=False)
        holding = {int(name.rpartition("/")[2]) for name in listed.stdout.split()}
        assert len(holding & looks_back) >= 2, needle
        expected = sorted(holding - looks_back, reverse=True)
        assert reader.holding(terms_of(needle).whole).ids == expected, needle
        whole = [hit.message_id for hit in search(thread, needle).hits if fold(needle) in fold(hit.window.text)]
        assert list(dict.fromkeys(whole)) == expected[: len(set(whole))], needle


def strings_in(value):
    """Every string leaf."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from strings_in(part)
    elif isinstance(value, dict):
        yield from strings_in(list(value.values()))
