"""Verdicts by keyboard alone, and the comparison that they give."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from memory import fact_embedding
from shadow.models import ProposalReview, ShadowFactProposal
from tests.browser import PHONE, chromium_browser, open_tab  # noqa: F401  # fixtures
from tests.browser_checks import assert_accessible, assert_fits
from tests.chat.conftest import server  # noqa: F401  # fixture
from tests.memory.facts import fact_row
from tests.shadow.records import proposal_row, run_row
from tests.threads.records import exchange, thread_of
from threads.models import PrivateReading

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DESKTOP = {"viewport": {"width": 1360, "height": 860}}
VERDICTS = ("correct", "wrong", "duplicate", "out-of-scope")


@pytest.fixture
def staff(charlie):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    return charlie


@pytest.fixture
def proposals(alice):
    thread = thread_of(alice)
    said, _answer = exchange(thread, "I prefer tea, and I sail on Sundays.", "Good to know.")
    fact_row(alice, said, "Prefers tea.")
    fact_embedding.embed_facts()
    runs = [run_row(thread, path="hot", path_reason="", model="claude-opus-5-5"), run_row(thread, model="small")]
    return [
        proposal_row(
            said,
            "Prefers tea." if number == 0 else f"Sails on Sunday {number}.",
            run=runs[number % 2],
            position=number // 2,
            validation_error="There is no message 999." if number == 7 else "",
        )
        for number in range(50)
    ]


def test_fifty_proposals_are_judged_with_the_keyboard_alone(server, staff, proposals, open_tab):  # noqa: F811
    tab = open_tab(server, staff, **DESKTOP)
    page = tab.page
    page.goto(server.url + reverse("admin:shadow_shadowfactproposal_review"))
    assert_accessible(page)
    assert not PrivateReading.objects.exists()
    begin = page.get_by_role("button", name="Judge all")
    for _step in range(80):
        if begin.evaluate("element => element === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    progress = page.locator("#review-progress")
    expect(progress).to_contain_text("1 of 50")
    expect(page.get_by_role("listitem").filter(has_text="Prefers tea.")).to_be_visible()
    assert_accessible(page)
    # A note, whose letters are no verdicts; on, and back.
    page.keyboard.press("e")
    page.keyboard.type("cold and wet")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(progress).to_contain_text("2 of 50")
    page.keyboard.press("n")
    expect(progress).to_contain_text("3 of 50")
    page.keyboard.press("p")
    expect(progress).to_contain_text("2 of 50")
    for number in range(1, 50):
        expect(progress).to_contain_text(f"{number + 1} of 50")
        if number == 7:
            expect(page.get_by_text("There is no message 999.")).to_be_visible()
            expect(page.get_by_text("this is the evidence")).to_have_count(0)
        page.keyboard.press("1234"[number % 4] if number % 2 else "cwdo"[number % 4])
    expect(page.get_by_text("This sitting is over")).to_be_visible()
    judged = list(ProposalReview.objects.order_by("proposal").values_list("verdict", "reviewer", "note"))
    assert judged == [(VERDICTS[n % 4], staff.pk, "" if n else "cold and wet") for n in range(50)]
    read = PrivateReading.objects.filter(what="proposal", reader=staff).values_list("first_id", flat=True)
    assert set(read) == {proposal.pk for proposal in proposals}

    page.goto(server.url + reverse("admin:shadow_shadowrun_comparison"))
    page.wait_for_load_state("networkidle")
    assert_accessible(page)
    assert_fits(page)
    # 13 of 25 hot ones were found correct.
    row = page.get_by_role("row", name="hot").filter(has_text="0.52")
    expect(row).to_contain_text("0.33–0.70")
    page.get_by_text("1 pair", exact=True).click()
    page.get_by_role("button", name="f:").first.click()
    expect(page.get_by_text("this is the evidence").first).to_be_visible()
    assert_accessible(page)


def test_the_queue_and_the_comparison_fit_a_phone_in_the_dark_and_in_chinese(
    server,  # noqa: F811
    staff,
    proposals,
    open_tab,  # noqa: F811
):
    staff.language = "zh-hans"
    staff.save()
    page = open_tab(server, staff, color_scheme="dark", **PHONE).page
    page.goto(server.url + reverse("admin:shadow_shadowfactproposal_review"))
    page.get_by_role("button", name="评判全部").click()
    expect(page.locator("#review-progress")).to_contain_text("第 1 条，共 50 条")
    assert_accessible(page)
    assert_fits(page)
    page.goto(server.url + reverse("admin:shadow_shadowrun_comparison"))
    page.wait_for_load_state("networkidle")
    assert_accessible(page)
    assert_fits(page)
    assert ShadowFactProposal.objects.count() == 50
