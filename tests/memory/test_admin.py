"""The memory console: lists without words, reading that is noted, and changes that say why."""

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from memory.models import Digest, Episode, Fact, FactEvidence, FactLog, FactUse
from memory.statistics import statistics
from tests.memory.facts import fact_row, many_facts
from tests.threads.records import exchange, say, thread_of
from threads.models import Message, PrivateReading

pytestmark = pytest.mark.django_db
LIST = "admin:memory_fact_changelist"


@pytest.fixture
def staff(charlie, client):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    client.force_login(charlie)
    return charlie


@pytest.fixture
def thread(alice):
    return thread_of(alice, title="Boats")


@pytest.fixture
def words(thread):
    return say(thread, "user", "I like the blue boat.")


def post(client, fact, action, **fields):
    return client.post(reverse(f"admin:memory_fact_{action}", args=[fact.pk]), fields, follow=True)


def listed(client, **asked):
    page = client.get(reverse(LIST), asked)
    assert page.status_code == 200
    return sorted(fact.pk for fact in page.context["cl"].result_list)


def helper(client, *codenames):
    """A staff member who has these permissions alone."""
    person = User.objects.create_user("helper", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return person


def test_an_empty_list_tells_an_empty_memory_from_one_that_holds_nothing_that_fits(client, staff, alice, words):
    none = client.get(reverse(LIST)).content.decode()
    assert "Nothing here so far" in none and "Show all" not in none and ">Next<" not in none
    fact_row(alice, words)
    for asked in ({"q": "bob"}, {"kind__exact": "event"}):
        page = client.get(reverse(LIST), asked).content.decode()
        assert "Nothing fits" in page and "Show all" in page
        assert "Add fact" not in page and "Create a new item" not in page, "nobody can"


def test_a_list_leads_only_to_pages_that_there_are(client, staff, alice):
    many_facts(alice, 60)
    first, second = (client.get(reverse(LIST), {"p": number}).content.decode() for number in (1, 2))
    assert ">Next<" in first and ">Previous<" not in first
    assert ">Previous<" in second and ">Next<" not in second


def test_the_state_of_a_fact_has_one_name_in_chinese(client, staff, alice, words):
    staff.language = "zh-hans"
    staff.save()
    fact_row(alice, words)
    page = client.get(reverse(LIST)).content.decode()
    assert "有效" in page and "活跃" not in page


def test_facts_are_filtered_by_what_they_are_and_what_became_of_them(client, staff, alice, bob, thread, words):
    plain = fact_row(alice, words)
    decided = fact_row(alice, words, "Takes the blue boat.", tone="decision", aspect="decision", writer="remember")
    event = fact_row(alice, words, "The boat sank.", kind="event", aspect="", status="retired")
    legacy = fact_row(bob, text="Has a dog.", legacy=True, writer="import")
    rewound = say(thread, "user", "I like the red boat.")
    stale = fact_row(alice, rewound, "Likes the red boat.")
    Message.objects.filter(pk=rewound.pk).update(left_at_cut=1, left_because="superseded")
    FactUse.objects.create(fact=plain, owner=alice, how="briefed", generation=words.generation)
    everything = sorted(fact.pk for fact in (plain, decided, event, legacy, stale))
    assert listed(client) == everything
    assert listed(client, owner="bob") == [legacy.pk] and listed(client, owner="nobody") == []
    assert listed(client, kind__exact="event") == [event.pk]
    assert listed(client, aspect__exact="decision") == listed(client, tone__exact="decision") == [decided.pk]
    assert listed(client, status__exact="retired") == [event.pk]
    assert listed(client, evidence="none") == listed(client, legacy__exact="1") == [legacy.pk]
    assert len(listed(client, evidence="max-stated")) == 4 and listed(client, evidence="tool-verified") == []
    assert listed(client, use="briefed") == [plain.pk] and listed(client, use="found") == []
    assert listed(client, use="none") == [pk for pk in everything if pk != plain.pk]
    assert listed(client, stale="yes") == [stale.pk]
    assert listed(client, stale="no") == [pk for pk in everything if pk != stale.pk]
    assert listed(client, writer__exact="remember", q="alice") == [decided.pk]


FILTERS = (
    {},
    {"owner": "alice"},
    {"kind__exact": "about-user"},
    {"tone__exact": "remark"},
    {"status__exact": "active"},
    {"evidence": "max-stated"},
    {"evidence": "none"},
    {"use": "found"},
    {"use": "none"},
    {"stale": "no"},
    {"stale": "yes"},
    {"p": 300},
)


def test_lists_and_pages_of_none_45_and_20_000_facts_take_as_many_queries_and_show_as_much(
    client, staff, alice, thread, words
):
    def shown(address, **asked):
        with CaptureQueriesContext(connection) as found:
            page = client.get(address, asked)
        assert page.status_code == 200
        return len(found), len(page.content), page

    overview = reverse("admin:memory_fact_overview")
    shown(reverse(LIST)), shown(overview)
    counted = {}
    for number in (0, 45, 20_000):
        many_facts(alice, number - Fact.objects.count())
        with connection.cursor() as cursor:
            # Half of them are proved, and a third was found.
            cursor.execute(
                """INSERT INTO memory_factevidence (fact_id, owner_id, kind, message_id, created)
                SELECT id, owner_id, 'max-stated', %s, now() FROM memory_fact WHERE id %% 2 = 0
                ON CONFLICT DO NOTHING""",
                [words.pk],
            )
            cursor.execute(
                """INSERT INTO memory_factuse (fact_id, owner_id, how, message_id, created)
                SELECT id, owner_id, 'found', %s, now() FROM memory_fact WHERE id %% 3 = 0 ON CONFLICT DO NOTHING""",
                [words.pk],
            )
            cursor.execute("ANALYZE memory_fact, memory_factevidence, memory_factuse")
        for asked in FILTERS if number else ({},):
            queries, size, page = shown(reverse(LIST), **asked)
            assert len(page.context["cl"].result_list) <= 50
            counted.setdefault(number, []).append((queries, size))
        counted[number].append(shown(overview)[:2])
    assert len(listed(client, use="none")) == len(listed(client, evidence="none")) == 50
    most = max(queries for queries, _size in counted[45])
    assert all(queries <= most for queries, _size in counted[20_000]), counted
    assert all(size < 600_000 for _queries, size in counted[20_000]), counted
    # A fact's page, when everything became it.
    fact = fact_row(alice, words)
    Fact.objects.exclude(pk=fact.pk).update(superseded_by=fact, status="superseded")
    queries, size, _page = shown(reverse("admin:memory_fact_change", args=[fact.pk]))
    assert queries <= 20 and size < 600_000
    with CaptureQueriesContext(connection) as found:
        read = post(client, fact, "read")
    assert len(read.context["older"]) == 20 and len(read.content) < 600_000
    assert len(found) <= 60, "each version that is shown is noted"


def test_a_fact_is_read_with_its_surroundings_and_each_part_is_noted(
    client, staff, alice, thread, django_assert_max_num_queries
):
    rows = [message for _turn in range(4) for message in exchange(thread, "before", "after")]
    old = fact_row(alice, rows[4], "Likes blue boats.")
    fact = fact_row(alice, rows[4], "Likes the blue boat.", applies_to="sailing")
    Fact.objects.filter(pk=old.pk).update(superseded_by=fact, status="superseded")
    before = client.get(reverse("admin:memory_fact_change", args=[fact.pk])).content.decode()
    assert "Likes the blue boat" not in before and "sailing" not in before
    assert f"f:{old.pk}" in before and f"m:{rows[4].pk}" in before
    assert not PrivateReading.objects.exists()
    assert client.get(reverse("admin:memory_fact_read", args=[fact.pk])).status_code == 405
    with django_assert_max_num_queries(30):
        page = post(client, fact, "read")
    shown = page.content.decode()
    assert "Likes the blue boat." in shown and "Likes blue boats." in shown and "sailing" in shown
    [proof] = page.context["proofs"]
    assert [row.message.pk for row in proof.rows] == [row.pk for row in rows[1:8]]
    assert [row.message.pk for row in proof.rows if row.proves] == [rows[4].pk]
    noted = PrivateReading.objects.order_by("pk").values_list("what", "owner", "thread", "first_id", "last_id")
    assert list(noted) == [
        ("fact", alice.pk, None, fact.pk, fact.pk),
        ("fact", alice.pk, None, old.pk, old.pk),
        ("conversation", alice.pk, thread.pk, rows[1].pk, rows[7].pk),
    ]


def test_words_of_several_are_read_at_once_and_noted_one_by_one(client, staff, alice, words):
    facts = [fact_row(alice, words, f"Thing {number}.") for number in range(3)]
    chosen = {"action": "read_chosen", "_selected_action": [fact.pk for fact in facts[:2]]}
    shown = client.post(reverse(LIST), chosen).content.decode()
    assert "Thing 0." in shown and "Thing 1." in shown and "Thing 2." not in shown
    assert set(PrivateReading.objects.values_list("first_id", flat=True)) == {fact.pk for fact in facts[:2]}


def test_retiring_and_restoring_say_why_and_write_a_new_fact(client, staff, alice, words):
    fact = fact_row(alice, words)
    refused = post(client, fact, "retire", reason="  ")
    assert "This field is required." in refused.content.decode()
    fact.refresh_from_db()
    assert fact.status == "active" and not FactLog.objects.exists()
    post(client, fact, "retire", reason="out of scope")
    fact.refresh_from_db()
    assert (fact.status, fact.why) == ("retired", "out of scope")
    # Somebody was faster: nothing happens twice.
    assert "Nothing was changed" in post(client, fact, "retire", reason="again").content.decode()
    post(client, fact, "restore", reason="a slip")
    restored = Fact.objects.get(status="active")
    assert restored.pk > fact.pk and restored.text == fact.text
    assert restored.evidence.get().message_id == words.pk
    log = FactLog.objects.order_by("pk").values_list("action", "actor", "writer", "reason", "before", "after")
    assert list(log) == [
        ("retire", staff.pk, "staff", "out of scope", [fact.pk], []),
        ("restore", staff.pk, "staff", "a slip", [fact.pk], [restored.pk]),
    ]


def test_a_correction_supersedes_and_says_why(client, staff, alice, words):
    fact = fact_row(alice, words, "Likes the red boat.")
    typed = {"text": "Likes the blue boat.", "applies_to": "", "tone": "decision"}
    again = post(client, fact, "correct", **typed).content.decode()
    assert "This field is required." in again and "Likes the blue boat." in again and "red boat" not in again
    post(client, fact, "correct", **typed, reason="misheard")
    new = Fact.objects.get(status="active")
    fact.refresh_from_db()
    assert (new.text, new.tone, new.writer, fact.superseded_by) == ("Likes the blue boat.", "decision", "staff", new)
    secret = post(client, new, "correct", **typed | {"text": "sk-ant-api03-" + "a1B2" * 20}, reason="why")
    assert "Secrets are not remembered." in secret.content.decode()


def test_merging_makes_one_of_several_of_one_person(client, staff, alice, bob, thread, words):
    other = say(thread, "user", "Blue boats are best.")
    one, two = fact_row(alice, words, "Likes the blue boat."), fact_row(alice, other, "Blue boats are liked.")
    foreign = fact_row(bob, say(thread_of(bob), "user", "Me too."), "Likes boats.")

    def choose(*facts):
        chosen = {"action": "merge_chosen", "_selected_action": [fact.pk for fact in facts]}
        return client.post(reverse(LIST), chosen, follow=True).content.decode()

    assert "Choose two to 20 facts" in choose(one)
    assert "Facts of different people are not merged." in choose(one, foreign)
    assert not PrivateReading.objects.exists()
    assert "Blue boats are liked." in choose(one, two)
    assert PrivateReading.objects.count() == 2
    merge = reverse("admin:memory_fact_merge")
    fields = {"fact": [one.pk, two.pk], "text": "Likes blue boats."}
    assert client.get(merge).status_code == 405
    client.post(merge, fields)
    assert Fact.objects.filter(owner=alice, status="active").count() == 2
    client.post(merge, fields | {"reason": "the same"})
    merged = Fact.objects.get(owner=alice, status="active")
    assert set(merged.evidence.values_list("message", flat=True)) == {words.pk, other.pk}
    assert set(Fact.objects.filter(superseded_by=merged)) == {one, two}
    assert FactLog.objects.get().reason == "the same"


def test_each_thing_is_for_those_who_were_given_it(client, alice, words):
    fact = fact_row(alice, words, "Likes the blue boat.")
    helper(client, "view_fact")
    page = client.get(reverse("admin:memory_fact_change", args=[fact.pk])).content.decode()
    for action in ("read", "retire", "restore", "correct"):
        address = reverse(f"admin:memory_fact_{action}", args=[fact.pk])
        assert address not in page
        assert client.post(address, {"reason": "why", "text": "Mine.", "tone": "remark"}).status_code == 403, action
    assert client.post(reverse("admin:memory_fact_merge"), {"fact": [fact.pk]}).status_code == 403
    chosen = {"action": "read_chosen", "_selected_action": [fact.pk]}
    assert "Likes the blue boat" not in client.post(reverse(LIST), chosen, follow=True).content.decode()
    assert client.get(reverse("admin:memory_fact_overview")).status_code == 200
    User.objects.get(username="helper").delete()
    helper(client, "view_fact", "change_fact")  # may change, and not read
    assert post(client, fact, "correct", reason="why", text="Mine.", tone="remark").status_code == 403
    assert post(client, fact, "retire", reason="why").status_code == 200
    fact.refresh_from_db()
    assert fact.status == "retired" and not PrivateReading.objects.exists()
    User.objects.get(username="helper").delete()
    helper(client, "view_thread")
    assert client.get(reverse("admin:memory_fact_overview")).status_code == 403


def test_statistics_count_what_was_read_written_and_used(client, staff, alice, thread, words):
    waiting = say(thread, "user", "And oars.")
    say(thread_of(alice, scope="isolated"), "user", "Nobody reads this.")
    say(thread, "assistant", "I see.")
    episode = Episode.objects.create(owner=alice, thread=thread, generation=words.generation, through_seq=words.pk)
    Digest.objects.create(message=words, owner=alice, episode=episode)
    fact = fact_row(alice, words)
    fact_row(alice, waiting, "Has oars.", kind="event", aspect="")
    fact_row(alice, waiting, "Had oars.", kind="event", aspect="", status="retired")
    FactEvidence.objects.create(fact=fact, owner=alice, kind="observed-outcome", generation=words.generation)
    FactUse.objects.create(fact=fact, owner=alice, how="found", message=words)
    found = statistics(7, alice.zone)
    assert found.coverage == 0.5 and len(found.days) == 7
    assert {kind: sum(days.values()) for kind, days in found.written.items()} == {
        "about-user": 1,
        "event": 2,
        "pointer": 0,
    }
    assert found.evidence == {"max-stated": 2, "max-accepted": 0, "tool-verified": 0, "observed-outcome": 1}
    standing = {kind: (row.used, row.unused, row.stale) for kind, row in found.standing.items()}
    assert standing == {"about-user": (1, 0, 0), "event": (0, 1, 0), "pointer": (0, 0, 0)}
    page = client.get(reverse("admin:memory_fact_overview")).content.decode()
    assert "50 %" in page and "Never used" in page
