"""What every test has: three people, and browser tests only where there is a browser."""

import os
import shutil

import pytest

PASSWORD = "correct horse battery"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def chromium_path() -> str | None:
    """The machine's Chromium, or None."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave browser tests out where there is no browser. Not in CI: there a missing browser fails them."""
    if chromium_path() or os.environ.get("CI", "").lower() == "true":
        return
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("browser")]
        config.stash[_left_out] = len(left_out)


_left_out = pytest.StashKey[int]()


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
