"""Remembering because the person asked for it in so many words: where they asked is the evidence, which is a message of
theirs, or what they answered to a question card after it."""

import re
from typing import Any

from django.db import transaction
from django.db.models import Q

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from agent.registry import ToolContext
from maxclaw.text import head
from memory.asking import sentences
from memory.claims import Claim
from memory.fact_arguments import draft_of, fact_id_of
from memory.fact_rows import lock_threads_and_facts
from memory.models import Fact, FactEvidence
from memory.own_words import own_words
from memory.refusals import FactRefused
from memory.writing import Outcome, write_fact
from threads import lexical
from threads.models import Message, Thread
from threads.search_range import standing
from threads.transcript import fold, lock_thread

# Who asked longer ago asks again, or is read by whoever reads conversations for memory.
LOOKED_BACK = 50
# Of what they said after they asked so much may answer what was asked back.
ANSWERS_MAX = 5

# Words with which people ask for it, and what has such words and asks for nothing: "do you remember", 我记得.
_ASKS = re.compile(
    r"(?i)\b(remember|memori[sz]e|(keep|bear) in mind|(don't|do not|never) forget|for the record"
    r"|(write|jot|note) (it|this|that|them|these|those|my|me|the|.{0,40}) ?down|(put|take) (it|this|that|them) down"
    r"|(make|take) (a )?note"
    r"|note (to self|that|this|it|down|my|:)|(save|store|record|log|keep) (this|that|it|my)\b"
    r"|(save|store|add|put|commit|keep)\b.{0,60}\b(memory|for later|for next time))"
    r"|记住|记下|记得|记着|记一下|记到|记录(?!日志|错误|数据|[到在](?!案|.{0,8}记忆(?![卡棒体])))|别忘|不要忘|勿忘|牢记"
    r"|保存(?!文件|图片|代码|[到成为](?!.{0,8}记忆(?![卡棒体])))|备忘|(?<!保)存[下到进]|写下来"
)
_ASKS_NOT = re.compile(
    r"(?i)\b(do|did|don't|didn't|can't|cannot|couldn't|if) (you|i|we|they)( still| even)? remember"
    r"|\b(i|we|they|he|she)( (still|also|only|don't|do not|can't|cannot|can|could|hardly|barely|didn't))* remember"
    r"|\b(don't|do not|never|no need to|needn't|stop|without) (remember|memori[sz]|sav|stor|not|record|keep)"
    r"|^remember (me|him|her|us|them|when|how|that time)\b[^.!]*\?$"
    r"|不记得|记得吗|还记得|记不[得住清]|(我|我们|他|她|他们)(还|都|只|也)?记得|(别|不要|不用|无需|不必)(再)?(记|保存|存)"
)
# What plainly asks, so that the rest may speak of files and of how and where: "Remember to keep it short".
_ASKS_PLAINLY = re.compile(
    r"(?i)(?:^|[,;:]\s*|\b(?:please|and|also|but|always|just|you|you to) )"
    r"(remember|memori[sz]e|(keep|bear) in mind|(don't|do not|never) forget)\b|记住|别忘"
)
# To be put where a program or a person reads it, or kept as it is; or asked how that is done.
_ASKS_ELSEWISE = re.compile(
    r"(?i)^(how|where|why|should|shall|when (do|did|should|can|will))\b"
    r"|\b(write|put|note|log|save|store|record|keep|add|take)\b.{0,60}\b(to|in|into|on|as|under) "
    r"(the |an? |our |your )?(\w+ )?(console|files?|database|db|disk|table|logs?|readme|docs?|folder|repo|server"
    r"|clipboard|cache|code|git)\b"
    r"|\b(save|write|store)\b.{0,60}\.(txt|md|py|json|csv|log)\b|\bkeep (the )?memory\b"
    r"|\bkeep (this|that|it) (short|brief|simple|concise|up|going|clean|small)\b"
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
        replaces = fact_id_of(arguments["replaces"]) if "replaces" in arguments else None
        cited = _asked_for(thread, asking, draft.text, arguments.get("asked_with", ""))
        written = write_fact(
            context.owner_id,
            draft,
            [Claim(FactEvidence.Kind.MAX_STATED, message_id=row.pk) for row in cited],
            writer=Fact.Writer.REMEMBER,
            thread=thread,
            replaces=replaces,
            reason="The person asked for it." if replaces is not None else "",
            within=thread,
        )
    if written.outcome == Outcome.MORE_EVIDENCE:
        return f"This was remembered already, as fact f:{written.fact.pk}; this message was added as evidence."
    return f"Remembered as fact f:{written.fact.pk}."


def asks_to_remember(words: str) -> bool:
    """Whether somebody asks in so many words, English or Chinese, for something to be remembered."""
    return any(
        _ASKS.search(one)
        and not _ASKS_NOT.search(one)
        and (_ASKS_PLAINLY.search(one) or not _ASKS_ELSEWISE.search(one))
        for one in sentences(words)
    )


def _asked_for(thread: Thread, asking: int, text: str, asked_with: str) -> list[Message]:
    """Where it was asked for: the row that the model points at by its words, else the newest of those since the
    person's newest message that asks for it; and what they said after it that speaks of what is to be remembered.
    Raises FactRefused where nobody asked."""
    said = _said(thread, asking)
    if not said:
        raise FactRefused("The person said nothing in this conversation, so nothing was asked to be remembered.")
    if asked_with.strip():
        sought = " ".join(fold(asked_with).split())
        places = [place for place, row in enumerate(said) if sought in " ".join(fold(own_words(row.text)).split())]
        if not places:
            raise FactRefused(
                f"The person's own words here hold no “{head(asked_with, 60)}”: give in asked_with, word for word, "
                "what they asked with, or leave it."
            )
        places = [place for place in places if _carries(said[place].text, text)]
        if not places:
            raise FactRefused(
                f"Where the person said “{head(asked_with, 60)}”, they asked for nothing to be remembered, nor said "
                "anything of this. Write what they asked for in words of theirs."
            )
    else:
        newest = max((place for place, row in enumerate(said) if row.role == Message.Role.USER), default=0)
        places = [place for place in range(newest, len(said)) if asks_to_remember(said[place].text)]
        if not places:
            raise FactRefused(
                "The person did not ask for it in so many words in their newest message, nor in an answer to a card "
                "since. Where they asked in other words, or before, give these in asked_with, word for word; else "
                "leave it."
            )
    words = set(lexical.query_tokens(text))
    asked, after = said[places[-1]], said[places[-1] + 1 :][:ANSWERS_MAX]
    return [asked, *(row for row in after if words & set(lexical.tokens(row.text)))]


def _carries(said: str, text: str) -> bool:
    """Whether words ask for something to be remembered, in so many words, or speak of what is to be remembered."""
    return asks_to_remember(said) or bool(set(lexical.query_tokens(text)) & set(lexical.tokens(own_words(said))))


def _said(thread: Thread, asking: int) -> list[Message]:
    """The person's last messages before the row that calls, and what they answered to question cards, oldest first."""
    cards = ToolCall.objects.filter(thread=thread, tool=QUESTION_TOOL, status=ToolCall.Status.DONE)
    theirs = Q(role=Message.Role.USER) | Q(pk__in=cards.values("result"), is_error=False)
    rows = Message.objects.filter(standing(), theirs, thread=thread, pk__lt=asking).only("pk", "role", "text")
    return list(rows.order_by("-pk")[:LOOKED_BACK])[::-1]
