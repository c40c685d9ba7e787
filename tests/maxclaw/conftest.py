import os
import shutil
import tempfile
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tests.maxclaw.console_records import fill
from tests.maxclaw.running import processes_of, wait_until


@pytest.fixture(scope="module")
def data_dir():
    """A data folder, shared by a module's tests because making a cluster takes a second; reachable for
    everybody."""
    folder = Path(tempfile.mkdtemp(dir=Path(os.environ["MAXCLAW_DATA_DIR"]).parent))
    folder.chmod(0o755)
    yield folder
    wait_until(lambda: not processes_of(folder), what=f"the end of everything in {folder}")
    shutil.rmtree(folder)


@pytest.fixture
def take_back_a_migration(db):
    """Has the database lack a migration, the last of `maxclaw`, by what it records of them."""

    def take_back():
        [(app, last)] = MigrationLoader(connection).graph.leaf_nodes("maxclaw")
        MigrationRecorder(connection).record_unapplied(app, last)

    return take_back


@pytest.fixture
def staff(charlie):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    return charlie


@pytest.fixture
def thread(alice, staff):
    return fill(alice, staff)


@pytest.fixture
def console(client, staff):
    client.force_login(staff)
    return client
