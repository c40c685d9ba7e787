"""Rows that bring old words up again: what a look into the past showed, and the rows that only asked for it.

Found again they would stand before the words that they repeat, each search more of them, so neither search finds them
and no vector is made of them. They stay what they are for everything else: readable by their ids, and searched for
what is to be forgotten.
"""

import json

from django.db.models import Q

LOOKING_BACK = frozenset({"search_memory", "message_context_read", "message_history_read", "coldcontext_query"})
# The key of `Message.meta` that marks such a row, since it was written.
MARK = "looks_back"
SAYS_NEW_WORDS = Q(**{f"meta__{MARK}__isnull": True})


def only_looks_back(wire: str | None) -> bool:
    """Whether a row's content blocks call tools, none but those that look back, and say nothing of their own beside:
    words said before a search are the assistant's, and are found."""
    if wire is None or '"tool_use"' not in wire:
        return False
    blocks = json.loads(wire)
    if any(block.get("type") == "text" and block.get("text", "").strip() for block in blocks):
        return False
    called = [block.get("name") for block in blocks if block.get("type") == "tool_use"]
    return bool(called) and LOOKING_BACK.issuperset(called)
