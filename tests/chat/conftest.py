"""What tests of the chat have: a model that answers by script, a whole server, a browser."""

import pytest

from tests.agent.conftest import emulator, emulator_process  # noqa: F401  # fixtures
from tests.browser import chromium_browser, open_tab  # noqa: F401  # fixtures
from tests.live_server import running_server


@pytest.fixture
def server(transactional_db, emulator, settings):  # noqa: F811  # a fixture is asked for by its name
    """A running server whose model is the emulator."""
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
    with running_server() as running:
        yield running
