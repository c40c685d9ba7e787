"""Configuration: environment variables, read once, refused in one line that names the variable."""

import re
import subprocess
import sys

import pytest

from maxclaw.configuration import ConfigurationError, Environment, database_settings
from tests.maxclaw.running import ROOT, environment

MALFORMED = {
    "DATABASE_URL": "mysql://db/maxclaw",
    "DATABASE_LISTEN_URL": "postgresql://db",
    "ANTHROPIC_BASE_URL": "localhost:8080",
    "MAXCLAW_PORT": "70000",
    "MAXCLAW_LEASE_SECONDS": "0",
    "MAXCLAW_BUDGET_USER_DOLLARS": "nan",
    "MAXCLAW_DEBUG": "perhaps",
    "MAXCLAW_EMBED_ORIGINS": "https://a.example.org, *.example.org",
    "MAXCLAW_ROLE": "boss",
    "MAXCLAW_TIME_ZONE": "Mars/Olympus",
    "MAXCLAW_CLOCK_SHIFT_SECONDS": "soon",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_variable_is_one_line_that_names_it(name, tmp_path):
    command = subprocess.run(
        [sys.executable, "-c", "import maxclaw.clock, maxclaw.settings"],
        cwd=ROOT,
        env=environment(tmp_path, **{name: MALFORMED[name]}),
        capture_output=True,
        text=True,
    )
    assert command.returncode == 2
    assert command.stdout == ""
    assert re.fullmatch(rf"maxclaw: {name} [^\n]+\.\n", command.stderr)


def test_a_server_of_ones_own_needs_the_name_of_its_model(tmp_path):
    command = subprocess.run(
        [sys.executable, "-c", "import maxclaw.settings"],
        cwd=ROOT,
        env=environment(tmp_path, ANTHROPIC_BASE_URL="http://127.0.0.1:8080"),
        capture_output=True,
        text=True,
    )
    assert command.stderr.startswith("maxclaw: MAXCLAW_MODEL must name the model")


def test_importing_settings_starts_nothing_and_touches_no_database(tmp_path):
    subprocess.run([sys.executable, "-c", "import maxclaw.settings"], cwd=ROOT, env=environment(tmp_path), check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600


def test_an_empty_variable_counts_as_unset():
    assert Environment({"N": " "}).number("N", 7) == 7


def test_a_number_below_its_minimum_is_refused():
    with pytest.raises(ConfigurationError, match="N must be at least 1, not 0"):
        Environment({"N": "0"}).number("N", 7, minimum=1)


@pytest.mark.parametrize("url", ["http://", "ftp://host", "http://host:port", "//host"])
def test_an_address_needs_scheme_host_and_a_real_port(url):
    with pytest.raises(ConfigurationError, match=r"^URL must be an address"):
        Environment({"URL": url}).url("URL")


def test_a_unix_socket_folder_and_quoted_characters_reach_the_database_settings():
    settings = database_settings("postgresql://p%40t:a%2Fb@/max%20claw?host=/run/my%20db&sslmode=disable")
    assert settings["NAME"] == "max claw"
    assert (settings["USER"], settings["PASSWORD"]) == ("p@t", "a/b")
    assert settings["HOST"] == "/run/my db"
    assert settings["OPTIONS"] == {"sslmode": "disable"}


def test_the_readme_lists_every_variable_with_its_default():
    """The table in the README against the calls in settings.py that read them."""
    source = (ROOT / "maxclaw" / "settings.py").read_text() + (ROOT / "maxclaw" / "clock.py").read_text()
    calls = re.findall(r'(?:env|ENVIRONMENT)\.\w+\(\s*"([A-Z_]+)"(?:,\s*([^,)]+))?', source)
    assert len(calls) > 25
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([^|]*) \|", (ROOT / "README.md").read_text(), re.MULTILINE))
    defaults = {"True": "1", "False": "0"}
    for name, default in calls:
        assert name in rows, f"{name} is missing in the README"
        literal = re.fullmatch(r'"?([\w./-]+)"?', default.strip())
        if literal and literal[1]:
            shown = defaults.get(literal[1], literal[1]).replace("_", "")
            assert shown in rows[name].replace(",", ""), f"{name}: the README does not show {shown}"
    assert set(rows) == {name for name, _ in calls}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", []),
        ("https://Desk.example.org", ["https://desk.example.org"]),
        ("https://desk.example.org:443/, http://localhost:80", ["https://desk.example.org", "http://localhost"]),
        ("http://127.0.0.1:9000,http://[::1]:9000", ["http://127.0.0.1:9000", "http://[::1]:9000"]),
    ],
)
def test_origins_are_read_as_browsers_name_them(written, read):
    assert Environment({"O": written}).origins("O") == read


@pytest.mark.parametrize(
    "word",
    [
        "*",
        "https://*",
        "null",
        "desk.example.org",
        "https://desk.example.org/page",
        "https://a:b@c",
        "ftp://x",
        "http://[",
        "http://x:99999",
    ],
)
def test_what_is_no_origin_is_refused(word):
    with pytest.raises(ConfigurationError, match="O must list origins"):
        Environment({"O": word}).origins("O")
