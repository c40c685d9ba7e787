"""What tests of turns have."""

import io
import json

import pytest
from django.core.management import call_command

from llm import catalog, router
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
    settings.POLL_SECONDS = 3600  # only a ring can have done it
    catalog.load_catalog()
    router.forget()  # a model that another test had fail is asked like any other
    yield emulator_process
    emulator_process.reset()
    close_all()


@pytest.fixture
def small_budget(settings, tmp_path):
    catalog = tmp_path / "catalog.toml"
    catalog.write_text("[models.emulator-main]\ncontext_budget = 16_000\n")
    settings.MAXCLAW_CATALOG = str(catalog)
    settings.MESSAGE_MAX_CHARS = 10**6


@pytest.fixture
def roomy_messages(monkeypatch):
    from agent import speaking

    monkeypatch.setattr(speaking, "MESSAGE_BUDGET_SHARE", 1.0)


@pytest.fixture
def run(tmp_path, alice, capsys):
    """Runs the command on lines; returns what it said (standard output and standard error)."""
    count = 0

    def call(*lines, user="alice", **options):
        nonlocal count
        count += 1
        file = tmp_path / f"{count}.jsonl"
        raw = [item if isinstance(item, bytes) else json.dumps(item, ensure_ascii=True).encode() for item in lines]
        file.write_bytes(b"\n".join(raw) + b"\n")
        out, err = io.StringIO(), io.StringIO()
        call_command("import_conversations", str(file), user=user, stdout=out, stderr=err, **options)
        return out.getvalue(), err.getvalue().replace(str(file), "FILE")

    return call


@pytest.fixture
def echo_tool():
    """A tool that says its words back."""
    from agent.registry import ToolContext, ToolOutput, tool, unregister

    @tool(
        name="echo",
        description="Says it back.",
        parameters={"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
        parallel_safe=True,
    )
    def echo(_context: ToolContext, arguments: dict) -> ToolOutput:
        return ToolOutput(arguments["words"])

    yield
    unregister("echo")
