"""Greetings, who is speaking, the time that the context names, and small sums."""

import ast
import operator
import re
from collections.abc import Callable

from llm.emulator.mind import phrases
from llm.emulator.mind.phrases import join, say
from llm.emulator.mind.reading import Conversation
from llm.emulator.mind.words import shorten

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good "
    r"(?:morning|afternoon|evening)|greetings|你好|您好|嗨|早上好|下午好|晚上好)\W*(?:there|all|max\w*)?\W*$",
    re.IGNORECASE,
)
_THANKS = re.compile(r"^\W*(?:thanks?|thank you|thx|cheers|谢谢|多谢|感谢)\b[^?？]{0,40}$|^谢谢|^多谢", re.IGNORECASE)
_GOODBYE = re.compile(
    r"^\W*(?:bye|goodbye|see you|good night|再见|拜拜|晚安)\b[^?？]{0,20}$|^再见|^晚安", re.IGNORECASE
)
_IDENTITY = re.compile(
    r"\bwho are you\b|\bwhat are you\b|\bare you (?:an? )?(?:ai|robot|bot|human|model|language model|llm|real)\b|"
    r"\bwhich model\b|\bwhat can you do\b|\bintroduce yourself\b|你是谁|你是什么|介绍一下?你自己|你能做什么|你会什么",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\bwhat(?:'s| is)? (?:the )?(?:time|date|day)\b(?! (?:of|for|did|when|was))|\bwhat (?:time|day|date) is it\b|"
    r"\btoday's date\b|几点|今天几号|今天星期|今天是什么日子|现在.{0,4}时间|今天.{0,2}日期",
    re.IGNORECASE,
)
_TIME_NOTE = re.compile(
    r"^\W*((?:now|time|date|current "
    r"(?:time|date)|opened|现在|时间|当前时间)[^\n:：]{0,20}[:：][^\n]*\d{4}-\d{2}-\d{2}[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_SUM = re.compile(r"[-+]?[\d(][\d\s.,()+\-*/×÷^%]*[\d)]")
_SUM_WORDS = re.compile(
    r"\b(?:what(?:'s| is)|how much is|calculate|compute|work out|evaluate)\b|[=＝?？]\s*$|等于|多少|计算|算一下",
    re.IGNORECASE,
)
_NO_SUM = re.compile(r"^\d{4}-\d{1,2}(?:-\d{1,2})?$")

_OPERATORS: dict[type[ast.operator] | type[ast.unaryop], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_NUMBER_MAX = 1e15
_POWER_MAX = 64


def greet(conversation: Conversation, chinese: bool) -> str | None:
    """A greeting back, with the introduction the first time; None when this is no greeting."""
    words = conversation.asked.strip()
    introduction = [say(phrases.INTRODUCTION, chinese), say(phrases.ABILITIES, chinese)]
    if _GREETING.match(words):
        hello = say(phrases.HELLO, chinese)
        if not conversation.is_first:
            return hello
        return join([hello, *introduction], chinese)
    if _IDENTITY.search(words):
        return join(introduction, chinese)
    if _THANKS.match(words):
        return say(phrases.WELCOME, chinese)
    if _GOODBYE.match(words):
        return say(phrases.GOODBYE, chinese)
    return None


def tell_time(conversation: Conversation, chinese: bool) -> str | None:
    """What the newest time note of the context says; None when nobody asks for the time."""
    if not _TIME.search(conversation.asked):
        return None
    texts = [*conversation.notes, *(row.text for row in reversed(conversation.earlier) if row.role == "framework")]
    for text in texts:
        found = _TIME_NOTE.findall(text)
        if found:
            return say(phrases.TIME, chinese, note=shorten(found[-1], 120))
    return say(phrases.NO_TIME, chinese)


def calculate(asked: str, chinese: bool) -> str | None:
    """The value of a sum in `asked`; None when there is none."""
    found = max(_SUM.findall(asked), key=len, default="").strip()
    if not re.search(r"\d\s*[+\-*/×÷^%]\s*[-+(\d]", found) or _NO_SUM.match(found):
        return None
    if not _SUM_WORDS.search(asked) and shorten(asked.strip(" =?？。."), 200) != shorten(found, 200):
        return None
    plain = found.replace("×", "*").replace("÷", "/").replace("^", "**").replace(",", "")
    try:
        value = _evaluate(ast.parse(plain, mode="eval").body)
    except ZeroDivisionError:
        reason = "除数为零" if chinese else "division by zero"
        return say(phrases.NO_SUM, chinese, expression=found, reason=reason)
    except (SyntaxError, ValueError, OverflowError):
        return None
    shown = f"{value:,.10g}" if abs(value) < _NUMBER_MAX else f"{value:.10g}"
    if float(value).is_integer() and abs(value) < _NUMBER_MAX:
        shown = f"{int(value):,}"
    return say(phrases.SUM, chinese, expression=found, value=shown)


def _evaluate(node: ast.expr) -> float:
    """Value of a tree of numbers and operators. Raises ValueError for anything else and for numbers too large."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.Pow) and (abs(right) > _POWER_MAX or abs(left) > _NUMBER_MAX):
            raise ValueError("too large")
        value = _OPERATORS[type(node.op)](left, right)
        if isinstance(value, complex) or abs(value) > 1e300:
            raise ValueError("no number that can be shown")
        return value
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.operand))
    raise ValueError("no sum")
