"""Driving the database's own rules with plain SQL: a statement is refused, and the refusal names the rule."""

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction
from django.utils.module_loading import import_string, module_has_submodule

from threads.rules import refine


def all_rules():
    """Every app's rules."""
    found = {}
    for config in apps.get_app_configs():
        if module_has_submodule(config.module, "rules"):
            found |= import_string(f"{config.name}.rules.RULES")
    return found


def refused(rule, statement, *values):
    """The statement ends in an error that names the rule, at once or when its transaction commits."""
    connection.check_constraints()  # what the test wrote before stands
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        run(statement, *values)
        connection.check_constraints()
    violation = refine(caught.value, all_rules())
    assert violation is not None, caught.value
    assert violation.name == rule


def run(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def change(rule, row, column, value):
    """Changing one column of the row is refused."""
    refused(rule, f'UPDATE {row._meta.db_table} SET "{column}" = %s WHERE id = %s', value, row.pk)


def copy_of(rule, row, **changed):
    """Inserting a copy of the row with other values is refused."""
    statement, values = _insert(row, changed)
    refused(rule, statement, *values)


def insert_copy(row, **changed):
    """Insert a copy of the row with other values, the next id unless one is given."""
    statement, values = _insert(row, changed)
    run(statement, *values)


def _insert(row, changed):
    fields = [field for field in row._meta.concrete_fields if not field.primary_key or field.column in changed]
    values = [
        changed.get(field.column, field.get_db_prep_save(getattr(row, field.attname), connection)) for field in fields
    ]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    return f"INSERT INTO {row._meta.db_table} ({columns}) VALUES ({', '.join(['%s'] * len(fields))})", values
