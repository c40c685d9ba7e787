"""The index of long texts: which runs of three bytes each one has.

A text that holds a needle has every run of three bytes (of its UTF-8) that the needle has, so the rows worth comparing
are found without reading any text. Only texts over LONG_BYTES are indexed: scanning the short ones is cheaper. A run is
a number of 24 bits, not a smaller hash of it: with hashes of 15 bits, which take half of the room, one long text in six
seemed to hold a word of three letters that stands in none.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.db import connection

from threads.models import Message

if TYPE_CHECKING:
    import numpy as np

LONG_BYTES = 2_000
NEEDLE_GRAMS_MAX = 32
_THREADS = 1 << 31


def is_long(text: str) -> bool:
    """Whether a `search_text` is indexed."""
    return len(text) > LONG_BYTES or (len(text) * 4 > LONG_BYTES and len(text.encode()) > LONG_BYTES)


def grams_of(text: str) -> list[int]:
    """A text's runs of three bytes as numbers, each once, ascending. Empty below three bytes."""
    runs = _runs(text)
    runs.sort()
    grams: list[int] = runs[:1].tolist() + runs[1:][runs[1:] != runs[:-1]].tolist()
    return grams


def grams_of_needle(needle: str) -> list[int]:
    """As many of the needle's grams as are worth asking for, evenly from its whole length."""
    grams = list(dict.fromkeys(_runs(needle).tolist()))
    step = max(len(grams) / NEEDLE_GRAMS_MAX, 1)
    return [grams[int(place * step)] for place in range(min(len(grams), NEEDLE_GRAMS_MAX))]


def thread_gram(thread_id: int) -> int:
    """What stands in an indexed row for its thread, below zero."""
    return -1 - thread_id % _THREADS


def index(messages: Iterable[Message]) -> None:
    """Index the long ones among messages as they are now, within the transaction that writes them."""
    rows = [
        (row.pk, row.owner_id, row.thread_id, array([thread_gram(row.thread_id), *grams_of(row.search_text)]))
        for row in messages
        if is_long(row.search_text)
    ]
    for first in range(0, len(rows), 200):
        _insert(rows[first : first + 200])


def _insert(rows: Sequence[tuple[int, int, int, str]]) -> None:
    values = ", ".join(["(%s, %s, %s, %s::int[])"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO threads_messagegrams (message_id, owner_id, thread_id, grams) VALUES {values}"  # noqa: S608 - placeholders alone
            " ON CONFLICT (message_id) DO UPDATE SET grams = EXCLUDED.grams",
            [value for row in rows for value in row],
        )


def array(grams: Sequence[int]) -> str:
    """Grams as PostgreSQL reads an array: thousands of numbers are adapted faster at once than one by one."""
    return "{" + ",".join(map(str, grams)) + "}"


def _runs(text: str) -> "np.ndarray[tuple[int], np.dtype[np.uint32]]":
    import numpy as np  # here, so that processes that write no message start without it

    data = np.frombuffer(text.encode(), dtype=np.uint8).astype(np.uint32)
    return (data[:-2] << np.uint32(16)) | (data[1:-1] << np.uint32(8)) | data[2:]
