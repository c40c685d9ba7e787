"""Model calls in the console: to read, never to change."""

import pytest
from django.urls import reverse

from accounts.models import User
from llm import catalog, ledger
from llm.prices import Usage
from tests.llm.requests import opened

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client):
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def call(alice):
    call, _body = opened(catalog.get("claude-opus-5-5"), owner=alice)
    ledger.close_call(call, outcome="complete", usage=Usage(100, 20, 300))
    return call


def test_calls_are_listed_with_their_cost_and_what_the_cache_gave(staff, call):
    page = staff.get(reverse("admin:llm_modelcall_changelist")).content.decode()
    assert "75 %" in page
    assert "claude-opus-5-5" in page
    assert "alice" in page


def test_an_open_call_is_listed_too(staff, alice):
    opened(catalog.get("emulator-main"), owner=alice)
    assert staff.get(reverse("admin:llm_modelcall_changelist")).status_code == 200


@pytest.mark.parametrize("name", ["modelcall", "requestheader"])
def test_nothing_can_be_added_changed_or_deleted(staff, call, name):
    pk = call.pk if name == "modelcall" else call.header_id
    assert staff.get(reverse(f"admin:llm_{name}_changelist")).status_code == 200
    assert staff.get(reverse(f"admin:llm_{name}_change", args=[pk])).status_code == 200
    assert staff.get(reverse(f"admin:llm_{name}_add")).status_code == 403
    assert staff.post(reverse(f"admin:llm_{name}_change", args=[pk]), {}).status_code == 403
    assert staff.post(reverse(f"admin:llm_{name}_delete", args=[pk]), {"post": "yes"}).status_code == 403


def test_a_person_without_staff_rights_sees_none_of_it(client, alice, call):
    client.force_login(alice)
    assert client.get(reverse("admin:llm_modelcall_changelist")).status_code == 302
