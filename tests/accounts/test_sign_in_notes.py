"""Notes of sign-ins belong to the account that they name, as long as there is one."""

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog

from accounts import erasing
from accounts.models import User
from tests.accounts.test_erasing import places_with
from tests.conftest import make_person


@pytest.mark.django_db
def test_notes_of_sign_ins_follow_a_new_name_and_go_with_the_account(alice, bob):
    """However the name was typed. Whoever has the same name in other letters keeps what is theirs."""

    def note(name, address="192.0.2.1"):
        AccessLog.objects.create(username=name, ip_address=address, user_agent="one", path_info="/login/")
        AccessAttempt.objects.create(
            username=name, ip_address=address, user_agent="one", path_info="/login/", failures_since_start=1
        )

    User.objects.create(username="ALICE")
    for name in ("alice", "Alice", "ALICE", "bob"):
        note(name)
    note("alicia")
    note("Alice", "192.0.2.2")
    alice.username = "alicia"
    alice.save()
    for table in (AccessLog, AccessAttempt):
        assert set(table.objects.values_list("username", flat=True)) == {"alicia", "ALICE", "bob"}
    exported = [record for record in erasing.export_user(alice) if record["record"] == "sign_in"]
    assert [record["address"] for record in exported] == ["192.0.2.1"] * 3 + ["192.0.2.2"]
    note("Alicia", "192.0.2.3")
    erasing.erase_user(alice)
    for table in (AccessLog, AccessAttempt):
        assert set(table.objects.values_list("username", flat=True)) == {"ALICE", "bob"}


@pytest.mark.django_db
def test_notes_of_sign_ins_by_an_e_mail_address_go_with_the_account(alice, bob):
    """And with the address, when the account gets another. One that two people share stays with the other."""
    for name in ("old@example.org", "Alice@Example.org", "shared@example.org"):
        told = {"username": name, "ip_address": "192.0.2.1", "user_agent": "one", "path_info": "/login/"}
        AccessLog.objects.create(**told)
        AccessFailureLog.objects.create(**told)
        AccessAttempt.objects.create(**told, failures_since_start=1)
    alice.email = "old@example.org"
    alice.save()
    alice.email = "alice@example.org"
    alice.save()
    assert places_with("old@example.org") == []
    erasing.erase_user(alice)
    assert places_with("alice@example.org") == []
    for person in (bob, make_person("charlie")):
        person.email = "shared@example.org"
        person.save()
    erasing.erase_user(bob)
    assert AccessFailureLog.objects.get().username == "shared@example.org"
