"""One emulator process for all tests of this folder, emptied before each."""

import anthropic
import pytest

from tests.emulator_server import running_emulator


@pytest.fixture(scope="session")
def emulator_process():
    with running_emulator() as control:
        yield control


@pytest.fixture
def emulator(emulator_process):
    emulator_process.reset()
    emulator_process.set_pace("instant")
    emulator_process.settings(bodies=True, log_limit=1000, demo_faults=False, allow_leading_assistant=False)
    return emulator_process


@pytest.fixture
def client(emulator):
    with anthropic.Anthropic(api_key="test-key", base_url=emulator.base_url, max_retries=0) as sdk:
        yield sdk
