"""What tests of models have: the emulator as its own process."""

import pytest

from maxclaw.database_threads import close_all
from tests.emulator_server import running_emulator


@pytest.fixture(scope="session")
def emulator_process():
    with running_emulator() as control:
        yield control


@pytest.fixture
def emulator(emulator_process, settings):
    """The emulator as the configured model, emptied before each test."""
    emulator_process.reset()
    settings.EMULATOR_URL = emulator_process.base_url
    settings.MODEL_RETRY_BASE_SECONDS = 0.01
    yield emulator_process
    emulator_process.reset()


@pytest.fixture
def database_threads():
    """For tests whose code works in the database off the event loop."""
    yield
    close_all()
