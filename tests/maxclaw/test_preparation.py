"""What a server does to its database and folder before it starts."""

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from maxclaw import preparation
from maxclaw.preparation import PreparationError, ensure_first_user

pytestmark = pytest.mark.django_db


def test_a_database_without_users_gets_an_administrator_with_a_random_password(client):
    from accounts.models import User

    login = ensure_first_user()
    user = User.objects.get()
    assert (user.username, user.is_superuser, user.is_staff) == ("admin", True, True)
    assert login.username == "admin"
    assert login.password and len(login.password) >= 16 and user.check_password(login.password)
    again = ensure_first_user()
    assert (again.username, again.password) == ("admin", None)


def test_the_first_password_can_be_given(settings):
    settings.ADMIN_PASSWORD = "as one wishes"
    assert ensure_first_user().password == "as one wishes"


def test_no_administrator_is_made_where_people_have_accounts(alice):
    assert ensure_first_user() == preparation.Login("", None)
    assert type(alice).objects.count() == 1


def test_a_database_that_is_too_old_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(preparation, "postgresql_version", lambda: 140_011)
    with pytest.raises(PreparationError, match="The database is PostgreSQL 14; MaxClaw needs 15 or newer"):
        preparation.check_database()


@pytest.mark.django_db(transaction=True)
def test_preparing_waits_while_another_server_prepares():
    parameters = connection.get_connection_params()
    with psycopg.connect(**parameters) as other, preparation.one_at_a_time():
        locked = "SELECT pg_try_advisory_lock(%s, %s)"
        assert other.execute(locked, preparation.LOCK_KEY).fetchone() == (False,)


def test_static_files_are_collected_anew_only_after_a_change(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path / "static"
    source = tmp_path / "source"
    source.mkdir()
    (source / "own.css").write_text("p {}")
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    preparation.collect_static_files()
    collected = settings.STATIC_ROOT / "own.css"
    assert collected.read_text() == "p {}"
    collected.unlink()
    preparation.collect_static_files()
    assert not collected.exists()
    (source / "own.css").write_text("p { margin: 0 }")
    preparation.collect_static_files()
    assert collected.read_text() == "p { margin: 0 }"


def test_every_change_of_a_model_has_its_migration():
    call_command("makemigrations", "--check", "--dry-run", verbosity=1)
