"""A command on a database that is not ready for it ends with a line that says what to do."""

import sys

import pytest
from django.db import connection
from django.db.utils import ProgrammingError

import manage


@pytest.fixture
def command(django_db_setup, django_db_blocker, monkeypatch):
    """Runs `manage.py` on another database of the test's server, with these arguments after it."""

    def run(*arguments, **database):
        # A pool would go on with the database that it was made for.
        options = {name: value for name, value in connection.settings_dict["OPTIONS"].items() if name != "pool"}
        for name, value in {"OPTIONS": options, **database}.items():
            monkeypatch.setitem(connection.settings_dict, name, value)
        monkeypatch.setattr(sys, "argv", ["manage.py", *arguments])
        with django_db_blocker.unblock():
            connection.close()
            try:
                manage.main()
            finally:
                connection.close()

    return run


def test_a_database_without_migrations_is_named_and_what_to_do(command, capsys):
    with pytest.raises(SystemExit) as end:
        command("verify", "--all", NAME="postgres")
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert "migrations. Run: python manage.py migrate" in said
    assert said.count("\n") == 1


def test_a_database_that_does_not_answer_is_named_too(command, capsys):
    with pytest.raises(SystemExit):
        command("verify", "--all", NAME="no_such_database")
    assert "The database does not answer" in capsys.readouterr().err


def test_another_error_stays_what_it_is(command):
    with pytest.raises(ProgrammingError, match="no_such_table"):
        command("shell", "-c", "from django.db import connection; connection.cursor().execute('TABLE no_such_table')")
