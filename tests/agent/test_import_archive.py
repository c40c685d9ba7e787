"""Export files: recognised by content, read within limits, and refused with a sentence."""

import io
import json
import struct
import zipfile

import pytest

from agent import import_archive
from agent.import_archive import Export, NoExport, is_export
from agent.import_history import Damaged
from tests.agent import exports

ONE = exports.chatgpt_conversation(1)
LINE = json.dumps({"conversation": "c", "role": "user", "text": '"mapping": {', "created": "2024-01-01"})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"PK\x03\x04rest", True),
        (b"\xef\xbb\xbf [ ]", True),
        (json.dumps([ONE]).encode(), True),
        (json.dumps(ONE).encode(), True),
        (json.dumps(ONE, indent=2).encode(), True),
        (json.dumps(exports.claude_conversation(1)).encode(), True),
        (LINE.encode(), False),
        (f"{LINE}\n{LINE}\n".encode(), False),
        (f"{{broken\n{LINE}\n".encode(), False),
        (f"[1]\n{LINE}\n".encode(), False),
        (b"hello", False),
        (b"", False),
    ],
)
def test_the_content_tells_the_format(raw, expected):
    file = io.BytesIO(raw)
    assert is_export(file) is expected
    assert file.tell() == 0


def titles(file, name="export"):
    found = []
    for entry in Export(file, name).entries():
        try:
            found += [conversation["title"] for conversation in entry.conversations]
        except Damaged as damage:
            found.append((entry.file, entry.number, str(damage)))
    return found


def archive(**entries):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in entries.items():
            made.writestr(name.replace("__", "/").replace("_MACOSX", "__MACOSX").replace("_json", ".json"), text)
    raw.seek(0)
    return raw


def many(*numbers):
    return json.dumps([exports.chatgpt_conversation(number) for number in numbers])


def test_split_files_are_read_in_order_wherever_they_lie_and_others_are_left_alone():
    made = archive(
        **{
            "x__conversations-001_json": many(3),
            "x__conversations-000_json": many(1, 2),
            "x__shared_conversations_json": many(9),
            "_MACOSX__x__conversations-000_json": "junk",
            "chat.html": "<html>",
        }
    )
    assert titles(made) == ["Talk 1", "Talk 2", "Talk 3"]


def test_a_damaged_archive_gives_what_stands_before_the_damage():
    conversations = [{**exports.chatgpt_conversation(number), "pad": "x" * 3_000_000} for number in range(3)]
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as made:
        made.writestr("conversations.json", json.dumps(conversations))
    broken = bytearray(raw.getvalue())
    broken[-2_000_000] ^= 1
    found = titles(io.BytesIO(bytes(broken)))
    assert found[:2] == ["Talk 0", "Talk 1"]
    assert found[-1] == ("conversations.json", 0, "The archive is damaged here, so the rest of this file is lost.")


@pytest.mark.parametrize("cut", [30, 200, 2_000])
def test_a_cut_archive_is_refused(cut):
    raw = archive(conversations_json=many(*range(50))).getvalue()
    with pytest.raises(NoExport, match="The archive is damaged"):
        Export(io.BytesIO(raw[:-cut]), "export")


def test_an_archive_without_conversations_is_refused():
    with pytest.raises(NoExport, match=r"holds no conversations\.json"):
        Export(archive(user_json="{}"), "export")


def test_a_locked_archive_is_refused():
    raw = bytearray(archive(conversations_json=many(1)).getvalue())
    raw[6] |= 1
    raw[raw.rindex(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(NoExport, match="locked with a password"):
        Export(io.BytesIO(bytes(raw)), "export")


def test_a_bomb_is_refused_before_anything_is_unpacked(monkeypatch):
    monkeypatch.setattr(import_archive, "RATIO_COUNTS_FROM_BYTES", 1_000_000)
    bomb = archive(conversations_json="[" + " " * 20_000_000 + "]")
    with pytest.raises(NoExport, match="would unpack to"):
        Export(bomb, "export")


def test_what_claims_to_be_small_is_read_no_further_than_it_claims(monkeypatch):
    raw = bytearray(archive(conversations_json=many(*range(200))).getvalue())
    for sign, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", raw, raw.rindex(sign) + offset, 1_000)
    export = Export(io.BytesIO(bytes(raw)), "export")
    entries = list(export.entries())
    assert export.done_bytes <= 1_000
    assert entries[-1].trouble


def test_too_much_text_is_refused_by_claim_and_by_reading(monkeypatch):
    monkeypatch.setattr(import_archive, "UNPACKED_MAX_BYTES", 10_000)
    with pytest.raises(NoExport, match="Import them in parts"):
        Export(archive(conversations_json=many(*range(50))), "export")
    with pytest.raises(NoExport, match="Import them in parts"):
        titles(io.BytesIO(many(*range(50)).encode()))


def test_a_list_of_files_that_would_fill_memory_is_not_read(monkeypatch):
    monkeypatch.setattr(import_archive, "DIRECTORY_MAX_BYTES", 5_000)
    made = archive(conversations_json=many(1), **{f"file-{number}": "" for number in range(200)})
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(NoExport, match="more files than any export"):
        Export(made, "export")


def test_a_conversation_that_is_too_large_is_reported_and_the_others_are_read(monkeypatch):
    monkeypatch.setattr(import_archive, "CONVERSATION_MAX_BYTES", 2_000_000)
    large = {**exports.chatgpt_conversation(1), "pad": "x" * 5_000_000}
    raw = json.dumps([exports.chatgpt_conversation(0), large, exports.chatgpt_conversation(2)]).encode()
    assert titles(io.BytesIO(raw), "c.json") == ["Talk 0", ("c.json", 2, "It is larger than 1 MB."), "Talk 2"]


def test_broken_entries_say_what_is_wrong_and_where():
    raw = b"[" + b",".join([
        b'{"title": "ok"}',
        b"7",
        b'{"title": nonsense}',
        b'{"title": "\xff"}',
        b'{"title": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"title": "cut',
    ])  # fmt: skip
    assert titles(io.BytesIO(raw), "c.json") == [
        "ok",
        ("c.json", 2, "It is not a JSON object."),
        ("c.json", 3, "It is not JSON: Expecting value at character 11."),
        ("c.json", 4, "It is not UTF-8 text."),
        ("c.json", 5, "It is JSON that nobody can read."),
        ("c.json", 6, "The file ends in the middle of it."),
    ]
