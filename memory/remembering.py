"""Remembering because the person asked for it in so many words: the message in which they asked is the evidence."""

from typing import Any

from django.db import transaction

from agent.models import ToolCall
from agent.registry import ToolContext
from memory.claims import Claim
from memory.fact_arguments import draft_of, fact_id_of
from memory.models import Fact, FactEvidence
from memory.refusals import FactRefused
from memory.writing import Outcome, write_fact
from threads.models import Message
from threads.search_range import standing
from threads.transcript import lock_thread


def remember(context: ToolContext, arguments: dict[str, Any]) -> str:
    """Write one fact at the level of the conversation that calls. Returns what to tell the model. Raises FactRefused,
    LeaseLost, ThreadGone."""
    with transaction.atomic():
        thread = lock_thread(context.thread_id, context.token)
        asking = ToolCall.objects.values_list("message_id", flat=True).get(pk=context.call_id)
        said = Message.objects.filter(standing(), thread=thread, role=Message.Role.USER, pk__lt=asking)
        newest = said.order_by("-pk").values_list("pk", flat=True).first()
        if newest is None:
            raise FactRefused("The person said nothing in this conversation, so nothing was asked to be remembered.")
        replaces = fact_id_of(arguments["replaces"]) if "replaces" in arguments else None
        written = write_fact(
            context.owner_id,
            draft_of(arguments),
            [Claim(FactEvidence.Kind.MAX_STATED, message_id=newest)],
            writer=Fact.Writer.REMEMBER,
            thread=thread,
            replaces=replaces,
            reason="The person asked for it." if replaces is not None else "",
            within=thread,
        )
    if written.outcome == Outcome.MORE_EVIDENCE:
        return f"This was remembered already, as fact f:{written.fact.pk}; this message was added as evidence."
    return f"Remembered as fact f:{written.fact.pk}."
