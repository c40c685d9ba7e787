"""A person's own words, without what they pasted or quote, as far as a sign tells.

Signs are fences, marks of quotation, blocks in a tag, the heads of mails that are passed on and the stamps of chats
that were copied. What stands below the head of a mail is taken for the mail's, to the end: in doubt it is not theirs.
What is pasted without any sign reads like their own, and no rule tells it from that: it counts as said by them, and is
put right where they see what is remembered.
"""

import re
from bisect import bisect_right

_FENCED = re.compile(r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)", re.DOTALL)
_OPENS = re.compile(r"^[ \t]*<(?P<tag>[A-Za-z][\w-]{0,40})(?:\s[^<>\n]{0,400})?>[ \t]*\n", re.MULTILINE)
_CLOSES = re.compile(r"^[ \t]*</(?P<tag>[A-Za-z][\w-]{0,40})>", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_MAIL = re.compile(
    r"^[ \t]*(?:"
    r"-{2,20}[ \t]*(?:original message|forwarded (?:message|by)|原始邮件|转发的?邮件|转发的消息)\b"
    r"|begin forwarded message[:：]"
    r"|(?:from|发件人)[:：][^\n]+\n(?:[^\n]*\n){0,3}?[ \t]*(?:sent|subject|发送时间|发件时间|主题)[:：]"
    r"|on\b[^\n]{5,150}\bwrote[:：][ \t]*$"
    r"|在?[^\n]{4,120}写道[:：][ \t]*$"
    r").*\Z",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_STAMPED_LINE = re.compile(
    r"^[ \t]*(?:\[[^\]\n]{0,30}\d{1,2}:\d{2}[^\]\n]{0,30}\]"
    r"|\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?[ \t]{1,3}\d{1,2}:\d{2}(?::\d{2})?(?:[ \t]?[AaPp][Mm])?[ \t]{1,3}-)"
    r"[ \t]*[^:：\n]{1,60}[:：].*$",
    re.MULTILINE,
)


def own_words(text: str) -> str:
    """The text without what was pasted or quoted."""
    text = _MAIL.sub("\n", _without_blocks(_FENCED.sub("\n", text)))
    return _STAMPED_LINE.sub("", _QUOTED_LINE.sub("", text)).strip()


def _without_blocks(text: str) -> str:
    """The text without blocks whose tags stand on lines of their own."""
    ends: dict[str, list[int]] = {}
    for closed in _CLOSES.finditer(text):
        ends.setdefault(closed["tag"], []).append(closed.end())
    kept: list[str] = []
    place = 0
    for opened in _OPENS.finditer(text):
        of_tag = ends.get(opened["tag"], [])
        after = bisect_right(of_tag, opened.end())
        if opened.start() >= place and after < len(of_tag):
            kept += [text[place : opened.start()], "\n"]
            place = of_tag[after]
    return "".join([*kept, text[place:]])
