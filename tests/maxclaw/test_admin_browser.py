"""The console in a browser: accessible, without an error, without a request elsewhere, and by keyboard alone."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.models import User
from memory.models import Fact, FactLog
from tests.browser import PHONE, chromium_browser, open_tab  # noqa: F401  # fixtures
from tests.browser_checks import assert_accessible, assert_fits
from tests.chat.conftest import emulator, emulator_process, server  # noqa: F401  # fixtures
from tests.hands import Hand
from tests.maxclaw.console_records import SECRET, fill, lapse
from tests.memory.facts import fact_row
from tests.threads.records import say, thread_of
from threads.models import Message, PrivateReading, Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DESKTOP = {"viewport": {"width": 1360, "height": 860}}
HANDS = {"mouse": DESKTOP, "keyboard": DESKTOP, "touch": PHONE}


@pytest.fixture
def staff(charlie):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    return charlie


@pytest.fixture
def thread(alice, staff):
    made = fill(alice, staff)
    lapse(made)
    return made


def test_charts_are_drawn(server, thread, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    page.goto(server.url + reverse("admin:llm_modelcall_costs"))
    for name in ("Dollars a day", "Tokens a day"):
        canvas = page.get_by_role("img", name=name)
        expect(canvas).to_be_visible()
        colours = canvas.evaluate(
            "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
        )
        assert colours > 20, "the chart is blank"


def test_private_text_is_read_by_mouse_keyboard_and_touch(server, thread, staff, open_tab):  # noqa: F811
    address = server.url + reverse("admin:threads_message_change", args=[Message.objects.earliest("pk").pk])
    before = PrivateReading.objects.count()
    for count, (how, size) in enumerate((*HANDS.items(), ("keyboard", PHONE)), start=1):
        page = open_tab(server, staff, **size).page
        page.goto(address)
        hand = Hand(page, how)
        hand.skip()
        hand.press(page.get_by_role("button", name="Read the private text"))
        expect(page.locator(".console-text").first).to_contain_text(SECRET)
        assert PrivateReading.objects.count() == before + count
        assert_accessible(page)
        hand.press(page.locator("#content").get_by_role("link", name="Back"))
        expect(page).to_have_url(address)


def test_the_sidebar_and_the_user_menu_open_with_the_keyboard(server, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **PHONE).page
    page.goto(server.url + reverse("admin:index"))
    toggle = page.get_by_role("button", name="Show or hide the sidebar").first
    toggle.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Costs")).to_be_visible()
    menu = page.locator("#nav-sidebar-inner [role=button]", has_text="charlie")
    menu.focus()
    page.keyboard.press(" ")
    expect(page.get_by_role("link", name="Your account")).to_be_visible()
    assert_accessible(page)


def test_people_are_erased_by_mouse_keyboard_and_touch(server, thread, alice, bob, staff, open_tab):  # noqa: F811
    dora = User.objects.create_user("dora")
    for (how, size), person in zip(HANDS.items(), (bob, alice, dora), strict=True):
        page = open_tab(server, staff, **size).page
        hand = Hand(page, how)
        page.goto(server.url + reverse("admin:accounts_user_change", args=[person.pk]))
        hand.skip()
        hand.press(page.get_by_role("link", name="Delete").last)
        page.wait_for_url("**/delete/")
        hand.skip()
        for name in ("somebody", person.username):
            assert User.objects.filter(pk=person.pk).exists()
            hand.write("#id_username", name)
            hand.press(page.get_by_role("button", name="Erase for good"))
            if name == "somebody":
                expect(page.get_by_role("alert")).to_contain_text("Nothing was erased")
                if how == "keyboard":
                    assert_accessible(page)
        expect(page.get_by_text(f"{person.username} was erased")).to_be_visible()
        assert not User.objects.filter(pk=person.pk).exists()
    assert User.objects.get(is_staff=True) == staff
    assert not Thread.objects.exclude(owner=staff).exists()


def test_a_fact_is_retired_and_restored_by_keyboard_and_mouse(server, thread, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    fact = Fact.objects.get(status="active")
    for how in ("keyboard", "mouse"):
        page.goto(server.url + reverse("admin:memory_fact_change", args=[fact.pk]))
        hand = Hand(page, how)
        hand.skip()
        for button, told in (("Retire", "The fact was retired."), ("Restore", "The fact was restored")):
            send = page.get_by_role("button", name=button, exact=True)
            hand.point(page.get_by_label("Reason"))
            page.keyboard.press("Enter")  # without a reason nothing goes out
            page.keyboard.type("No longer so.")
            hand.press(send)
            expect(page.get_by_text(told)).to_be_visible()
        fact.refresh_from_db()
        restored = Fact.objects.get(status="active")
        assert (fact.status, restored.text) == ("retired", fact.text)
        fact = restored


def test_conversations_are_erased_from_their_page_once_that_is_confirmed(server, thread, alice, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    for how, doomed in (("mouse", thread), ("keyboard", thread_of(alice))):
        page.goto(server.url + reverse("admin:threads_thread_change", args=[doomed.pk]))
        hand = Hand(page, how)
        hand.skip()
        hand.press(page.get_by_role("link", name="Delete").last)
        page.wait_for_url("**/delete/")
        if how == "mouse":
            assert_accessible(page)
        assert Thread.objects.filter(pk=doomed.pk).exists()
        hand.skip()
        hand.press(page.get_by_role("button", name="Yes"))
        page.wait_for_url(lambda address: "/delete/" not in address)
        assert not Thread.objects.filter(pk=doomed.pk).exists()


def test_a_person_is_kept_out_and_let_in_again_from_the_list(server, alice, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    people = server.url + reverse("admin:accounts_user_changelist")
    for action, active, how in (
        ("Sign the chosen people out and keep them out", False, "keyboard"),
        ("Let the chosen people sign in again", True, "mouse"),
    ):
        page.goto(f"{people}?is_active__exact={int(not active)}")
        hand = Hand(page, how)
        hand.skip()
        hand.tick(page.get_by_role("row", name="alice").get_by_role("checkbox"))
        hand.choose("select[name=action]", action)
        hand.press(page.get_by_role("button", name="Run"))
        expect(page.get_by_text("1 account")).to_be_visible()
        assert User.objects.get(pk=alice.pk).is_active is active
        assert User.objects.get(pk=staff.pk).is_active


def test_facts_are_corrected_and_merged_by_mouse_keyboard_and_touch(server, alice, staff, open_tab):  # noqa: F811
    thread = thread_of(alice)
    for how, size in HANDS.items():
        said = [say(thread, "user", f"I like the {colour} boat.") for colour in ("blue", "red")]
        one, two = (fact_row(alice, row, f"Likes boat {row.pk}.") for row in said)
        page = open_tab(server, staff, **size).page
        hand = Hand(page, how)

        page.goto(server.url + reverse("admin:memory_fact_change", args=[one.pk]))
        hand.skip()
        hand.press(page.get_by_role("button", name="Read the private text"))
        text = page.locator("#id_text")
        expect(text).to_have_value(one.text)
        hand.write(text, "Likes the blue boat.")
        hand.choose("#id_tone", "decision")
        hand.write("#id_reason", "Misheard.")
        hand.press(page.get_by_role("button", name="Correct", exact=True))
        expect(page.get_by_text("The fact was corrected")).to_be_visible()
        corrected = Fact.objects.get(text="Likes the blue boat.", status="active")
        one.refresh_from_db()
        assert (one.status, one.superseded_by, corrected.tone) == ("superseded", corrected, "decision")

        page.goto(server.url + reverse("admin:memory_fact_changelist") + "?status__exact=active")
        hand.skip()
        for fact in (corrected, two):
            hand.tick(page.locator(f"input[name=_selected_action][value='{fact.pk}']"))
        hand.choose("select[name=action]", "Merge the chosen…")
        hand.press(page.get_by_role("button", name="Run"))
        expect(page.get_by_role("heading", name="What is left of them")).to_be_visible()
        if how == "touch":
            assert_accessible(page)
            assert_fits(page)
        hand.write("#id_text", f"Likes boats, said {how}.")
        hand.write("#id_reason", "The same.")
        hand.press(page.get_by_role("button", name="Merge", exact=True))
        expect(page.get_by_text("The facts were merged")).to_be_visible()
        merged = Fact.objects.get(text=f"Likes boats, said {how}.")
        assert set(Fact.objects.filter(superseded_by=merged)) == {corrected, two}
        assert {proof.message_id for proof in merged.evidence.all()} == {row.pk for row in said}
        last = FactLog.objects.order_by("-pk").values_list("actor", "action", "reason")[:2]
        assert list(last) == [(staff.pk, "merge", "The same."), (staff.pk, "correct", "Misheard.")]


def test_people_and_what_their_group_may_read_are_set_by_mouse_keyboard_and_touch(server, staff, open_tab):  # noqa: F811
    for how, size in HANDS.items():
        page = open_tab(server, staff, **size).page
        hand = Hand(page, how)

        def take(field, words, hand=hand, page=page):
            """Find rows in a picker by their words, and take all that are found."""
            hand.write(f"#id_{field}_input", words)
            if hand.keyboard:
                page.keyboard.press("Enter")
            else:
                hand.press(f"#id_{field}_add_all")

        def save(hand=hand, page=page):
            hand.press(page.get_by_role("button", name="Save", exact=True))
            expect(page.get_by_text("successfully").first).to_be_visible()

        page.goto(server.url + reverse("admin:auth_group_add"))
        hand.skip()
        hand.write("#id_name", f"readers by {how}")
        take("permissions", "can read the private text")
        expect(page.locator("#id_permissions_to option")).to_have_count(1)
        save()

        page.goto(server.url + reverse("admin:accounts_user_add"))
        hand.skip()
        hand.write("#id_username", f"dora-{how}")
        for field in ("#id_password1", "#id_password2"):
            hand.write(field, "a long enough phrase")
        save()
        dora = User.objects.get(username=f"dora-{how}")
        page.wait_for_url(f"**/{dora.pk}/change/")
        assert dora.check_password("a long enough phrase") and not dora.has_perm("threads.read_private")
        hand.tick("#id_is_staff")
        for count in (1, 0, 1):
            if count:
                take("groups", f"readers by {how}")
            else:
                hand.press("#id_groups_remove_all")
            expect(page.locator("#id_groups_to option")).to_have_count(count)
        save()
        assert User.objects.get(pk=dora.pk).has_perm("threads.read_private")

    # What the group may do can be taken back.
    page.goto(server.url + reverse("admin:auth_group_change", args=[dora.groups.get().pk]))
    assert_accessible(page)
    assert_fits(page)
    hand.press("#id_permissions_remove_all")
    expect(page.locator("#id_permissions_to option")).to_have_count(0)
    save()
    assert not User.objects.get(pk=dora.pk).has_perm("threads.read_private")
