"""Relative times in words become absolute dates, so that a fact says the same whenever it is read.

Days are those of the person's own time zone, counted on the calendar, so that daylight saving
changes none. Weeks begin on Monday. What names no day for certain ("recently", "几天前") stays as it is.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ONE_TO_TWELVE = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: number for number, word in enumerate(_ONE_TO_TWELVE.split(" "), 1)} | {
    "a": 1,
    "an": 1,
    "a couple of": 2,
}
_DIGITS = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_COUNT = rf"(\d{{1,4}}|a couple of|an?|{_ONE_TO_TWELVE.replace(' ', '|')})"
_COUNT_CHINESE = r"(\d{1,4}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
_DAY_CHINESE = "[一二三四五六日天]"

Rendered = Callable[[re.Match[str], date], str | None]


def absolute(text: str, said: datetime, zone: ZoneInfo) -> str:
    """The text with its relative times as dates, seen from when it was said (aware) in the person's zone. A day becomes
    2023-05-07, a month 2023-05, a year 2023, a week "the week of" its Monday."""
    today = said.astimezone(zone).date()
    for pattern, rendered in _RULES:
        text = pattern.sub(partial(_replace, rendered, today), text)
    return text


def _replace(rendered: Rendered, today: date, match: re.Match[str]) -> str:
    try:
        result = rendered(match, today)
    except (OverflowError, ValueError):  # before the year 1, or after 9999
        result = None
    return match.group() if result is None else result


def _day(shift: int, form: str = "{}") -> Rendered:
    return lambda _match, today: form.format((today + timedelta(days=shift)).isoformat())


def _monday(today: date, weeks: int) -> date:
    return today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)


def _week(weeks: int, form: str, days: int = 0) -> Rendered:
    return lambda _match, today: form.format((_monday(today, weeks) + timedelta(days=days)).isoformat())


def _months(today: date, months: int) -> date:
    index = today.year * 12 + today.month - 1 + months
    year, month = divmod(index, 12)
    return date(year, month + 1, min(today.day, monthrange(year, month + 1)[1]))


def _month(months: int) -> Rendered:
    return lambda _match, today: f"{_months(today, months):%Y-%m}"


def _year(years: int, form: str = "{}") -> Rendered:
    return lambda _match, today: form.format(date(today.year + years, 1, 1).year)


def _number(word: str) -> int:
    word = " ".join(word.lower().split())
    if word.isdecimal():
        return int(word)
    if word in _NUMBERS:
        return _NUMBERS[word]
    tens, is_ten, ones = word.partition("十")
    if not is_ten:
        return _DIGITS[word]
    return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)


def _counted(sign: int) -> Rendered:
    """N days, weeks, months or years before or after: groups 1 (how many) and 2 (of what)."""

    def rendered(match: re.Match[str], today: date) -> str:
        count, unit = sign * _number(match.group(1)), match.group(2).lower().rstrip("s")
        if unit in ("day", "天", "日"):
            return (today + timedelta(days=count)).isoformat()
        if unit in ("week", "周", "星期", "礼拜"):
            return (today + timedelta(weeks=count)).isoformat()
        if unit in ("month", "月"):
            return f"{_months(today, count):%Y-%m}"
        return str(date(today.year + count, 1, 1).year)

    return rendered


def _weekday(match: re.Match[str], today: date) -> str:
    """ "last Friday": the nearest before today. "next" and "this" Friday: of next week, of this week."""
    which, day = match.group(1).lower(), _WEEKDAYS.index(match.group(2).lower())
    if which in ("last", "past"):
        return (today - timedelta(days=(today.weekday() - day - 1) % 7 + 1)).isoformat()
    return (_monday(today, which == "next") + timedelta(days=day)).isoformat()


def _weekday_chinese(match: re.Match[str], today: date) -> str:
    weeks = {"上": -1, "下": 1}.get(match.group(1)[0], 0) * len(match.group(1).rstrip("个"))
    day = "一二三四五六日天".index(match.group(2))
    return (_monday(today, weeks) + timedelta(days=min(day, 6))).isoformat()


def _english(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![\w-]){pattern}(?![\w-])")


_UNITS = r"(days?|weeks?|months?|years?)"
_WEEK_CHINESE = "(?:周|星期|礼拜)"
# In order: the longer expression before the one that it holds.
_RULES: list[tuple[re.Pattern[str], Rendered]] = [
    (_english(r"the\s+day\s+before\s+yesterday"), _day(-2)),
    (_english(r"the\s+day\s+after\s+tomorrow"), _day(2)),
    (_english(r"yesterday\s+(?:night|evening)|last\s+night"), _day(-1, "the night of {}")),
    (_english(r"yesterday"), _day(-1)),
    (_english(r"tomorrow"), _day(1)),
    (_english(r"tonight"), _day(0, "the night of {}")),
    (_english(r"this\s+(?:morning|afternoon|evening)"), _day(0)),
    (_english(r"today"), _day(0)),
    (_english(rf"{_COUNT}\s+{_UNITS}\s+(?:ago|earlier)"), _counted(-1)),
    (_english(rf"{_COUNT}\s+{_UNITS}\s+from\s+now"), _counted(1)),
    (
        _english(rf"(?<!with)(?<!with )in\s+{_COUNT}\s+{_UNITS}(?!\s+(?:of|time\s+zones?))(?:\s+time|'\s+time)?"),
        _counted(1),
    ),
    (_english(rf"(last|past|next|this)\s+({'|'.join(_WEEKDAYS)})"), _weekday),
    (_english(r"last\s+weekend"), _week(-1, "the weekend of {}", 5)),
    (_english(r"this\s+weekend"), _week(0, "the weekend of {}", 5)),
    (_english(r"next\s+weekend"), _week(1, "the weekend of {}", 5)),
    (_english(r"last\s+week"), _week(-1, "the week of {}")),
    (_english(r"this\s+week"), _week(0, "the week of {}")),
    (_english(r"next\s+week"), _week(1, "the week of {}")),
    (_english(r"last\s+month"), _month(-1)),
    (_english(r"this\s+month"), _month(0)),
    (_english(r"next\s+month"), _month(1)),
    (_english(r"last\s+year"), _year(-1)),
    (_english(r"this\s+year"), _year(0)),
    (_english(r"next\s+year"), _year(1)),
    (re.compile("大前天"), _day(-3)),
    (re.compile("大后天"), _day(3)),
    # "以前天天" and "以后天天" hold the signs of days, and no day.
    (re.compile("(?<![以之从先])前天(?!天)"), _day(-2)),
    (re.compile("(?<![以之今往然随最先])后天(?!天)"), _day(2)),
    (re.compile("昨[晚夜]"), _day(-1, "{}晚上")),
    (re.compile("昨[天日]"), _day(-1)),
    (re.compile("今[晚夜]"), _day(0, "{}晚上")),
    (re.compile("今[天日]|今早"), _day(0)),
    (re.compile("明晚"), _day(1, "{}晚上")),
    (re.compile("明[天日]|明早"), _day(1)),
    (re.compile(rf"(?<![几数\d.十]){_COUNT_CHINESE}\s*个?(天|日|周|星期|礼拜|月|年)(?:以|之)?前"), _counted(-1)),
    (re.compile(rf"(?<![几数\d.十]){_COUNT_CHINESE}\s*个?(天|日|周|星期|礼拜|月|年)(?:以|之)?后"), _counted(1)),
    (re.compile(rf"(上上个?|上个?|下下个?|下个?|这个?|本){_WEEK_CHINESE}({_DAY_CHINESE})"), _weekday_chinese),
    (re.compile(rf"上个?{_WEEK_CHINESE}末"), _week(-1, "{}那个周末", 5)),
    (re.compile(rf"(?:这个?|本){_WEEK_CHINESE}末"), _week(0, "{}那个周末", 5)),
    (re.compile(rf"下个?{_WEEK_CHINESE}末"), _week(1, "{}那个周末", 5)),
    (re.compile(rf"上上个?{_WEEK_CHINESE}"), _week(-2, "{}那一周")),
    (re.compile(rf"下下个?{_WEEK_CHINESE}"), _week(2, "{}那一周")),
    (re.compile(rf"(?<!早)(?<!晚)上个?{_WEEK_CHINESE}"), _week(-1, "{}那一周")),
    (re.compile(rf"(?<!一)下个?{_WEEK_CHINESE}"), _week(1, "{}那一周")),
    (re.compile(rf"(?:这个?|本){_WEEK_CHINESE}"), _week(0, "{}那一周")),
    (re.compile("上上个月"), _month(-2)),
    (re.compile("上个?月"), _month(-1)),
    (re.compile("下下个月"), _month(2)),
    (re.compile("下个?月"), _month(1)),
    (re.compile("(?:这个|本)月"), _month(0)),
    (re.compile("大前年"), _year(-3, "{}年")),
    (re.compile("(?<![以之])前年"), _year(-2, "{}年")),
    (re.compile("去年"), _year(-1, "{}年")),
    (re.compile("今年"), _year(0, "{}年")),
    (re.compile("明年"), _year(1, "{}年")),
    (re.compile("(?<![以之今往随])后年"), _year(2, "{}年")),
]
