"""Remembering because the person asked for it in so many words: where they asked is the evidence, which is a message of
theirs, or what they answered to a question card after it."""

import re
from collections.abc import Sequence
from typing import Any

from django.db import transaction

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from agent.registry import ToolContext
from memory.claims import Claim
from memory.fact_arguments import draft_of, fact_id_of
from memory.fact_rows import lock_threads_and_facts
from memory.models import Fact, FactEvidence
from memory.refusals import FactRefused
from memory.writing import Outcome, write_fact
from threads import lexical
from threads.models import Message, Thread
from threads.search_range import standing
from threads.transcript import lock_thread

# Words with which people ask for it.
_ASKS = re.compile(
    r"(?i)\b(remember|memori[sz]e|note|keep in mind|(don't|do not) forget|save|store|(write|put) (it|that|this) down)\b"
    r"|记住|记下|记得|记着|记一下|记录|别忘|不要忘|保存"
)


def remember(context: ToolContext, arguments: dict[str, Any]) -> str:
    """Write one fact at the level of the conversation that calls. Returns what to tell the model. Raises FactRefused,
    LeaseLost, ThreadGone."""
    with transaction.atomic():
        # First, so that the conversation is not held while other conversations' facts are written.
        lock_threads_and_facts(context.owner_id, {context.thread_id})
        thread = lock_thread(context.thread_id, context.token)
        asking = ToolCall.objects.values_list("message_id", flat=True).get(pk=context.call_id)
        draft = draft_of(arguments)
        said = _said_last(thread, asking)
        if not said:
            raise FactRefused("The person said nothing in this conversation, so nothing was asked to be remembered.")
        replaces = fact_id_of(arguments["replaces"]) if "replaces" in arguments else None
        written = write_fact(
            context.owner_id,
            draft,
            [Claim(FactEvidence.Kind.MAX_STATED, message_id=row.pk) for row in _holding(said, draft.text)],
            writer=Fact.Writer.REMEMBER,
            thread=thread,
            replaces=replaces,
            reason="The person asked for it." if replaces is not None else "",
            within=thread,
        )
    if written.outcome == Outcome.MORE_EVIDENCE:
        return f"This was remembered already, as fact f:{written.fact.pk}; this message was added as evidence."
    return f"Remembered as fact f:{written.fact.pk}."


def _said_last(thread: Thread, asking: int) -> list[Message]:
    """The newest message of the person's before the row that calls, and what they answered to question cards since,
    oldest first."""
    rows = Message.objects.filter(standing(), thread=thread, pk__lt=asking).only("pk", "text")
    newest = rows.filter(role=Message.Role.USER).order_by("-pk").first()
    cards = ToolCall.objects.filter(thread=thread, tool=QUESTION_TOOL, status=ToolCall.Status.DONE)
    answers = rows.filter(pk__in=cards.values("result"), pk__gt=0 if newest is None else newest.pk, is_error=False)
    return [*([] if newest is None else [newest]), *answers.order_by("pk")]


def _holding(said: Sequence[Message], text: str) -> list[Message]:
    """Where it was asked for: the newest row that asks in so many words, without one the newest of all; and the answers
    after it that speak of what is to be remembered."""
    asked = max((place for place, row in enumerate(said) if _ASKS.search(row.text)), default=len(said) - 1)
    words = set(lexical.query_tokens(text))
    return [said[asked], *(row for row in said[asked + 1 :] if words & set(lexical.tokens(row.text)))]
