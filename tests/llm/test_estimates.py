"""Estimates of tokens: by script, and corrected by what usage shows."""

import time
from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync

from llm import catalog, estimates, ledger
from llm.estimates import estimate_tokens
from llm.prices import Usage
from tests.llm.requests import opened

ENGLISH = (
    "The server keeps every word, keeps each model context small and cache-friendly, and grows a long-term memory in "
    "which every fact points at its evidence. Staff watch and judge that memory in the console."
)
CHINESE = "服务器保存每一句话，让每个模型的上下文保持精简并便于缓存，还会积累长期记忆，其中每条事实都指向它的依据。"
RUSSIAN = "Сервер хранит каждое слово и держит контекст каждой модели небольшим и удобным для кэша."
CODE = """
def boundary_before(text: str, position: int) -> int:
    if position >= len(text):
        return len(text)
    for cluster in _CLUSTER.finditer(text, boundary):
        boundary[cluster.end()] = {"x": [1, 2, 3], "y": None}
    return boundary
"""
BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@pytest.fixture
def model():
    return replace(catalog.get("emulator-main"), token_ratio=1.0)


@pytest.mark.parametrize(
    ("text", "lowest", "highest"),
    [
        (ENGLISH, 3.6, 5.0),
        (CHINESE, 0.8, 1.2),
        (RUSSIAN, 2.0, 3.2),
        (CODE, 2.5, 4.2),
        (BASE64, 1.3, 2.2),
        ("123456789 " * 10, 1.8, 3.0),
        ("😀" * 20, 0.3, 0.7),
        ("こんにちは、元気ですか。" * 3, 0.9, 1.4),
    ],
    ids=["English", "Chinese", "Russian", "code", "base64", "digits", "emoji", "Japanese"],
)
def test_characters_for_a_token_follow_the_script(text, lowest, highest):
    assert lowest <= len(text) / estimate_tokens(text) <= highest


def test_mixed_text_is_the_sum_of_its_parts():
    parts = [ENGLISH, CHINESE, RUSSIAN, CODE, "é" * 40, "ไทย" * 10]
    together = estimate_tokens("\n".join(parts))
    assert together == pytest.approx(sum(map(estimate_tokens, parts)), abs=len(parts) + 2)


def test_nothing_is_nothing():
    assert estimate_tokens("") == 0


def test_every_character_beyond_ascii_counts():
    for sign in ["é", "я", "字", "か", "각", "ก", "—", "😀", "𠀀", "\ud800"]:
        assert estimate_tokens(sign * 100) >= 40, sign


@pytest.mark.django_db
def test_past_usage_corrects_the_estimate(model):
    plain = estimate_tokens(ENGLISH * 50, model)
    for _call in range(5):
        estimates.record(model.name, 100_000, 140_000)
    assert estimate_tokens(ENGLISH * 50, model) == pytest.approx(1.4 * plain, rel=0.02)
    other = replace(model, name="another")
    assert estimate_tokens(ENGLISH * 50, other) == plain


@pytest.mark.django_db
def test_a_small_call_changes_little(model):
    estimates.record(model.name, 10, 40)
    assert estimates.ratio(model) == pytest.approx(1.0, abs=0.02)


@pytest.mark.django_db
def test_the_newest_usage_counts_most(model):
    estimates.record(model.name, 2_000_000, 1_000_000)
    for _call in range(10):
        estimates.record(model.name, 200_000, 400_000)
    assert estimates.ratio(model) > 1.7


@pytest.mark.django_db
def test_a_ratio_stays_within_reason(model):
    estimates.record(model.name, 1, 10_000_000)
    assert estimates.ratio(model) == estimates.HIGHEST_RATIO


@pytest.mark.django_db
def test_a_new_process_starts_from_the_ledger(model):
    call, _body = opened(model, estimated_tokens=100_000)
    ledger.close_call(call, outcome="complete", usage=Usage(50_000, 7, 60_000, 40_000))
    learned = estimates.ratio(model)
    estimates.forget()
    assert estimates.ratio(model) == learned > 1.4


def test_on_the_event_loop_the_catalogs_ratio_serves_until_the_ledger_was_read(model):
    async def scenario():
        return estimates.ratio(model)

    assert async_to_sync(scenario)() == model.token_ratio


@pytest.mark.django_db
def test_a_share_is_measured_by_estimate_of_the_budget(model):
    small = replace(model, context_budget=1_000)
    assert estimates.within_share("字" * 390, 0.4, small)
    assert not estimates.within_share("字" * 410, 0.4, small)


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, CODE, "a1" * 50, "字a" * 50])
def test_a_million_characters_take_a_moment(text):
    long = text * (1_000_000 // len(text))
    started = time.monotonic()
    estimate_tokens(long)
    assert time.monotonic() - started < 30  # not minutes; how fast it is, a benchmark says
