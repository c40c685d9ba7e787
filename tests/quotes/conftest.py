"""What tests of quotes have: a configured model, so that words are taken, and none that answers them."""

import pytest

from llm import catalog
from tests.agent.conftest import emulator, emulator_process  # noqa: F401  # fixtures


@pytest.fixture
def model(settings):
    settings.EMULATOR_URL = "http://127.0.0.1:9"
    catalog.load_catalog()
