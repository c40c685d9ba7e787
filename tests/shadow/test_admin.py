"""Shadows in the console: what is private is read by a permission of its own, and noted."""

import html
import json
import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from accounts.models import User
from llm.emulator.client import tool_use
from llm.models import ModelCall
from maxclaw import clock
from shadow import admin_comparison
from shadow.models import ProposalReview
from tests.memory.facts import fact_row
from tests.shadow.records import proposal_row, run_row
from tests.threads.records import say, thread_of
from threads.models import PrivateReading

pytestmark = pytest.mark.django_db
REVIEW, COMPARISON, PAIR = (
    "admin:shadow_shadowfactproposal_review",
    "admin:shadow_shadowrun_comparison",
    "admin:shadow_shadowrun_pair",
)


@pytest.fixture
def said(alice):
    return say(thread_of(alice), "user", "I prefer tea.")


def helper(client, *codenames):
    """A staff member who has these permissions alone."""
    person = User.objects.create_user("helper", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return person


def test_the_list_of_runs_says_why_one_waits_or_came_to_nothing(client, said):
    waits = {"path": "", "path_reason": "", "error": "no-budget", "not_before": clock.now()}
    run_row(said.thread, status="queued", **waits)
    run_row(said.thread, status="failed", error="transient")
    helper(client, "view_shadowrun")
    page = client.get(reverse("admin:shadow_shadowrun_changelist")).content.decode()
    assert "the budget for today is spent" in page and "transient error" in page
    assert "cold: there is no request to follow" in page


def test_a_pair_shows_its_words_to_those_who_may_read_them_and_each_part_is_noted(client, alice, bob, said):
    fact, proposal = fact_row(alice, said, "Prefers tea."), proposal_row(said, "Likes tea.")
    theirs = proposal_row(say(thread_of(bob), "user", "I prefer milk."), "Likes milk.")
    pair = {"pair": f"f:{fact.pk} p:{proposal.pk}"}
    person = helper(client, "view_shadowrun")
    page = client.get(reverse(COMPARISON)).content.decode()
    assert "Prefers tea" not in page and "Likes tea" not in page and "Pair by meaning" not in page
    assert client.post(reverse(PAIR), pair).status_code == 403
    assert client.post(reverse(COMPARISON)).status_code == 403
    assert not PrivateReading.objects.exists() and not ModelCall.objects.exists()
    person.user_permissions.add(Permission.objects.get(codename="read_private"))
    assert client.get(reverse(PAIR), pair).status_code == 405
    for wrong in (f"f:{fact.pk} p:{theirs.pk}", f"f:0 p:{proposal.pk}", f"p:1 p:{proposal.pk}", f"f:{fact.pk}", ""):
        assert client.post(reverse(PAIR), {"pair": wrong}).status_code == 404
    shown = client.post(reverse(PAIR), pair).content.decode()
    assert "Prefers tea." in shown and "Likes tea." in shown and "I prefer tea." in shown
    noted = set(PrivateReading.objects.values_list("what", "owner", "first_id"))
    assert noted == {
        ("fact", alice.pk, fact.pk),
        ("proposal", alice.pk, proposal.pk),
        ("conversation", alice.pk, said.pk),
    }


def test_each_pair_of_the_report_can_be_reached(client, monkeypatch, alice, said):
    monkeypatch.setattr(admin_comparison, "PAIRS_SHOWN", 4)
    run = run_row(said.thread)
    facts = [fact_row(alice, said, f"Fact {number}.") for number in range(2)]
    proposals = [proposal_row(said, f"Proposal {number}.", run=run, position=number) for number in range(5)]
    helper(client, "view_shadowrun", "read_private")
    listed = []
    for page in (1, 2, 3):
        shown = client.get(reverse(COMPARISON), {"days": 30, "evidence": page})
        content = shown.content.decode()
        assert all(f"?days=30&amp;evidence={other}#evidence" in content for other in (1, 2, 3))
        listed += re.findall(r'name="pair" value="(f:\d+ p:\d+)"', content)
        back = re.search(r'name="back" value="([^"]+)"', content).group(1)
    # What has nothing to show is not drawn: nobody paid for anything here.
    assert [name for name, *_rest in shown.context["charts"]] == ["coverage", "verdicts"]
    assert listed == [f"f:{fact.pk} p:{proposal.pk}" for fact in facts for proposal in proposals]
    opened = client.post(reverse(PAIR), {"pair": listed[-1], "back": html.unescape(back)}).content.decode()
    assert f"{reverse(COMPARISON)}?days=30&amp;evidence=3" in opened and "Proposal 4." in opened


def test_verdicts_need_their_permission_and_the_newest_one_stands(client, said):
    proposal = proposal_row(said)
    posted = {"sitting": f"{proposal.pk},999999", "place": "0", "verdict": "wrong", "note": "  no  "}
    person = helper(client, "view_shadowfactproposal", "read_private")
    assert client.post(reverse(REVIEW), posted).status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="add_proposalreview"))
    # What is gone is told, judged by nobody, and passed over.
    assert "not there any more" in client.post(reverse(REVIEW), posted).content.decode()
    assert "sitting is over" in client.post(reverse(REVIEW), posted | {"place": "1"}).content.decode()
    client.post(reverse(REVIEW), posted | {"verdict": "correct", "note": ""})
    client.post(reverse(REVIEW), posted | {"verdict": "maybe"})
    client.post(reverse(REVIEW), posted | {"verdict": "", "go": "next"})
    client.post(reverse(REVIEW), posted | {"sitting": "x,-1", "place": "-7", "verdict": "wrong"})
    review = ProposalReview.objects.get()
    assert (review.verdict, review.note, review.reviewer, review.owner) == ("correct", "", person, said.owner)


@pytest.mark.django_db(transaction=True)
def test_a_light_model_is_asked_from_the_page_and_a_wrong_answer_pairs_nothing(client, emulator, alice, said):
    fact, proposal = fact_row(alice, said, "Prefers tea."), proposal_row(said, "Likes tea.")
    helper(client, "view_shadowrun", "add_proposalreview")
    for second, pairs in ((1, [{"steward": f"f:{fact.pk}", "shadow": f"p:{proposal.pk}"}]), (2, None)):
        emulator.answer(
            tool_use("report_pairs", {"pairs": [{"first": 1, "second": second}]}), match={"contains": "Second list"}
        )
        found = json.loads(client.post(reverse(COMPARISON), {"format": "json"}).content)["semantic_coverage"]
        assert (found and found["pairs"]) == pairs
    assert ModelCall.objects.filter(purpose="comparison").count() == 2
