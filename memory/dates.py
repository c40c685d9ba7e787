"""Relative times in words become absolute dates, so that a fact says the same whenever it is read.

Days are those of the person's own time zone, counted on the calendar, so that daylight saving
changes none. Weeks begin on Monday. What names no day for certain ("recently", "几天前") stays as it is, and so
does what may be a length of time ("learned it in three months", "工作三年后") or a name ("USA Today", "今日头条"),
and the whole of what is understood in part alone ("a week ago Friday"): a time that is left relative is vague, a wrong
date is false. The line of a fact has the day of its words beside it.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from accounts.days import local
from memory.counts import COUNT, COUNT_CHINESE, COUNTED, NUMBER_CHINESE, UP_TO_TWENTY, number

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Not what only begins as a day of the week does: 上周一直, 上周五个人, 上周三十次, 上周天气, 这周日本.
_DAY_CHINESE = (
    # A digit counts what follows more often than not: 上周3次, 上周3斤.
    "(?:[1-6](?=[。！？；;\\s前早晚去来在要我你您他她]|[，,](?!\\d)|[上下中]午|开会|$)|[一二三四五六](?![个次天人名年月周号位件篇只条场节遍回种款台本份部张间家岁些十百千万一二两三四五六七八九])"
    "(?<!一(?=[直样起定共般度边路连整再向]))(?<!二(?=手))|日(?![本语元常程志报子期记])|天(?![气真空天]))"
)

Rendered = Callable[[re.Match[str], date], str | None]
# When a relative time may have been said, for the time as it stands: one moment at least, each aware.
Said = Callable[[str], Iterable[datetime]]


class Ambiguous(Exception):
    """A relative time that is another date seen from each moment at which it may have been said."""

    def __init__(self, expression: str, dates: Sequence[str]) -> None:
        super().__init__(expression)
        self.expression, self.dates = expression, dates


def absolute(text: str, said: datetime | Said, zone: ZoneInfo) -> str:
    """The text with its relative times as dates, seen from when it was said (aware) in the person's zone. A day becomes
    2023-05-07, a month 2023-05, a year 2023, a week "the week of" its Monday. Raises Ambiguous where `said` knows
    several moments and they are no one date."""
    moments = said if callable(said) else lambda _expression: (said,)
    left: list[str] = []
    text = _LEFT.sub(partial(_set_aside, left), text)
    for pattern, rendered in _RULES:
        text = pattern.sub(partial(_replace, rendered, moments, zone), text)
    return _ASIDE.sub(lambda match: left[int(match.group(1))], text) if left else text


def _set_aside(left: list[str], match: re.Match[str]) -> str:
    left.append(match.group())
    return f"\x00{len(left) - 1}\x00"


def around_dates(text: str) -> list[str]:
    """What stands before, between and after the dates in a text."""
    return _DATE.split(text)


def _replace(rendered: Rendered, moments: Said, zone: ZoneInfo, match: re.Match[str]) -> str:
    if _is_name(match):
        return match.group()
    days = dict.fromkeys(local(moment, zone).date() for moment in moments(match.group()))
    results = list(dict.fromkeys(_rendered(rendered, match, day) for day in days))
    if len(results) > 1:
        raise Ambiguous(match.group(), results)
    return _apart(match, results[0])


def _apart(match: re.Match[str], dated: str) -> str:
    """A date with a blank between it and a letter or digit beside it, which in Chinese has none: 昨天3点."""
    if dated == match.group():
        return dated
    before, after = match.string[: match.start()], match.string[match.end() :]
    begins = " " if _RUNS_INTO.match(before[-1:]) and _RUNS_INTO.match(dated) else ""
    ends = " " if _RUNS_INTO.match(dated[-1:]) and _RUNS_INTO.match(after) else ""
    return f"{begins}{dated}{ends}"


def _rendered(rendered: Rendered, match: re.Match[str], today: date) -> str:
    try:
        result = rendered(match, today)
    except (OverflowError, ValueError):  # before the year 1, or after 9999
        result = None
    return match.group() if result is None else result


def _is_name(match: re.Match[str]) -> bool:
    """Whether it is, or is part of, a title: with a capital within a sentence, or the whole of a quotation."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    of_itself = match.group().lower().startswith(_WEEKDAYS)
    if match.group()[0].isupper() and not of_itself and not _SENTENCE_BEGINS.search(before):
        return True
    if before[-1:] and before[-1] in "\"'“‘「『*_" and after[:1] and after[0] in "\"'”’」』*_":
        return True
    return before.rfind("《") > before.rfind("》") or before.rfind("〈") > before.rfind("〉")


def _sentence_of(match: re.Match[str]) -> tuple[str, str]:
    """What stands before and after the match in its sentence."""
    before = _SENTENCE_ENDS.split(match.string[: match.start()])[-1]
    return before, _SENTENCE_ENDS.split(match.string[match.end() :], maxsplit=1)[0]


def _in_future(match: re.Match[str], today: date) -> str | None:
    """ "in two days", where the sentence speaks of what is to come and counts nothing ("fifty books in a year")."""
    before, after = _sentence_of(match)
    is_then = match.group().lower().endswith("time") or re.search(r"(?i)(\b(is|are|am|be)|'s|'re|'m)\s+$", before)
    if not is_then and (_AMOUNT.search(before) or not _TO_COME.search(f"{before} {after}")):
        return None
    return _counted(1)(match, today)


def _after_chinese(match: re.Match[str], today: date) -> str | None:
    """ "三年后", where nothing stands before it from which it could be counted, and nothing says that it is past."""
    before, after = _sentence_of(match)
    if re.search("[了过曾]", after) or not re.search(
        r"(^|[\s，,、；;：:]|将|会|要|打算|计划|准备|预计|想|我们?|[他她]们?)$", before
    ):
        return None
    return _counted(1)(match, today)


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


def _counted(sign: int) -> Rendered:
    """N days, weeks, months or years before or after: groups 1 (how many) and 2 (of what)."""

    def rendered(match: re.Match[str], today: date) -> str | None:
        count, unit = sign * number(match.group(1)), match.group(2).lower().rstrip("s")
        if unit in ("month", "月"):
            return f"{_months(today, count):%Y-%m}"
        if unit in ("year", "年"):
            return f"{date(today.year + count, 1, 1).year}{'年' if unit == '年' else ''}"
        return _shifted(today, count, unit).isoformat()

    return rendered


def _to_the_day(match: re.Match[str], today: date) -> str:
    """ "a week ago today", "a year from tomorrow": groups are how many, of what, and the day from which."""
    count, unit, since = match.groups()
    sign = -1 if "ago" in match.group().lower().split() else 1
    day = today + timedelta(days={"yesterday": -1, "tomorrow": 1}.get(since.lower(), 0))
    return _shifted(day, sign * number(count), unit).isoformat()


def _to_the_day_chinese(match: re.Match[str], today: date) -> str:
    """ "两周前的今天", "去年今天": groups are how many and of what, or the year or month, and the day."""
    count, unit, which, since = match.groups()
    if which:
        count, unit = "两" if which[0] == "前" else "一", which.lstrip("上去前明个")
    day = today + timedelta(days={"昨": -1, "明": 1}.get(since[0], 0))
    return _shifted(day, (1 if which and which[0] == "明" else -1) * number(count), unit).isoformat()


def _shifted(day: date, count: int, unit: str) -> date:
    unit = unit.lower().rstrip("s")
    if unit in ("day", "天"):
        return day + timedelta(days=count)
    if unit in ("week", "fortnight", "周", "星期", "礼拜"):
        return day + timedelta(weeks=count * (2 if unit == "fortnight" else 1))
    return _months(day, count * (1 if unit in ("month", "月") else 12))


def _weekdays(match: re.Match[str], today: date) -> str:
    """ "two Fridays ago", "two Fridays from now": the nearest before or after today is the first."""
    count, day = number(match.group(1)), _WEEKDAYS.index(match.group(2).lower())
    if match.group().lower().endswith("ago"):
        return (_before(today, day) - timedelta(weeks=count - 1)).isoformat()
    return (_after(today, day) + timedelta(weeks=count - 1)).isoformat()


def _weekday_but_one(match: re.Match[str], today: date) -> str:
    """ "the Friday before last", "the Friday after next"."""
    day = _WEEKDAYS.index(match.group(1).lower())
    if match.group(2).lower().startswith("before"):
        return (_before(today, day) - timedelta(weeks=1)).isoformat()
    return (_monday(today, 2) + timedelta(days=day)).isoformat()


def _weekday_of_week(match: re.Match[str], today: date) -> str:
    """ "Friday last week", "last week on Friday"."""
    day, week = (match.group(1), match.group(2)) if match.group(1) else (match.group(4), match.group(3))
    weeks = {"last": -1, "this": 0, "next": 1}[week.lower()]
    return (_monday(today, weeks) + timedelta(days=_WEEKDAYS.index(day.lower()))).isoformat()


def _before(today: date, day: int) -> date:
    """The nearest such weekday before today."""
    return today - timedelta(days=(today.weekday() - day - 1) % 7 + 1)


def _after(today: date, day: int) -> date:
    """The nearest such weekday after today."""
    return today + timedelta(days=(day - today.weekday() - 1) % 7 + 1)


def _weekday(match: re.Match[str], today: date) -> str:
    """ "last Friday": the nearest before today, "this coming Friday": the nearest after it. "next" and "this" Friday:
    of next week, of this week."""
    which, day = match.group(1).lower().split()[-1], _WEEKDAYS.index(match.group(2).lower())
    if which in ("last", "past"):
        return _before(today, day).isoformat()
    if which == "coming":
        return _after(today, day).isoformat()
    return (_monday(today, which == "next") + timedelta(days=day)).isoformat()


def _weekday_chinese(match: re.Match[str], today: date) -> str:
    weeks = {"上": -1, "下": 1}.get(match.group(1)[0], 0) * len(match.group(1).rstrip("个"))
    day = "一二三四五六日天123456".index(match.group(2)) % 8
    return (_monday(today, weeks) + timedelta(days=min(day, 6))).isoformat()


def _day_of_month(match: re.Match[str], today: date) -> str:
    """ "上个月15号", "两个月前的3日": groups are how many months ago, or which month, and the day. A month of
    30 days has no 31st: ValueError."""
    ago, which, day = match.groups()
    months = -number(ago) if ago else {"上": -1, "下": 1}.get(which[0], 0) * len(which.rstrip("个月"))
    return _months(today.replace(day=1), months).replace(day=number(day)).isoformat()


def _english(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![\w-]){pattern}(?![\w-])")


_SENTENCE_BEGINS = re.compile(r"(?:^|[.!?:。！？：\n])[\s\"'“‘(*>-]*$")
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_TO_COME = re.compile(
    r"(?i)\b(will|shall|going to|from now|(is|are|am|be) (\w+ing|due|over)|starts?|begins?|ends?|leaves?|moves|arrives?"
    r"|returns?|expires?|due|plans?|planned|wants? to|hopes? to|expects? to|(has|have|needs?) (to|an?|my|our|the)|must"
    r"|should|see you)\b|'ll\b"
    r"|('s|'re|'m) (\w+ing|due)\b"
)
_AMOUNT = re.compile(
    rf"(?i)\b(\d+|{UP_TO_TWENTY.replace(' ', '|')}|thirty|forty|fifty|sixty|hundreds?|thousands?|many|several|few|all"
    r"|every|each|once|twice|times)\b"
)
_RUNS_INTO = re.compile(r"[\dA-Za-z]|-\d")
_DATE = re.compile(r"(?:the (?:night|week|weekend) of )?(?<!\d)\d{4}(?:-\d{2}){0,2}(?!\d)(?:年|晚上|那个周末|那一周)?")
_UNITS = r"(days?|weeks?|fortnights?|months?|years?)"
_ANY_WEEKDAY = "|".join(_WEEKDAYS)
# Not what is the number of a thing: 2号线, 3号楼, 5日元.
_DAY_OF_MONTH = rf"的?\s*{NUMBER_CHINESE}(?:号(?![线楼机院门店桌车厅馆房库选码球口台位员文厂站仓])|日(?![元圆本语]))"
_WEEK_CHINESE = "(?:周|星期|礼拜)"
# "last week", and not "the last week of school", which is another.
_WHICH = (
    r"(?<!\blast\s)(?<!\bnext\s)(?<!\bthis\s)(?<!\bthe\s)(?<!\bmy\s)(?<!\bhis\s)(?<!\bher\s)(?<!\bour\s)(?<!\btheir\s)"
    r"(?<!\bevery\s)"
)
_NOT_OF = (
    r"(?!\s+of\b)(?!\s+in\s+(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)\b)"
)
# Signs before which "上", "下" and "本" belong to another word: 晚上, 以上, 一下, 日本.
_UP, _DOWN, _OWN = "(?<![早晚以身路网线马上])上", "(?<![一以地底手月下])下", "(?<![日基根课剧样文版资])本"
# "5月前" and "5日前" are before May, and before the 5th.
_UNITS_CHINESE = "个?(天|周|星期|礼拜|(?<=个)月|年)"
_WHICH_WEEK = r"(?<!\bthe\s)"
# What would be understood in part alone stays as it is said, whole.
_LEFT = re.compile(
    rf"(?i)(?<![\w-])(?:{COUNT}\s+{_UNITS}\s+(?:ago|from)\s+(?:on\s+)?(?:(?:this|last|next|the)\s+)?"
    rf"(?:(?:past|coming)\s+)?(?:{_ANY_WEEKDAY}|week|month|year|weekend)"
    rf"|(?:this|the\s+same)\s+(?:time|day|date|week|month)\s+(?:last|next|this|of\s+last)\s+(?:\w+)"
    rf"|(?:today|tomorrow|yesterday|{_ANY_WEEKDAY})\s+(?:week|fortnight))(?![\w-])"
    f"|大[上下]+个?(?:{_WEEK_CHINESE}末?|月)|大大[前后][天年]|明后[天年]|昨前天|[上下]个?(?:{_WEEK_CHINESE}|月)的?[昨明前后]天|下个?(?:{_WEEK_CHINESE}|月)的?今天"
    rf"|{COUNT_CHINESE}\s*个?{_WEEK_CHINESE}(?:以|之)?前的?{_WEEK_CHINESE}[一二三四五六日天]"
)
_ASIDE = re.compile(r"\x00(\d+)\x00")
# In order: the longer expression before the one that it holds.
_RULES: list[tuple[re.Pattern[str], Rendered]] = [
    (_english(r"(?:the\s+)?day\s+before\s+yesterday"), _day(-2)),
    (_english(r"(?:the\s+)?day\s+after\s+tomorrow"), _day(2)),
    (_english(rf"{COUNTED}\s+{_UNITS}\s+(?:ago|from)\s+(today|yesterday|tomorrow)"), _to_the_day),
    (_english(rf"{COUNTED}\s+({_ANY_WEEKDAY})s\s+(?:ago|from\s+now)"), _weekdays),
    (_english(rf"(?:the\s+)?({_ANY_WEEKDAY})\s+(before\s+last|after\s+next)"), _weekday_but_one),
    (
        _english(
            rf"(?:({_ANY_WEEKDAY})\s+(?:of\s+)?{_WHICH_WEEK}(last|this|next)\s+week"
            rf"|{_WHICH}(last|this|next)\s+week\s+(?:on\s+)?({_ANY_WEEKDAY})(?!s))"
        ),
        _weekday_of_week,
    ),
    (_english(r"(?:the\s+)?weekend\s+before\s+last"), _week(-2, "the weekend of {}", 5)),
    (_english(r"(?:the\s+)?night\s+before\s+last"), _day(-2, "the night of {}")),
    (_english(r"(?:the\s+)?week\s+before\s+last"), _week(-2, "the week of {}")),
    (_english(r"(?:the\s+)?week\s+after\s+next"), _week(2, "the week of {}")),
    (_english(r"(?:the\s+)?month\s+before\s+last"), _month(-2)),
    (_english(r"(?:the\s+)?year\s+before\s+last"), _year(-2)),
    (_english(r"(?:yesterday\s+(?:night|evening)|last\s+night)"), _day(-1, "the night of {}")),
    (_english(r"yesterday"), _day(-1)),
    (_english(r"tomorrow"), _day(1)),
    (_english(r"tonight"), _day(0, "the night of {}")),
    (_english(r"this\s+(?:morning|afternoon|evening)"), _day(0)),
    (_english(r"today"), _day(0)),
    (
        _english(rf"(?<!with)(?<!with )in\s+{COUNT}\s+{_UNITS}(?!\s+(?:of|time\s+zones?))(?:\s+time|'\s+time)?"),
        _in_future,
    ),
    (_english(r"half\s+a\s+year\s+ago"), _month(-6)),
    (_english(rf"{COUNTED}\s+{_UNITS}\s+ago"), _counted(-1)),
    (_english(rf"{COUNTED}\s+{_UNITS}\s+from\s+now"), _counted(1)),
    (
        _english(rf"{_WHICH}((?:this\s+|the\s+)?coming|(?:this\s+)?past|last|next|this)\s+({_ANY_WEEKDAY}){_NOT_OF}"),
        _weekday,
    ),
    (_english(rf"{_WHICH}last\s+weekend{_NOT_OF}"), _week(-1, "the weekend of {}", 5)),
    (_english(rf"{_WHICH}this\s+weekend{_NOT_OF}"), _week(0, "the weekend of {}", 5)),
    (_english(rf"{_WHICH}next\s+weekend{_NOT_OF}"), _week(1, "the weekend of {}", 5)),
    (_english(rf"{_WHICH}last\s+week{_NOT_OF}"), _week(-1, "the week of {}")),
    (_english(rf"{_WHICH}this\s+week{_NOT_OF}"), _week(0, "the week of {}")),
    (_english(rf"{_WHICH}next\s+week{_NOT_OF}"), _week(1, "the week of {}")),
    (_english(rf"{_WHICH}last\s+month{_NOT_OF}"), _month(-1)),
    (_english(rf"{_WHICH}this\s+month{_NOT_OF}"), _month(0)),
    (_english(rf"{_WHICH}next\s+month{_NOT_OF}"), _month(1)),
    (_english(rf"{_WHICH}last\s+year{_NOT_OF}"), _year(-1)),
    (_english(rf"{_WHICH}this\s+year{_NOT_OF}"), _year(0)),
    (_english(rf"{_WHICH}next\s+year{_NOT_OF}"), _year(1)),
    (
        re.compile(
            rf"(?:{COUNT_CHINESE}\s*{_UNITS_CHINESE}(?:以|之)?前"
            rf"|((?<!失)去年|(?<![以之从目当])前年|{_UP}个?(?:月|{_WEEK_CHINESE})|明年))"
            "的?([今昨明](?:天(?![气真])|日))"
        ),
        _to_the_day_chinese,
    ),
    (
        re.compile(
            rf"(?:{COUNT_CHINESE}\s*个月(?:以|之)?前|({_UP}上?个?月|{_DOWN}下?个?月|(?:这个|{_OWN})月)){_DAY_OF_MONTH}"
        ),
        _day_of_month,
    ),
    (re.compile("大前天"), _day(-3)),
    (re.compile("大后天"), _day(3)),
    # "以前天天", "目前天气", "聪明天真", "后天的努力" and "如今年轻人" hold the signs of times, and no time.
    (re.compile("(?<![以之从先目当眼提昨])前天(?![天气真空])"), _day(-2)),
    (re.compile("(?<![以之今往然随最先明])后天(?![天气真性努习培形因教环失的])"), _day(2)),
    (re.compile("昨[晚夜]"), _day(-1, "{}晚上")),
    (re.compile("昨(?:天|儿个?(?![子女童媳])|日(?![重之青世奇]))"), _day(-1)),
    (re.compile("(?<![如当至迄])今[晚夜]"), _day(0, "{}晚上")),
    (
        re.compile("(?<![如当至迄])今(?:天(?![气真])|儿个?(?![子女童媳])|日(?![头说资美英新关话影看热之]))|今早"),
        _day(0),
    ),
    (re.compile("(?<![聪文声证光透])明晚"), _day(1, "{}晚上")),
    (
        re.compile(
            "(?<![聪文声证光透小])明(?:天(?![气真性赋才])|儿个?(?![子女童媳])|日(?![方之香边科帝世传奈花骑黄叶])|早)"
        ),
        _day(1),
    ),
    (re.compile("(?<![年大小前后上下])半年(?:以|之)?前"), _month(-6)),
    (re.compile(rf"{COUNT_CHINESE}\s*{_UNITS_CHINESE}(?:以|之)?前"), _counted(-1)),
    (re.compile(rf"{COUNT_CHINESE}\s*{_UNITS_CHINESE}(?:以|之)?后"), _after_chinese),
    (
        re.compile(rf"({_UP}上{{0,3}}个?|{_DOWN}下{{0,3}}个?|这个?|{_OWN}){_WEEK_CHINESE}({_DAY_CHINESE})"),
        _weekday_chinese,
    ),
    (re.compile(rf"{_UP}上个?{_WEEK_CHINESE}末"), _week(-2, "{}那个周末", 5)),
    (re.compile(rf"{_DOWN}下个?{_WEEK_CHINESE}末"), _week(2, "{}那个周末", 5)),
    (re.compile(rf"{_UP}个?{_WEEK_CHINESE}末"), _week(-1, "{}那个周末", 5)),
    (re.compile(rf"(?:这个?|{_OWN}){_WEEK_CHINESE}末"), _week(0, "{}那个周末", 5)),
    (re.compile(rf"{_DOWN}个?{_WEEK_CHINESE}末"), _week(1, "{}那个周末", 5)),
    (re.compile(rf"{_UP}上个?{_WEEK_CHINESE}"), _week(-2, "{}那一周")),
    (re.compile(rf"{_DOWN}下个?{_WEEK_CHINESE}"), _week(2, "{}那一周")),
    (re.compile(rf"{_UP}个?{_WEEK_CHINESE}"), _week(-1, "{}那一周")),
    (re.compile(rf"{_DOWN}个?{_WEEK_CHINESE}"), _week(1, "{}那一周")),
    (re.compile(rf"(?:这个?|{_OWN}){_WEEK_CHINESE}"), _week(0, "{}那一周")),
    (re.compile(f"{_UP}上个月"), _month(-2)),
    (re.compile(f"{_UP}个?月(?![亮球光饼薪经])"), _month(-1)),
    (re.compile(f"{_DOWN}下个月"), _month(2)),
    (re.compile(f"{_DOWN}个?月(?![亮球光饼薪经])"), _month(1)),
    (re.compile(f"(?:这个|{_OWN})月(?![亮球光饼薪经])"), _month(0)),
    (re.compile("大前年"), _year(-3, "{}年")),
    (re.compile("(?<![以之从目当])前年(?![轻纪龄少代])"), _year(-2, "{}年")),
    (re.compile("(?<!失)去年(?![轻华少])"), _year(-1, "{}年")),
    (re.compile("(?<![如当至迄])今年(?![轻纪龄])"), _year(0, "{}年")),
    (re.compile("(?<![聪文声证光透])明年(?![轻纪龄代])"), _year(1, "{}年")),
    (re.compile("(?<![以之今往随])后年(?![轻纪龄代])"), _year(2, "{}年")),
]
