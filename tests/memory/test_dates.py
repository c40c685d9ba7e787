"""Relative times in words become dates, seen from when it was said, in the person's zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.dates import absolute

MONDAY = datetime(2023, 5, 8, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("words", "dated"),
    [
        ("I moved yesterday, and leave tomorrow.", "I moved 2023-05-07, and leave 2023-05-09."),
        ("The day before yesterday", "2023-05-06"),
        ("last night", "the night of 2023-05-07"),
        ("last Friday, this Friday, next Friday", "2023-05-05, 2023-05-12, 2023-05-19"),
        ("last Monday", "2023-05-01"),
        ("last week, next month, last year", "the week of 2023-05-01, 2023-06, 2022"),
        ("next weekend", "the weekend of 2023-05-20"),
        ("3 days ago, two weeks ago, a month ago", "2023-05-05, 2023-04-24, 2023-04"),
        ("in two days, ten years from now", "2023-05-10, 2033"),
        ("昨天和大前天，今年，明晚", "2023-05-07和2023-05-05，2023年，2023-05-09晚上"),
        ("上周五，这周三，下周日，上上周一", "2023-05-05，2023-05-10，2023-05-21，2023-04-24"),
        ("上周，下个月，去年", "2023-05-01那一周，2023-06，2022年"),
        ("三天前，十五天前，两个月前，二十年后", "2023-05-05，2023-04-23，2023-03，2043"),
    ],
)
def test_relative_times_become_absolute(words, dated):
    assert absolute(words, MONDAY, ZONE) == dated


@pytest.mark.parametrize(
    "words",
    [
        "Runs every day; recently moved; a todays-news reader.",
        "Within two days of 2023-05-01.",
        "以前天天跑步，以后天天游泳，几天前，每天早上。",
        "In 5000000 days, 9999 years ago.",
        "2023年5月8日上午",
    ],
)
def test_what_names_no_day_stays(words):
    assert absolute(words, MONDAY, ZONE) == words


@pytest.mark.parametrize(
    ("said", "zone", "yesterday"),
    [
        # Half past midnight on the day after clocks went forward (a day of 23 hours) and back (one of 25).
        (datetime(2023, 3, 26, 22, 30, tzinfo=UTC), "Europe/Berlin", "2023-03-26"),
        (datetime(2023, 3, 26, 0, 30, tzinfo=UTC), "Europe/Berlin", "2023-03-25"),
        (datetime(2023, 10, 29, 23, 30, tzinfo=UTC), "Europe/Berlin", "2023-10-29"),
        (datetime(2023, 10, 29, 22, 30, tzinfo=UTC), "Europe/Berlin", "2023-10-28"),
        (datetime(2023, 3, 12, 4, 30, tzinfo=UTC), "America/New_York", "2023-03-10"),
        (datetime(2023, 3, 13, 3, 59, tzinfo=UTC), "America/New_York", "2023-03-11"),
        (datetime(2023, 3, 13, 4, 0, tzinfo=UTC), "America/New_York", "2023-03-12"),
        (datetime(2023, 5, 8, 16, 30, tzinfo=UTC), "Asia/Shanghai", "2023-05-08"),
        (datetime(2023, 5, 8, 9, 30, tzinfo=UTC), "Pacific/Apia", "2023-05-07"),
    ],
)
def test_days_are_those_of_the_persons_zone_daylight_saving_included(said, zone, yesterday):
    assert absolute("yesterday", said, ZoneInfo(zone)) == yesterday
    assert absolute("昨天", said, ZoneInfo(zone)) == yesterday


@given(
    st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati", "UTC"]),
    st.integers(min_value=0, max_value=9_999),
)
def test_days_are_counted_on_the_calendar_and_a_dated_text_stays(said, zone, days):
    today = said.astimezone(ZoneInfo(zone)).date()
    dated = absolute(f"{days} days ago", said, ZoneInfo(zone))
    assert date.fromisoformat(dated) == today - timedelta(days=days)
    assert absolute(dated, said, ZoneInfo(zone)) == dated
