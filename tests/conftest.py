"""What every test has: three people, and browser tests only where there is a browser."""

import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

from tests.emptying import empty_after_each

PASSWORD = "correct horse battery"
# The files that take longest, which a run begins with.
FIRST = (
    "test_two_servers.py",
    "test_serve.py",
    "test_long_history.py",
    "test_export_import.py",
    "test_every_page.py",
    "test_benchmarks.py",
    "test_page_states.py",
    "test_strangers.py",
    "test_review_browser.py",
    "test_admin_browser.py",
    "test_environment_setup.py",
)
# The first is the same browser without its windows: it starts in half the time.
CHROMIUM_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
)


def chromium_path() -> str | None:
    """The machine's Chromium, or None."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, so that no process ends with one while the others wait. Browser tests are left out where
    there is no browser; not in CI: there a missing browser fails them."""
    weight = {file: FIRST.index(file) if file in FIRST else len(FIRST) for file in {item.path.name for item in items}}
    items.sort(key=lambda item: (weight[item.path.name], not item.get_closest_marker("browser")))
    if chromium_path() or os.environ.get("CI", "").lower() == "true":
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("browser")]
        config.stash[_left_out] = len(left_out)


_left_out = pytest.StashKey[int]()


def pytest_configure() -> None:
    empty_after_each()
    # That a machine is busy is no fault of what is tested.
    patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("patient", settings(), **patient)
    settings.load_profile("patient")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    count = config.stash.get(_left_out, 0)
    if count:
        terminalreporter.write_line(
            f"{count} browser tests were left out: there is no Chromium on this machine.",
            yellow=True,
            bold=True,
        )


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the machine's Chromium."""
    path = chromium_path()
    assert path, "Chromium is missing: install Debian's package `chromium`."
    return path


@pytest.fixture(autouse=True)
def without_past():
    """No test depends on what another's calls taught of a model: of its tokens, nor of its health, by which models are
    asked in another order. Nor on the language and the zone of another's last request, which a thread keeps."""
    from django.utils import timezone, translation

    from llm import estimates, router

    translation.deactivate()
    timezone.deactivate()

    estimates.forget()
    router.forget()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup):
    """Connections come from a pool, as they do where MaxClaw serves: most units of work cost less than a new one."""
    from django.conf import settings
    from django.db import connection

    options = connection.settings_dict["OPTIONS"]
    connection.close()
    options["pool"] = {"min_size": 1, "max_size": 2 * settings.DATABASE_THREADS, "timeout": 30}
    yield
    connection.close()
    connection.close_pool()
    del options["pool"]


def make_person(username: str):
    from accounts.models import User

    return User.objects.create_user(username, password=PASSWORD)


@pytest.fixture
def alice(db):
    """The owner of what a test makes."""
    return make_person("alice")


@pytest.fixture
def bob(db):
    """Someone else with an account, who must not see it."""
    return make_person("bob")


@pytest.fixture
def charlie(db):
    """A third person, for tests in which two are not enough."""
    return make_person("charlie")
