"""The console in a browser: accessible, without an error, without a request elsewhere, and by keyboard alone."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.models import User
from memory.models import Fact
from tests.browser import PHONE, chromium_browser, open_tab  # noqa: F401  # fixtures
from tests.browser_checks import assert_accessible, assert_fits
from tests.chat.conftest import emulator, emulator_process, server  # noqa: F401  # fixtures
from tests.maxclaw.console_records import SECRET, fill, lapse
from threads.models import Message, PrivateReading, Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DESKTOP = {"viewport": {"width": 1360, "height": 860}}


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


def names_and_addresses(thread):
    """The console's own pages, and one of each kind of the theme's."""
    return {
        "overview": reverse("admin:index"),
        "health": reverse("admin:agent_health"),
        "costs": reverse("admin:llm_modelcall_costs"),
        "memory": reverse("admin:memory_fact_overview"),
        "facts": reverse("admin:memory_fact_changelist"),
        "fact": reverse("admin:memory_fact_change", args=[Fact.objects.latest("pk").pk]),
        "list": reverse("admin:threads_thread_changelist"),
        "calls": reverse("admin:llm_modelcall_changelist"),
        "row": reverse("admin:threads_thread_change", args=[thread.pk]),
        "person": reverse("admin:accounts_user_change", args=[thread.owner_id]),
        "erase": reverse("admin:accounts_user_delete", args=[thread.owner_id]),
    }


@pytest.mark.parametrize(
    ("size", "scheme", "language"), [(DESKTOP, "light", "en"), (PHONE, "dark", "zh-hans")], ids=["desktop", "phone"]
)
def test_pages_are_accessible_and_fit(server, thread, staff, open_tab, size, scheme, language):  # noqa: F811
    User.objects.filter(pk=staff.pk).update(language=language)
    page = open_tab(server, staff, color_scheme=scheme, **size).page
    for address in names_and_addresses(thread).values():
        page.goto(server.url + address)
        page.wait_for_load_state("networkidle")
        assert_accessible(page)
        assert_fits(page)


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


def test_private_text_is_read_with_the_keyboard_alone(server, thread, staff, open_tab):  # noqa: F811
    before = PrivateReading.objects.count()
    page = open_tab(server, staff, **DESKTOP).page
    page.goto(server.url + reverse("admin:threads_message_change", args=[Message.objects.earliest("pk").pk]))
    button = page.get_by_role("button", name="Read the private text")
    for _step in range(80):
        if button.evaluate("element => element === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".console-text").first).to_contain_text(SECRET)
    assert_accessible(page)
    assert PrivateReading.objects.count() == before + 1


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


def test_a_person_is_erased_with_the_keyboard_alone(server, thread, alice, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    page.goto(server.url + reverse("admin:accounts_user_delete", args=[alice.pk]))

    def type_name(name):
        field = page.locator("#id_username")
        for _step in range(80):
            if field.evaluate("element => element === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.type(name)
        page.keyboard.press("Enter")

    type_name("alise")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was erased")
    assert_accessible(page)
    assert User.objects.filter(pk=alice.pk).exists()
    type_name("alice")
    expect(page.get_by_text("alice was erased")).to_be_visible()
    assert not User.objects.filter(pk=alice.pk).exists()
    assert User.objects.filter(pk=staff.pk).exists()


def test_a_fact_is_retired_and_restored_with_the_keyboard_alone(server, thread, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    fact = Fact.objects.get(status="active")
    page.goto(server.url + reverse("admin:memory_fact_change", args=[fact.pk]))
    for button, told in (("Retire", "The fact was retired."), ("Restore", "The fact was restored")):
        reason = page.get_by_label("Reason")
        for _step in range(80):
            if reason.evaluate("element => element === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # without a reason nothing goes out
        page.keyboard.type("No longer so.")
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name=button, exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_text(told)).to_be_visible()
    fact.refresh_from_db()
    assert (fact.status, Fact.objects.get(status="active").text) == ("retired", fact.text)


def test_a_conversation_is_erased_from_its_page_once_that_is_confirmed(server, thread, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    page.goto(server.url + reverse("admin:threads_thread_change", args=[thread.pk]))
    page.get_by_role("link", name="Delete").last.click()
    page.wait_for_url("**/delete/")
    assert_accessible(page)
    assert Thread.objects.filter(pk=thread.pk).exists()
    page.get_by_role("button", name="Yes").click()
    page.wait_for_url(lambda address: not address.endswith("/delete/"))
    assert not Thread.objects.filter(pk=thread.pk).exists()


def test_a_person_is_kept_out_and_let_in_again_from_the_list(server, alice, staff, open_tab):  # noqa: F811
    page = open_tab(server, staff, **DESKTOP).page
    people = server.url + reverse("admin:accounts_user_changelist")
    for action, active in (("deactivate", False), ("activate", True)):
        page.goto(f"{people}?is_active__exact={int(not active)}")
        page.get_by_role("row", name="alice").get_by_role("checkbox").check()
        page.locator("select[name=action]").select_option(action)
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_text("1 account")).to_be_visible()
        assert User.objects.get(pk=alice.pk).is_active is active
        assert User.objects.get(pk=staff.pk).is_active
