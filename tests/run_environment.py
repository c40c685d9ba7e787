"""The environment of a test run: a pytest plugin, loaded before Django's settings are (`-p` in
pyproject.toml).

The person's own variables stay out: no test reaches their database, their data folder or a model that costs
money. Only DATABASE_URL counts: set, the run uses that server instead of a temporary one. When the run is over, the
process has the environment again that the run found.
"""

import os
from collections.abc import Generator

import pytest

from tests.cluster import RunFolder, TemporaryCluster

_key = pytest.StashKey[TemporaryCluster]()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    restore_at_end(early_config)
    for name in list(os.environ):
        if name.startswith(("MAXCLAW_", "ANTHROPIC_")) or name == "DATABASE_LISTEN_URL":
            del os.environ[name]
    folder = RunFolder()
    early_config.add_cleanup(folder.remove)
    os.environ["MAXCLAW_DATA_DIR"] = str(folder.data_dir)
    if not os.environ.get("DATABASE_URL"):
        cluster = TemporaryCluster(folder=folder)
        early_config.stash[_key] = cluster
        early_config.add_cleanup(cluster.stop)
        os.environ["DATABASE_URL"] = cluster.url
    return (yield)


def restore_at_end(config: pytest.Config) -> None:
    """Give back, at the end of the run, each variable that is here now, and take away what came since."""
    found = dict(os.environ)

    def restore() -> None:
        for name in os.environ.keys() - found.keys():
            del os.environ[name]
        os.environ.update(found)

    config.add_cleanup(restore)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the server here, so that `--help` and `--collect-only` start nothing."""
    cluster = session.config.stash.get(_key, None)
    if cluster is not None and not session.config.option.collectonly:
        cluster.start()


def pytest_report_header() -> str:
    return f"database: {os.environ['DATABASE_URL']}"
