"""The record that a summary is checked against: a conversation's rows, and those of what it was copied from."""

import re
from collections.abc import Sequence

from django.db.models import Q, QuerySet

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from agent.summary import Standing
from threads.looking_back import SAYS_NEW_WORDS
from threads.models import Generation, Message, Thread
from threads.search_range import Range
from threads.transcript import fold
from threads.visibility import Viewer

# Two neighbours in one word.
_WITHIN = re.compile("[a-z0-9]{2}")
TOLD_BY = 3


class ThreadRecord:
    """What a thread may cite and quote: the rows that it may find again by searching itself, and the copies among them,
    because the model that writes the summary sees their ids."""

    def __init__(self, thread: Thread, generation: Generation) -> None:
        self.standing: Sequence[Standing] = [Standing(**entry) for entry in generation.standing]
        self._range = Range(Viewer.of_thread(thread), thread)

    def known(self, ids: set[int]) -> set[int]:
        """Those ids that are rows in range."""
        return set(self._range.standing_rows().filter(pk__in=ids).values_list("pk", flat=True))

    def said_by_user(self, words: str) -> list[int]:
        """Ids of the rows with the user's words that hold folded words, whole ones, ascending, whatever white space
        parts them. What the user answered to a question card is the result of a call, and the user's words all the
        same."""
        answered = Q(answers_call__tool=QUESTION_TOOL, answers_call__status=ToolCall.Status.DONE)
        rows = self._range.standing_rows().filter(Q(role=Message.Role.USER) | answered)
        # The longest words leave few rows to be read.
        for word in sorted(set(words.split()), key=len)[-TOLD_BY:]:
            rows = _holding(rows, word)
        texts = rows.order_by("pk").values_list("pk", "search_text")
        return [pk for pk, text in texts.iterator() if _holds_whole(_in_one_line(text), _in_one_line(words))]

    def said(self, words: str) -> list[int]:
        """Ids of rows that hold folded words, or of those that quote them. Within a transaction."""
        # What was found in other conversations stands here in what a look back showed alone.
        shown = self._range.standing_rows().filter(role=Message.Role.TOOL).exclude(SAYS_NEW_WORDS)
        found = sorted(self._range.holding(words).ids) or _ids(_holding(shown, words))
        return found or [row.pk for row in self._quoting() if _quotes(row, words)]

    def said_in(self, words: str, ids: set[int]) -> bool:
        """Whether one of some rows holds folded words, or what it quotes does."""
        if _holding(self._range.standing_rows().filter(pk__in=ids), words).exists():
            return True
        return any(_quotes(row, words) for row in self._quoting().filter(pk__in=ids))

    def _quoting(self) -> QuerySet[Message]:
        return self._range.standing_rows().filter(meta__quote__text__isnull=False).order_by("pk")


def _holding(rows: QuerySet[Message], words: str) -> QuerySet[Message]:
    return rows.extra(where=["strpos(search_text, %s) > 0"], params=[words])


def _holds_whole(text: str, words: str) -> bool:
    """Whether a text holds words that neither begin nor end within others there: who wrote "know" did not write "no".
    Not by a pattern, which takes seconds to be made of a long quotation."""
    place = text.find(words)
    while place >= 0:
        end = place + len(words)
        before, after = text[max(place - 1, 0) : place + 1], text[end - 1 : end + 1]
        if not _WITHIN.fullmatch(before) and not _WITHIN.fullmatch(after):
            return True
        place = text.find(words, place + 1)
    return False


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _ids(rows: QuerySet[Message]) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _quotes(row: Message, words: str) -> bool:
    return words in fold(row.meta["quote"]["text"])
