"""An export as a file: which kind it is, and its conversations one after the other.

Nothing here holds more than one conversation in memory. Its limits keep an archive that was made to do harm from doing
any: the sizes that it claims are not believed.
"""

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from agent.import_history import Damaged
from agent.json_scan import ElementState, JsonScan
from maxclaw.sentences import Sentence, Told
from maxclaw.sentences import sentence as _

CONVERSATION_MAX_BYTES = 64 * 1024 * 1024
UNPACKED_MAX_BYTES = 8 * 1024 * 1024 * 1024
# Text hardly packs better than this; what does, and is large, was made to fill a disk.
PACKED_MAX_RATIO = 200
RATIO_COUNTS_FROM_BYTES = 64 * 1024 * 1024
DIRECTORY_MAX_BYTES = 16 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024

# After damage the scan goes on where the next conversation seems to begin: so often in one file.
RECOVERIES_MAX = 100

CONVERSATIONS_NAME = re.compile(r"(?:^|/)conversations(?:[-_]\d+)?\.json$", re.IGNORECASE)
ZIP_SIGN = b"PK\x03\x04"
EMPTY_ZIP_SIGN = b"PK\x05\x06"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class NoExport(Told):
    """The file as a whole cannot be imported. The text is a sentence that says why and what to do."""


@dataclass(frozen=True)
class Entry:
    """One element of a conversations file, read: its place (from 1), and what is wrong with it if anything is."""

    file: str
    number: int
    value: Any = None
    trouble: Sentence | None = None

    @property
    def conversations(self) -> list[dict[str, Any]]:
        """What it holds: a conversation, or several under one key. Raises Damaged."""
        if not self.trouble and not isinstance(self.value, dict):
            raise Damaged(_("It is not a JSON object."))
        if self.trouble:
            raise Damaged(self.trouble)
        inside = self.value.get("conversations")
        return [one for one in inside if isinstance(one, dict)] if isinstance(inside, list) else [self.value]


def is_export(file: IO[bytes]) -> bool:
    """Whether the file is an archive or a JSON document of conversations; JSON lines otherwise. Reads from the start,
    and goes back there."""
    start = file.read(CHUNK_BYTES)
    file.seek(0)
    if start.startswith((ZIP_SIGN, EMPTY_ZIP_SIGN)):
        return True
    text = start.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"["):
        # A line of JSON lines that is a list is a broken line of many; a document is one list.
        return not re.match(rb"\[[^\n]*\]\s*\n\s*\{", text)
    first_line = text.split(b"\n", 1)[0].strip()
    if not first_line.startswith(b"{"):
        return False
    return b'"conversation"' not in first_line and bool(
        re.search(rb'"(?:mapping|chat_messages|conversations)"\s*:', start)
    )


class Export:
    """The conversations files of an opened export, in order. `total_bytes` is their size unpacked, `done_bytes` how
    much of it stands before the entry that was handed out last."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        """Raises NoExport."""
        self.file, self.name = file, name
        self.done_bytes = self._read_bytes = 0
        self._archive: zipfile.ZipFile | None = None
        start = file.read(len(ZIP_SIGN))
        file.seek(0)
        if start in (ZIP_SIGN, EMPTY_ZIP_SIGN):
            self._archive, self._members = _opened(file)
            self.total_bytes = sum(member.file_size for member in self._members)
        else:
            self.total_bytes = file.seek(0, 2)
            file.seek(0)

    def entries(self) -> Iterator[Entry]:
        """Every element of every conversations file. A file that is damaged from some byte on yields what stands before
        it, then an entry that says so."""
        if self._archive is None:
            yield from self._elements(self.file, self.name)
            return
        for member in self._members:
            try:
                with self._archive.open(member) as file:
                    yield from self._elements(file, member.filename)
            # RuntimeError: encrypted, or packed in a way that zipfile cannot read.
            except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError):
                yield Entry(
                    member.filename, 0, b"", _("The archive is damaged here, so the rest of this file is lost.")
                )

    def _elements(self, file: IO[bytes], name: str) -> Iterator[Entry]:
        def read() -> bytes:
            chunk = file.read(CHUNK_BYTES)
            self._read_bytes += len(chunk)
            if self._read_bytes > UNPACKED_MAX_BYTES:
                raise NoExport(_too_large())
            return chunk

        scan = JsonScan(read, CONVERSATION_MAX_BYTES)
        number, recoveries, broken_before = 0, 0, False
        while (element := scan.next()) is not None:
            if broken_before and element.raw and not element.raw.startswith(b"{"):
                continue  # more of the same broken element, which a bracket in its words split
            number += 1
            value, trouble = None, _TROUBLES.get(element.state)
            if trouble:
                trouble = trouble % {"limit": CONVERSATION_MAX_BYTES // 1024**2}
            else:
                value, trouble = _parsed(element.raw)
            if trouble and recoveries < RECOVERIES_MAX and scan.recover(element):
                recoveries += 1
            broken_before = bool(trouble)
            self.done_bytes = self._read_bytes - len(scan.buffer)
            yield Entry(name, number, value, trouble)


def _parsed(raw: bytes) -> tuple[Any, Sentence | None]:
    """(value, what is wrong)."""
    try:
        return json.loads(raw.decode("utf-8-sig")), None
    except UnicodeDecodeError:
        return None, _("It is not UTF-8 text.")
    except json.JSONDecodeError as error:
        where = {"why": error.msg, "place": f"{error.pos + 1:,}"}
        return None, _("It is not JSON: %(why)s at character %(place)s.") % where
    except (RecursionError, ValueError):
        # Nested too deeply, or a number with thousands of digits.
        return None, _("It is JSON that nobody can read.")


_TROUBLES = {
    ElementState.TOO_LARGE: _("It is larger than %(limit)s MB."),
    ElementState.CUT_SHORT: _("The file ends in the middle of it."),
    ElementState.LIST_CUT_SHORT: _("The file ends here although its list goes on: it was cut short."),
}


def _opened(file: IO[bytes]) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]:
    damaged = _("The archive is damaged. Download it again.")
    if _directory_bytes(file) > DIRECTORY_MAX_BYTES:
        raise NoExport(_("The archive lists more files than any export has."))
    try:
        archive = zipfile.ZipFile(file)
    # RuntimeError: a version of the format that zipfile cannot read.
    except (zipfile.BadZipFile, struct.error, ValueError, OSError, RuntimeError, EOFError):
        raise NoExport(damaged) from None
    members = [
        member
        for member in archive.infolist()
        if CONVERSATIONS_NAME.search(member.filename) and "__MACOSX" not in member.filename
    ]
    if not members:
        raise NoExport(
            _("The archive holds no conversations.json. Choose the archive as ChatGPT or Claude sent it, unchanged.")
        )
    for member in members:
        if member.flag_bits & 1:
            raise NoExport(_("The archive is locked with a password. Unpack it and import conversations.json."))
        ratio = member.file_size / max(member.compress_size, 1)
        if member.file_size > RATIO_COUNTS_FROM_BYTES and ratio > PACKED_MAX_RATIO:
            raise NoExport(
                _("%(file)s would unpack to %(ratio)s times its size. No export does that.")
                % {"file": member.filename[:200], "ratio": f"{ratio:,.0f}"}
            )
    if sum(member.file_size for member in members) > UNPACKED_MAX_BYTES:
        raise NoExport(_too_large())
    return archive, sorted(members, key=lambda member: member.filename)


def _too_large() -> Sentence:
    return _("The conversations are larger than %(limit)s GB. Import them in parts.") % {
        "limit": UNPACKED_MAX_BYTES // 1024**3
    }


def _directory_bytes(file: IO[bytes]) -> int:
    """How large the archive's list of files is: reading the list itself takes memory for each of them."""
    size = file.seek(0, 2)
    tail_bytes = min(size, 65_536 + 22 + 20)
    file.seek(size - tail_bytes)
    tail = file.read(tail_bytes)
    file.seek(0)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) - end < 22:
        return 0
    claimed: int = struct.unpack_from("<I", tail, end + 12)[0]
    if claimed == 0xFFFFFFFF and tail[end - 20 : end - 16] == b"PK\x06\x07":
        at = struct.unpack_from("<Q", tail, end - 20 + 8)[0]
        file.seek(min(at, size))
        record = file.read(56)
        file.seek(0)
        if len(record) == 56:
            return int(struct.unpack_from("<Q", record, 40)[0])
    return claimed
