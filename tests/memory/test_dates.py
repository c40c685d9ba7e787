"""Relative times in words become dates, seen from when it was said, in the person's zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts import erasing
from memory import admin_reading, answering, changing, excerpts, fact_lines, fact_search, known, remembered
from memory.dates import absolute, around_dates
from memory.meaning_range import reach
from memory.meaning_search import meaning_search
from shadow.known import line
from shadow.models import ShadowFactProposal
from tests.memory.facts import fact_row
from tests.threads.records import exchange, thread_of
from threads.literal_search import literal_search
from threads.models import Message
from threads.visibility import Viewer

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
        ("I will leave in two weeks. The exam is in 3 days.", "I will leave 2023-05-22. The exam is 2023-05-11."),
        ("twenty days ago, half a year ago", "2023-04-18, 2022-11"),
        ("The week before last; the year before last", "the week of 2023-04-24; 2021"),
        ("Fine. Today I moved, Yesterday and all.", "Fine. 2023-05-08 I moved, Yesterday and all."),
        ("半年前，我三年后要搬家，明天天气", "2022-11，我2026年要搬家，2023-05-09天气"),
        ("昨天和大前天，今年，明晚", "2023-05-07和2023-05-05，2023年，2023-05-09晚上"),
        ("上周五，这周三，下周日，上上周一", "2023-05-05，2023-05-10，2023-05-21，2023-04-24"),
        ("上周，下个月，去年", "2023-05-01那一周，2023-06，2022年"),
        ("三天前，十五天前，两个月前，二十年后", "2023-05-05，2023-04-23，2023-03，2043年"),
        ("two Fridays ago, three Mondays ago", "2023-04-28, 2023-04-17"),
        ("two Mondays from now; two weeks ago tomorrow", "2023-05-22; 2023-04-25"),
        ("a week ago today, a year ago today, a month from today", "2023-05-01, 2022-05-08, 2023-06-08"),
        ("day before yesterday; a fortnight ago", "2023-05-06; 2023-04-24"),
        ("this coming Monday, this past Friday", "2023-05-15, 2023-05-05"),
        ("the Friday before last; the Monday after next", "2023-04-28; 2023-05-22"),
        ("the weekend before last", "the weekend of 2023-04-29"),
        ("We meet Friday next week, and met last week on Friday.", "We meet 2023-05-19, and met 2023-05-05."),
        ("I have an exam in two days", "I have an exam 2023-05-10"),
        ("上上周五，上上上周五，上上周末", "2023-04-28，2023-04-21，2023-04-29那个周末"),
        ("去年今天，两周前的今天，上周的今天", "2022-05-08，2023-04-24，2023-05-01"),
        (
            "他上个月15号搬家，下个月的三日、本月25日，两个月前2号",
            "他2023-04-15搬家，2023-06-03、2023-05-25，2023-03-02",
        ),
        ("上个月2号线，上上个月31号，上个月31号", "2023-04 2号线，2023-03-31，2023-04 31号"),
        ("昨天3点，今天18点开会，上个月-15", "2023-05-07 3点，2023-05-08 18点开会，2023-04 -15"),
        ("两年前3月，去年10月1日", "2021年3月，2022年10月1日"),
        (
            "iPhone15昨天到货，G20上周开会，昨天Max来",
            "iPhone15 2023-05-07到货，G20 2023-05-01那一周开会，2023-05-07 Max来",
        ),
        ("上周3去，下周5。上周3次", "2023-05-03去，2023-05-19。2023-05-01那一周3次"),
        ("昨儿到，明儿走，小明儿子", "2023-05-07到，2023-05-09走，小明儿子"),
        (
            "上周一直在忙，上周五个人，上周天气",
            "2023-05-01那一周一直在忙，2023-05-01那一周五个人，2023-05-01那一周天气",
        ),
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
        # Names.
        'Their favourite Beatles song is Yesterday; reads USA Today, and "yesterday" is a word.',
        "看今日头条，玩明日方舟，读《明天》，如今年轻人聪明天真，目前天气好，日本周刊，晚上月亮圆。",
        # Lengths of time, parts and ranges.
        "Learned Python in three months. Will read fifty books in a year. Wrote it in a week.",
        "A year and a half ago, two or three years ago, 1.5 years ago, more than two years ago, two days earlier.",
        "The last week of school, over the last year, every last Friday of it.",
        # What is understood in part alone: none of it is replaced.
        "A week ago Friday, two weeks ago on Friday, two years ago this month, this time last year, Monday week.",
        "Last Friday in May, last last week, next next week, tomorrow week.",
        "大上周，最大上个月，大大前天，明后天，一周前的周五，下周的今天，上上上个月，每周五。",
        "工作三年后转行，三天后他走了，两三年前，2020年前，5月5日前，12月前，一年半前，第三天后。",
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


@settings(deadline=None)
@given(
    st.sampled_from(
        ["昨天", "今晚", "上周", "上周五", "上个月", "去年", "两年前", "三天前", "今早", "去年今天", "下周末"]
    ),
    st.integers(min_value=0, max_value=999),
    st.sampled_from(["点", "次", "月", "人", "GB", "-15"]),
)
def test_digits_beside_a_relative_time_never_touch_its_date(words, number, unit):
    dated = absolute(words, MONDAY, ZONE)
    before, after = absolute(f"{number}{words}，", MONDAY, ZONE), absolute(f"{words}{number}{unit}", MONDAY, ZONE)
    # "5两年前" counts something else, and stays.
    assert before in (f"{number} {dated}，", f"{number}{words}，")
    blank = " " if dated[-1].isdecimal() else ""
    assert after == f"{dated}{blank}{number}{unit}"
    # What looks for dates in a fact finds the one that was written, whole.
    assert around_dates(after) == ["", f"{blank}{number}{unit}"]
    assert around_dates(before) in ([f"{number} ", "，"], [before])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("moment", "day"),
    [
        # Before midnight in UTC, in the night that has the hour from 2 to 3 twice, and in the next, an hour shorter of
        # UTC: the one is the next day in Berlin already, the other not yet.
        (datetime(2023, 10, 28, 22, 30, tzinfo=UTC), "2023-10-29"),
        (datetime(2023, 10, 29, 22, 30, tzinfo=UTC), "2023-10-29"),
    ],
)
def test_the_days_that_a_model_is_shown_are_those_of_the_persons_zone(alice, moment, day):
    alice.time_zone = "Europe/Berlin"
    alice.save()
    thread = thread_of(alice)
    said, _answer = exchange(thread, "I keep bees.")
    Message.objects.filter(thread=thread).update(created=moment)
    fact = fact_row(alice, said, "Keeps bees.")  # written years later
    viewer = Viewer.of_thread(thread)
    facts = fact_search.found(viewer, "bees", {}, everything=False).hits
    assert [hit.fact_id for hit in facts] == [fact.pk]
    hits = meaning_search(reach(viewer, thread.channel), "bees", None).hits
    of_thread = known._of_thread(viewer, thread)
    proposal = ShadowFactProposal(owner=alice, text="Keeps bees.", kind="event", tone="remark", created=moment)
    for shown in (
        fact_lines.line(facts[0]),
        fact_lines.line(of_thread[0]),
        excerpts.render(hits, "bees", 2_000, channel=thread.channel).text,
        answering._material(hits, []),
        literal_search(viewer, thread.channel, "bees").text,
        line(proposal),
    ):
        assert day in shown
    # The same day on the person's page, in the console and in an export; words that somebody wrote by hand are of then.
    [page] = remembered.with_proofs(alice, [fact])
    [console] = admin_reading.words_of([fact])
    [record] = [record for record in erasing.export_user(alice) if record["record"] == "fact"]
    assert {alice.local(page.said).date().isoformat(), record["said"][:10]} == {day}
    assert (console.said.isoformat(), page.said) == (day, moment)
    byhand = changing.correct(fact, changing.draft_of(fact), reason="", writer="person")
    assert remembered.with_proofs(alice, [byhand])[0].said == byhand.created > moment
