"""The rule-based model behind the demo: deterministic, and honest about being no language model.

It answers from what its context holds, looks for what the context lacks with the tools it is offered, quotes what
it finds with message ids, writes the structured summary, and proposes facts. Each rule is in a module of its own;
this one says in which order they are tried.
"""

import json
from typing import Any

from llm.emulator.mind import phrases
from llm.emulator.mind.facts import propose_facts, wants_facts
from llm.emulator.mind.judging import judge_facts, wants_verdicts
from llm.emulator.mind.phrases import quote, say
from llm.emulator.mind.reading import Conversation, read
from llm.emulator.mind.recall import recall
from llm.emulator.mind.schemas import fill
from llm.emulator.mind.smalltalk import calculate, greet, tell_time
from llm.emulator.mind.summary import summarize, wants_summary
from llm.emulator.mind.tool_requests import forced_call, report_results, request_tool
from llm.emulator.mind.words import is_chinese, is_question, sentences, shorten
from llm.emulator.request_shape import MessagesRequest

QUOTE_MAX_CHARS = 200


def answer(request: MessagesRequest) -> list[dict[str, Any] | str]:
    """The blocks of an answer to `request`, in the form that scripts use.

    The first is a thinking block that names the rule; it goes out only where thinking is on.
    """
    conversation = read(request)
    blocks, rule = _apply_rules(conversation)
    return [{"type": "thinking", "thinking": f"By rule: {rule}."}, *blocks]


def _apply_rules(conversation: Conversation) -> tuple[list[Any], str]:
    """(blocks, the rule that was applied)."""
    asked = conversation.asked
    chinese = is_chinese(asked)
    if wants_facts(conversation):
        return propose_facts(conversation, chinese)
    if wants_verdicts(conversation):
        return judge_facts(conversation)
    if wants_summary(conversation):
        return summarize(conversation)
    if conversation.request.output_format is not None:
        value = fill(conversation.request.output_format["schema"], shorten(asked, QUOTE_MAX_CHARS))
        return [json.dumps(value, ensure_ascii=False)], "the answer has a JSON schema"
    reply = forced_call(conversation, chinese) or report_results(conversation, chinese)
    if reply is not None:
        return reply
    if not conversation.calls:
        early = _answer_at_once(conversation, chinese)
        if early is not None:
            return early
    return recall(conversation, chinese)


def _answer_at_once(conversation: Conversation, chinese: bool) -> tuple[list[Any], str] | None:
    """Everything that needs no search; None for a question that does."""
    asked = conversation.asked
    if conversation.asked_by_framework and not asked.startswith("Task from"):
        return [say(phrases.TASK_DONE, chinese, quote=asked)], "the framework brings news"
    words = greet(conversation, chinese)
    if words is not None:
        return [words], "a greeting, thanks, or a question about the model itself"
    requested = request_tool(conversation, chinese)
    if requested is not None:
        return requested
    words = calculate(asked, chinese)
    if words is not None:
        return [words], "a sum"
    words = tell_time(conversation, chinese)
    if words is not None:
        return [words], "the time note of the context"
    if any(is_question(sentence) for sentence in sentences(asked)):
        return None
    first = quote(shorten(asked, QUOTE_MAX_CHARS), chinese)
    return [say(phrases.NOTED, chinese, quote=first)], "a statement"
