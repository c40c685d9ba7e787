"""Migrations go back as well as forward, and the models say what they made."""

import io

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection


def rules_in_the_database():
    """Every constraint and trigger of ours, with its definition."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = 'public'::regnamespace"
            " UNION SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger"
            "   WHERE NOT tgisinternal"
            " UNION SELECT '', proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
            "   AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')"
        )
        return set(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_every_migration_can_be_taken_back():
    before = rules_in_the_database()
    try:
        # Everything of ours but the account, which Django's own tables refer to, stands on the ledger.
        call_command("migrate", "llm", "zero", verbosity=0)
        left = {table for table, _name, _definition in rules_in_the_database()}
        assert not {table for table in left if table.startswith(("llm_", "threads_", "agent_"))}
        assert "" not in left, "a trigger's function was left behind"
    finally:
        call_command("migrate", verbosity=0)
        ContentType.objects.clear_cache()
    assert rules_in_the_database() == before


@pytest.mark.django_db
def test_no_change_of_a_model_is_without_its_migration():
    out = io.StringIO()
    call_command("makemigrations", check=True, dry_run=True, stdout=out)
    assert "No changes detected" in out.getvalue()
