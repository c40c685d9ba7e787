"""Words that ask for a tool: a question card, a task, something to remember, a tool by its name; and what came back."""

import json
import re
from typing import Any

from llm.emulator.mind import phrases
from llm.emulator.mind.phrases import quote, say
from llm.emulator.mind.reading import Conversation
from llm.emulator.mind.recall import HISTORY, SEARCH
from llm.emulator.mind.schemas import fill
from llm.emulator.mind.words import shorten

ASK = "ask_user_question"
DISPATCH = "dispatch_task"
REMEMBER = "remember"
TITLE_MAX_CHARS = 60
OPTION_MAX_CHARS = 120
OPTIONS_MAX = 6
RESULT_MAX_CHARS = 1_200

_ASK = re.compile(r"\bask me\b[ ,:]*(.*)|(?:请)?问(?:一下)?我[ ，,:：]*(.*)", re.IGNORECASE | re.DOTALL)
_DISPATCH = re.compile(
    r"\b(?:start|dispatch|launch|run|create)\s+(?:a |an |another )?(?:new |background |separate )?task\b"
    r"(?:\s+(?:to|that|for))?[\s:：,-]*(.+)"
    r"|(?:派|启动|开始|新建|创建|发起)(?:一个|个)?(?:后台)?任务[\s:：，,]*(?:去)?(.+)",
    re.IGNORECASE | re.DOTALL,
)
_REMEMBER = re.compile(
    r"^\W*(?:please )?remember(?: that)?[\s:,]+(.+)|^\W*(?:请|帮我)?记住[\s:：，,]*(.+)", re.I | re.DOTALL
)
_BETWEEN = re.compile(r"\bbetween (.+?) and (.+?)[.?!]*$", re.IGNORECASE)
_SPLIT = re.compile(r"\s*(?:,|，|、|;|；|\bor\b|还是|或者?)\s*")
_PERSON = {"i": "you", "my": "your", "mine": "yours", "me": "you", "am": "are", "i'm": "you are", "myself": "yourself"}

Reply = tuple[list[Any], str]


def request_tool(conversation: Conversation, chinese: bool) -> Reply | None:
    """The call that the newest words ask for, with a sentence before it; None when they ask for none.

    Returns (blocks, rule).
    """
    named = _by_name(conversation)
    if named:
        return named
    for pattern, tool, build in ((_ASK, ASK, _question), (_DISPATCH, DISPATCH, _task), (_REMEMBER, REMEMBER, _fact)):
        found = pattern.search(conversation.asked)
        words = next((group for group in found.groups() if group and group.strip()), None) if found else None
        if words is None:
            continue
        if tool not in conversation.tools:
            if tool == REMEMBER:
                return None
            return [say(phrases.NO_TOOL, chinese, tool=tool)], f"the words ask for {tool}, which is not offered"
        arguments = build(words.strip(), conversation, chinese)
        lead = [say(phrases.ASKING, chinese)] if tool == ASK else []
        return [*lead, {"type": "tool_use", "name": tool, "input": arguments}], f"the words ask for {tool}"
    return None


def _by_name(conversation: Conversation) -> Reply | None:
    """`call NAME {...}`: the tool of that name with that input."""
    found = re.search(
        r"\b(?:call|use)\s+(?:the tool\s+)?`?([\w-]+)`?\s*(\{.*\})?", conversation.asked, re.I | re.DOTALL
    )
    if not found or found.group(1) not in conversation.tools:
        return None
    name = found.group(1)
    try:
        arguments = json.loads(found.group(2)) if found.group(2) else None
    except ValueError:
        arguments = None
    if arguments is None:
        arguments = fill(conversation.tools[name], shorten(conversation.asked, 200))
    return [{"type": "tool_use", "name": name, "input": arguments}], f"the words name the tool {name}"


def _question(words: str, conversation: Conversation, chinese: bool) -> dict[str, Any]:
    """Question and options of a card, from the words behind `ask me`."""
    head, options = words, []
    lead, colon, listed = words.partition("：") if "：" in words else words.partition(":")
    between = _BETWEEN.search(words)
    if between:
        options = [between.group(1), between.group(2)]
    elif colon and listed.strip():
        head, options = lead, _SPLIT.split(listed.strip())
    elif re.match(r"(?:whether|if)\b|是否|要不要", words, re.IGNORECASE):
        options = ["是", "否"] if chinese else ["Yes", "No"]
    elif chinese and "还是" in words:
        options = _SPLIT.split(re.sub(r"^.*?(?:要|想|选|喝|吃|用|去)", "", words))
    cleaned = [shorten(option.strip(" .?!。？！\"'"), OPTION_MAX_CHARS) for option in options]
    question = _turn_around(head.strip(" .?!。？！"), chinese)
    arguments = {"question": question, "options": [option for option in cleaned if option][:OPTIONS_MAX]}
    if not arguments["options"] and "options" not in conversation.tools[ASK].get("required", ()):
        del arguments["options"]
    return arguments


def _turn_around(words: str, chinese: bool) -> str:
    """The question as it is put to the person: `which one I want` becomes `Which one you want?`."""
    if chinese:
        return words.replace("我", "你") + "？"
    turned = " ".join(_PERSON.get(word.lower(), word) for word in words.split())
    return f"{turned[:1].upper()}{turned[1:]}?"


def _task(words: str, conversation: Conversation, chinese: bool) -> dict[str, Any]:
    return {"title": shorten(words, TITLE_MAX_CHARS), "instructions": words}


def _fact(words: str, conversation: Conversation, chinese: bool) -> dict[str, Any]:
    known = {"text": words, "fact": words, "content": words, "kind": "about-user", "aspect": "fact", "tone": "remark"}
    known["applies_to"] = shorten(words, TITLE_MAX_CHARS)
    filled: dict[str, Any] = fill(conversation.tools[REMEMBER], words, known)
    return filled


def report_results(conversation: Conversation, chinese: bool) -> Reply | None:
    """What the tools of this exchange gave; None when the last of them was a search, which recall goes on with."""
    if not conversation.calls or conversation.calls[-1].name in (SEARCH, HISTORY):
        return None
    latest = [call for call in conversation.calls if call.name not in (SEARCH, HISTORY)]
    lines = []
    for call in latest:
        words = call.result.text.strip()
        short = words if len(words) <= RESULT_MAX_CHARS else words[:RESULT_MAX_CHARS] + "…"
        if call.result.is_error:
            lines.append(say(phrases.TOOL_FAILED, chinese, tool=call.name, quote=short))
        elif call.name == ASK:
            lines.append(say(phrases.CHOSEN, chinese, quote=quote(short, chinese)))
        elif call.name == DISPATCH:
            lines.append(say(phrases.STARTED, chinese, quote=short))
        elif call.name == REMEMBER:
            lines.append(say(phrases.REMEMBERED, chinese, quote=short))
        else:
            lines.append(say(phrases.TOOL_RESULT, chinese, tool=call.name, quote=short))
    return ["\n".join(lines)], "the tools have answered: say what they gave"


def forced_call(conversation: Conversation, chinese: bool) -> Reply | None:
    """The call that `tool_choice` demands, its input filled by the schema; None when it demands none."""
    choice = conversation.request.tool_choice
    if choice["type"] not in ("any", "tool"):
        return None
    asked_for = request_tool(conversation, chinese)
    calls = [block for block in asked_for[0] if isinstance(block, dict)] if asked_for else []
    if calls and choice["name"] in (None, calls[0]["name"]):
        return calls, "a tool is demanded, and the words ask for this one"
    name = choice["name"] or next(iter(conversation.tools))
    arguments = fill(conversation.tools[name], shorten(conversation.asked, 200))
    return [{"type": "tool_use", "name": name, "input": arguments}], f"tool_choice demands {name}"
