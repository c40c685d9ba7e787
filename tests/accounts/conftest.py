"""What tests of account pages have: a whole server whose model answers by script, and a browser."""

from tests.agent.conftest import emulator, emulator_process  # noqa: F401  # fixtures
from tests.browser import chromium_browser, open_tab  # noqa: F401  # fixtures
from tests.chat.conftest import server  # noqa: F401  # fixtures
