"""What a test committed is gone before the next."""

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import connection

from tests.chat.records import say
from tests.emptying import WRITTEN_BY_MIGRATIONS
from threads.lifecycle import create_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("_again", [1, 2])
def test_nothing_is_left_of_the_test_before_but_what_migrations_write(_again, alice):
    tables = set(connection.introspection.django_table_names(only_existing=True)) - WRITTEN_BY_MIGRATIONS
    models = [model for model in apps.get_models() if model._meta.db_table in tables and model._meta.managed]
    assert {
        model._meta.label: model._default_manager.count() for model in models if model._default_manager.count()
    } == {
        "accounts.User": 1,
        "threads.Thread": 1,
        "threads.Generation": 1,
    }
    assert Permission.objects.count() > 50
    say(create_thread(alice), "words")
