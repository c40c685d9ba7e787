"""The catalog: palettes by configuration, and every fault named with file and key."""

import json
import os
import subprocess
import sys
from decimal import Decimal

import pytest

from llm import catalog
from llm.catalog import ALL, UnknownModel
from maxclaw.configuration import ConfigurationError

LOCAL = """
categories = ["private", "work"]

[models.local]
context_window = 16_000
output_limit = 4_000
context_budget = 10_000
base_url = "http://localhost:8080/"
api_key_env = "LOCAL_KEY"
reads = ["private"]
prices = { input = 0.5, output = 1 }
thinking = "disabled"

[palettes.custom]
main = ["local", "claude-opus-5-5"]
light = ["local"]
"""


@pytest.fixture(autouse=True)
def unconfigured(settings):
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    settings.MAXCLAW_MODEL = settings.MAXCLAW_CATALOG = ""
    settings.EMULATOR_URL = "http://127.0.0.1:9999"


@pytest.fixture
def catalog_file(settings, tmp_path):
    def write(text):
        path = tmp_path / f"catalog-{len(list(tmp_path.iterdir()))}.toml"
        path.write_text(text, encoding="utf-8")
        settings.MAXCLAW_CATALOG = str(path)
        return path

    return write


def palettes():
    return {name: [model.name for model in catalog.palette(name)] for name in catalog.PALETTES}


def test_without_configuration_the_emulator_answers():
    assert palettes() == {"main": ["emulator-main"], "light": ["emulator-light", "emulator-light-all"]}
    assert catalog.emulator_in_use()
    main, (light, light_all) = catalog.palette("main")[0], catalog.palette("light")
    assert (main.reads("work"), light.reads("work"), light_all.reads("work")) == (True, False, True)
    assert main.base_url == "http://127.0.0.1:9999"
    assert (main.context_window, main.output_limit, main.context_budget) == (200_000, 16_384, 100_000)


def test_with_a_key_the_current_models_answer(settings):
    settings.ANTHROPIC_API_KEY = "sk-test"
    assert palettes() == {"main": ["claude-opus-5-5", "claude-sonnet-5-5"], "light": ["claude-haiku-5-5"]}
    assert not catalog.emulator_in_use()
    opus = catalog.get("claude-opus-5-5")
    assert (opus.base_url, opus.api_key) == ("https://api.anthropic.com", "sk-test")
    assert opus.context_budget == 200_000
    assert "sk-test" not in repr(opus)


def test_with_a_key_a_model_may_be_chosen(settings):
    settings.ANTHROPIC_API_KEY = "sk-test"
    settings.MAXCLAW_MODEL = "claude-sonnet-5"
    assert palettes() == {"main": ["claude-sonnet-5"], "light": ["claude-haiku-5-5"]}


def test_a_chosen_model_must_exist(settings):
    settings.ANTHROPIC_API_KEY = "sk-test"
    settings.MAXCLAW_MODEL = "claude-nothing"
    with pytest.raises(ConfigurationError, match="MAXCLAW_MODEL names 'claude-nothing'"):
        catalog.load_catalog()


@pytest.mark.parametrize("name", ["qwen3:8b", "claude-opus-5-5"])
def test_a_model_behind_a_base_url_stands_in_both_palettes_and_reads_no_category(settings, name):
    settings.ANTHROPIC_BASE_URL = "http://localhost:8080"
    settings.MAXCLAW_MODEL = name
    assert palettes() == {"main": [name], "light": [name]}
    model = catalog.get(name)
    assert model.wire_id == name
    assert model.base_url == "http://localhost:8080"
    assert model.reads("")
    assert not any(model.reads(category) for category in catalog.categories())
    assert not catalog.emulator_in_use()


def test_a_model_behind_a_base_url_can_be_tagged(settings, catalog_file):
    settings.ANTHROPIC_BASE_URL = "http://localhost:8080"
    settings.MAXCLAW_MODEL = "qwen3:8b"
    catalog_file(
        '[models."qwen3:8b"]\nreads = ["work"]\ncontext_window = 40_000\noutput_limit = 8_000\ncontext_budget = 30_000'
    )
    model = catalog.get("qwen3:8b")
    assert model.reads("work")
    assert not model.reads("personal")
    assert model.context_window == 40_000


def test_a_file_adds_models_categories_and_palettes(catalog_file, monkeypatch):
    monkeypatch.setenv("LOCAL_KEY", "k")
    catalog_file(LOCAL)
    assert palettes() == {"main": ["local", "claude-opus-5-5"], "light": ["local"]}
    assert catalog.categories() == ("private", "work")
    local = catalog.get("local")
    assert (local.base_url, local.api_key) == ("http://localhost:8080", "k")
    assert local.categories == {"private"}
    assert local.price_tiers[0].prices["input"] == Decimal("0.5")
    assert local.price_tiers[0].prices["cache_read"] is None
    assert local.thinking_parameter() == {"type": "disabled"}


def test_a_file_overrides_key_by_key(catalog_file):
    before = catalog.get("claude-sonnet-5-5")
    catalog_file("[models.claude-sonnet-5-5]\ncontext_budget = 50_000")
    after = catalog.get("claude-sonnet-5-5")
    assert after.context_budget == 50_000
    assert (after.context_window, after.prices) == (before.context_window, before.prices)


FAULTS = {
    "budget": ("[models.claude-opus-5]\ncontext_budget = 900_000", "models.claude-opus-5.context_budget is 900000"),
    "missing": ("[models.new]\nthinking = 'off'", "models.new.context_window is missing"),
    "type": ("[models.claude-opus-5]\ncontext_window = 'much'", "models.claude-opus-5.context_window must be"),
    "unknown key": ("[models.claude-opus-5]\nwindow = 5", "models.claude-opus-5.window is no key"),
    "unknown top": ("model = 5", "unknown key model"),
    "no table": ("models = 5", "models must be a table"),
    "no table of a model": ("[models]\nnew = 5", "models.new must be a table"),
    "price": ("[models.claude-opus-5]\nprices = { input = 'free' }", "models.claude-opus-5.prices needs a number"),
    "price key": ("[models.claude-opus-5]\nprices = { inputs = 1 }", "models.claude-opus-5.prices has no inputs"),
    "tiers": ("[models.claude-opus-5]\nprices = [{ input = 1 }, { input = 2 }]", "must give up_to_prompt_tokens"),
    "category": ("[models.claude-opus-5]\nreads = ['nothing']", "models.claude-opus-5.reads names 'nothing'"),
    "lifetime": ("[models.claude-opus-5]\nmessage_lifetime = '2h'", "message_lifetime must be one of 5m, 1h"),
    "order": ("[models.claude-opus-5]\nsystem_lifetime = '5m'\nmessage_lifetime = '1h'", "must not be longer"),
    "thinking": ("[models.claude-opus-5]\nthinking = 'hard'", "models.claude-opus-5.thinking must be one of"),
    "thinking budget": ("[models.claude-opus-5]\nthinking = 5", "models.claude-opus-5.thinking must be between"),
    "effort": ("[models.claude-opus-5]\neffort = 'huge'", "models.claude-opus-5.effort must be one of"),
    "palette": ("[palettes.custom]\nmain = ['nobody']\nlight = ['emulator-light']", "palettes.custom.main must name"),
    "palette name": ("[palettes.custom]\nheavy = ['emulator-main']", "palettes.custom.heavy is no palette"),
    "palette missing": ("[palettes.custom]\nmain = ['emulator-main']", "palettes.custom.light is missing"),
    "categories": ("categories = 'all'", "categories must be a list of names"),
    "syntax": ("[models", "is not TOML"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_the_file_and_the_key(catalog_file, name):
    text, problem = FAULTS[name]
    path = catalog_file(text)
    with pytest.raises(ConfigurationError) as refused:
        catalog.load_catalog()
    assert problem in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(settings):
    settings.MAXCLAW_CATALOG = "/nowhere/catalog.toml"
    with pytest.raises(ConfigurationError, match=r"/nowhere/catalog\.toml cannot be read"):
        catalog.load_catalog()


def test_a_fault_is_one_line_at_start(tmp_path):
    path = tmp_path / "catalog.toml"
    path.write_text("[models.claude-opus-5]\ncontext_budget = 999_999")
    environment = {**os.environ, "MAXCLAW_CATALOG": str(path), "DATABASE_URL": "postgresql://x@127.0.0.1:9/x"}
    command = [sys.executable, "manage.py", "check"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert f"{path}: models.claude-opus-5.context_budget" in ended.stderr


def test_an_unknown_name_is_a_sentence():
    with pytest.raises(UnknownModel, match="no model named nobody"):
        catalog.get("nobody")


def test_every_listed_model_is_sound():
    models = catalog.load_catalog().models.values()
    assert len(models) >= 14
    for model in models:
        assert 0 < model.context_budget <= model.context_window - model.output_limit
        assert model.answer_tokens <= model.output_limit
        assert model.reads("")
        if model.provider == "anthropic":
            for tier in model.price_tiers:
                assert tier.prices["input"]
                assert tier.prices["cache_write_1h"] == 2 * tier.prices["input"]


def test_a_model_with_a_budget_for_thinking_demands_it_back():
    haiku = catalog.get("claude-haiku-4-5")
    assert haiku.demands_thinking_in_open_round
    assert haiku.thinking_parameter() == {"type": "enabled", "budget_tokens": 4_096}
    assert not catalog.get("emulator-main").demands_thinking_in_open_round
    assert catalog.get("emulator-main").thinking_parameter() == {"type": "adaptive"}
    assert catalog.get("emulator-light").thinking_parameter() is None


def test_all_is_every_category_and_equals_no_list():
    assert "anything" in ALL
    assert ALL
    assert frozenset() != ALL
    assert json.dumps(repr(ALL)) == '"ALL"'
