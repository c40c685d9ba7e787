"""Erasing and exporting: one way, whatever app, admin page or command asks for it.

Each app that keeps something of a person has an `erasure.py` with any of these functions:

- `export(user)`: yields one JSON-ready dict for each record of the user's;
- `holdings(user)`: yields what it keeps of the user, counted, for whoever is asked before erasing;
- `erase_user(user)`: erases or empties what it keeps of the user;
- `erase_thread(thread)`: the same for one thread;
- `also_erased(thread)`: yields threads that go along when this one goes;
- `threads_of(user)`: yields the user's threads;
- `narrow_thread(thread)`: adjusts what it keeps beside a thread that just became stricter;
- `move_island(old_id, new_id)`: an island whose root goes is named after another of its threads;
- `forget_fact(fact)`: takes out what it keeps of one fact.

They run inside one transaction, upper apps first, so that rows go before what they refer to. The same transaction asks
for the database's files to be rewritten (`maxclaw/rewriting.py`).
"""

import sys
from collections.abc import Iterator
from itertools import groupby
from types import ModuleType
from typing import Any, TypeVar

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models, transaction
from django.db.models import QuerySet
from django.utils.module_loading import autodiscover_modules

from accounts.models import User
from maxclaw import rewriting


def registered() -> list[ModuleType]:
    """Every app's erasure module, the uppermost app first."""
    autodiscover_modules("erasure")
    names = [f"{config.name}.erasure" for config in reversed(list(apps.get_app_configs()))]
    return [sys.modules[name] for name in names if name in sys.modules]


def export_user(user: User) -> Iterator[dict[str, Any]]:
    """Everything of a person's, record by record, from the account upwards."""
    for module in reversed(registered()):
        if hasattr(module, "export"):
            yield from module.export(user)


def holdings(user: User) -> list[str]:
    """What is kept of a person, as phrases with numbers. What there is none of is left out."""
    return [phrase for module in registered() if hasattr(module, "holdings") for phrase in module.holdings(user)]


Row = TypeVar("Row", bound=models.Model)


def in_batches(rows: QuerySet[Row], size: int = 200) -> Iterator[Row]:
    """The rows by id, read `size` at a time: an export of any length holds no more than that in memory."""
    last = 0
    while True:
        batch = list(rows.filter(pk__gt=last).order_by("pk")[:size])
        yield from batch
        if len(batch) < size:
            return
        last = batch[-1].pk


@transaction.atomic
def erase_thread(thread: models.Model) -> None:
    """Erase one thread with all that is kept beside it, its tasks too. Facts proved only there go with it;
    model calls keep their numbers and lose what they speak of."""
    modules = registered()
    going = _lock_family(modules, thread)
    for pk in sorted(going, reverse=True):
        _run(modules, "erase_thread", going[pk])
    rewriting.ask(at_once=False)


def _lock_family(modules: list[ModuleType], thread: models.Model) -> dict[Any, models.Model]:
    """Lock the threads that go, by id with what is locked of them, and hold the owner's others: contexts of theirs that
    were told what goes are ended, and what says so refers to them. All in one order, by id, so that two who erase
    never wait for each other in a circle. A running turn locks its thread before anything else, so whoever erases it
    does too; until then it may still start tasks, which are looked for once more."""
    while True:
        going = going_with(thread)
        owned = {other.pk for other in _threads_of(modules, getattr(thread, "owner", None))}
        locks = transaction.savepoint()
        for goes, run in groupby(sorted(owned | going.keys()), key=going.__contains__):
            _lock_rows(type(thread), list(run), "FOR UPDATE" if goes else "FOR KEY SHARE")
        now_going = going_with(thread)
        if now_going.keys() <= going.keys():
            transaction.savepoint_commit(locks)
            return now_going
        transaction.savepoint_rollback(locks)


def _threads_of(modules: list[ModuleType], user: Any) -> list[models.Model]:
    return [thread for module in modules if hasattr(module, "threads_of") for thread in module.threads_of(user)]


def going_with(thread: models.Model) -> dict[Any, models.Model]:
    """The threads that go when this one does, itself included, by id."""
    going = {thread.pk: thread}
    for module in registered():
        if hasattr(module, "also_erased"):
            going.update({other.pk: other for other in module.also_erased(thread)})
    return going


@transaction.atomic
def erase_user(user: User) -> None:
    """Erase a person: every thread, fact, file and session of theirs, and the account."""
    modules = registered()
    _lock_person(modules, user)
    _run(modules, "erase_user", user)
    rewriting.ask(at_once=True)


def _lock_person(modules: list[ModuleType], user: User) -> None:
    """Lock a person's threads, then the account, which waits for whoever is making another one (an import does), and
    then those that were made meanwhile: with the account locked there come no more."""
    locked: set[Any] = set()
    for _before_and_after_the_account in range(2):
        threads = {thread.pk: thread for thread in _threads_of(modules, user) if thread.pk not in locked}
        if threads:
            _lock_rows(type(next(iter(threads.values()))), sorted(threads), "FOR UPDATE")
        locked |= threads.keys()
        _lock_rows(User, [user.pk], "FOR UPDATE")


def narrow_thread(thread: models.Model) -> None:
    """Let every app adjust what it keeps beside a thread that just became stricter."""
    _run(registered(), "narrow_thread", thread)


def move_island(old_id: int, new_id: int) -> None:
    """Let every app rename an island."""
    _run(registered(), "move_island", old_id, new_id)


def forget_fact(fact: models.Model) -> None:
    """Let every app take out what it keeps of one fact."""
    _run(registered(), "forget_fact", fact)
    rewriting.ask(at_once=False)


def empty_admin_log(rows: type[models.Model], pks: list[Any]) -> None:
    """Keep that something was done to these rows in the admin, and blank what it called them."""
    LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(rows), object_id__in=[str(pk) for pk in pks]
    ).update(object_repr="", change_message="")


def _run(modules: list[ModuleType], name: str, *arguments: Any) -> None:
    for module in modules:
        if hasattr(module, name):
            with transaction.atomic():
                getattr(module, name)(*arguments)


def _lock_rows(model: type[models.Model], pks: list[Any], strength: str) -> None:
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        # Names of our own alone.
        cursor.execute(f"SELECT id FROM {table} WHERE id = ANY(%s) ORDER BY id {strength}", [pks])  # noqa: S608
