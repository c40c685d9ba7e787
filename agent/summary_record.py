"""The record that a summary is checked against: a conversation's rows, and those of what it was copied from."""

from collections.abc import Sequence

from agent.summary import Standing
from threads.models import Generation, Message, Thread
from threads.search_range import Range
from threads.transcript import fold
from threads.visibility import Viewer


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
        """Ids of the user's rows that hold folded words, ascending."""
        rows = self._range.standing_rows().filter(role=Message.Role.USER)
        holding = rows.extra(where=["strpos(search_text, %s) > 0"], params=[words])
        return list(holding.order_by("pk").values_list("pk", flat=True))

    def said(self, words: str) -> bool:
        """Whether any row holds folded words, or what a row quotes does. Within a transaction."""
        if self._range.holding(words).ids:
            return True
        quotes = self._range.standing_rows().filter(meta__quote__text__isnull=False)
        return any(words in fold(text) for text in quotes.values_list("meta__quote__text", flat=True))
