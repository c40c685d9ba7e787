"""The list of database rules is whole: no trigger without its sentence, no sentence without its trigger."""

import sys

import pytest
from django.apps import apps
from django.db import connection
from django.utils.module_loading import autodiscover_modules


def rule_modules():
    autodiscover_modules("rules")
    names = [f"{config.name}.rules" for config in apps.get_app_configs()]
    return [sys.modules[name] for name in names if name in sys.modules]


@pytest.mark.django_db
def test_triggers_in_the_database_are_the_written_list():
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgname")
        found = [name for (name,) in cursor.fetchall()]
    written = sorted(
        name for module in rule_modules() for name in {**module.TRIGGERS, **getattr(module, "KEEPING_STEP", {})}
    )
    assert found == written


@pytest.mark.django_db
def test_trigger_functions_pin_their_search_path():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.proname, p.proconfig FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
            " WHERE NOT t.tgisinternal"
        )
        assert all("search_path=pg_catalog, public" in (config or []) for _name, config in cursor.fetchall())


@pytest.mark.django_db
def test_every_named_rule_exists_in_the_database():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint UNION SELECT tgname FROM pg_trigger UNION SELECT relname FROM pg_class"
        )
        found = {name for (name,) in cursor.fetchall()}
    assert [name for module in rule_modules() for name in module.RULES if name not in found] == []


@pytest.mark.django_db
def test_every_row_beside_a_thread_shares_its_owner():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.conrelid::regclass::text FROM pg_constraint c WHERE c.contype = 'f'"
            " AND c.confrelid = 'threads_thread'::regclass AND c.conkey = ARRAY("
            "   SELECT a.attnum FROM unnest(ARRAY['thread_id', 'owner_id']) WITH ORDINALITY wanted(name, place)"
            "   JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attname = wanted.name ORDER BY wanted.place)"
        )
        bound = {table for (table,) in cursor.fetchall()}
    tables = [model for model in apps.get_models() if model._meta.managed]
    columns = {model: {field.column for field in model._meta.local_fields} for model in tables}
    beside = {
        model._meta.db_table
        for model, names in columns.items()
        # The ledger stands below threads: its ids are plain, and outlive what they name.
        if {"thread_id", "owner_id"} <= names and model._meta.app_label != "llm"
    }
    assert {"threads_message", "agent_turnevent"} <= beside
    assert beside - bound == set()
