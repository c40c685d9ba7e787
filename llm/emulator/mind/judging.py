"""Which facts are for memory, judged by rule: not what speaks of work on a machine; what says where a document is is a
pointer."""

import re
from typing import Any

from llm.emulator.mind.reading import Conversation

JUDGE = "judge_facts"
KEEP, OUT_OF_SCOPE, POINTER = "keep", "out-of-scope", "pointer"

_FACT = re.compile(r"^f:(\d+) \[[^\]]*\] (.*)$", re.MULTILINE)
_OUT_OF_SCOPE = re.compile(
    r"\b(?:deploy(?:ed|ment|s)?|commit(?:ted)?|config(?:ured|uration)?|endpoint|api|recipe|reproduc\w+|repair(?:ed)?|"
    r"fixed|workaround|installed|progress|milestone|port \d+|version \d)\b"
    r"|部署|提交|配置|接口|配方|复现|修复|进度|安装|端口",
    re.IGNORECASE,
)
_POINTER = re.compile(
    r"\b(?:see|documented in|described in|stands in|is in)\b.*[\w-]+\.(?:md|txt|pdf|docx?)\b"
    r"|(?:见|在).*\.md",
    re.IGNORECASE,
)


def wants_verdicts(conversation: Conversation) -> bool:
    """Whether facts are to be judged."""
    return JUDGE in conversation.tools and not conversation.calls


def judge_facts(conversation: Conversation) -> tuple[list[Any], str]:
    """One call with a verdict for every fact that the words show. Returns (blocks, rule)."""
    verdicts = [
        {"fact_id": int(number), "verdict": _verdict(text)} for number, text in _FACT.findall(conversation.asked)
    ]
    call = {"type": "tool_use", "name": JUDGE, "input": {"verdicts": verdicts}}
    return [call], f"{len(verdicts)} facts are judged by rule"


def _verdict(text: str) -> str:
    if _POINTER.search(text):
        return POINTER
    return OUT_OF_SCOPE if _OUT_OF_SCOPE.search(text) else KEEP
