"""Hot against cold on any Messages server: time to the first token of a question over a prefix it holds, and over one
that it never saw."""

import os
import random
import time
from typing import TYPE_CHECKING, Any

from benchmarks import corpora
from benchmarks.harness import percentile, table

if TYPE_CHECKING:
    from anthropic import Anthropic

# More than 30,000 tokens.
PREFIX_CHARS = 120_000
ANSWER_MAX_TOKENS = 64
QUESTION = "What in this is worth remembering? Say it in one sentence."


def measure(url: str, model: str, runs: int) -> dict[str, Any]:
    """Ask `runs` times hot and cold, one after the other. The key is ANTHROPIC_API_KEY's, if the server wants one."""
    from anthropic import Anthropic

    client = Anthropic(api_key=os.environ.get("ANTHROPIC_API_KEY", "none"), base_url=url, max_retries=0)
    text = corpora.tool_output(None)
    chance = random.Random(corpora.SEED)
    hot, cold, read = [], [], []
    for _run in range(runs):
        begin = chance.randrange(len(text) - PREFIX_CHARS)
        # Words of this run alone come first, so that no cache of an earlier one answers.
        prefix = f"{chance.getrandbits(64):x} {text[begin : begin + PREFIX_CHARS]}"
        _first_token(client, model, [_said(prefix)])
        hot_ms, cached = _first_token(client, model, [_said(prefix), _answer(), _said(QUESTION, anchored=False)])
        other = f"{chance.getrandbits(64):x} {prefix}"
        cold_ms, _none = _first_token(client, model, [_said(other), _answer(), _said(QUESTION, anchored=False)])
        hot.append(hot_ms)
        cold.append(cold_ms)
        read.append(cached)
    table(
        "First token in ms",
        ("", "runs", "p50", "p95"),
        [(name, runs, percentile(took, 0.5), percentile(took, 0.95)) for name, took in (("hot", hot), ("cold", cold))],
    )
    return {
        "engine": url,
        "model": model,
        "first_token_ms_hot": percentile(hot, 0.5),
        "first_token_ms_cold": percentile(cold, 0.5),
        "hot_over_cold_first_token": round(percentile(hot, 0.5) / percentile(cold, 0.5), 3),
        "cache_read_tokens": percentile([float(tokens) for tokens in read], 0.5),
    }


def _said(text: str, *, anchored: bool = True) -> Any:
    block: dict[str, Any] = {"type": "text", "text": text}
    if anchored:
        block["cache_control"] = {"type": "ephemeral"}
    return {"role": "user", "content": [block]}


def _answer() -> Any:
    return {"role": "assistant", "content": [{"type": "text", "text": "I have read it."}]}


def _first_token(client: "Anthropic", model: str, messages: list[Any]) -> tuple[float, int]:
    """Milliseconds to the first words, and the tokens that came from the cache."""
    began = time.perf_counter()
    first, cached = 0.0, 0
    with client.messages.create(model=model, max_tokens=ANSWER_MAX_TOKENS, messages=messages, stream=True) as stream:
        for event in stream:
            if event.type == "message_start":
                cached = event.message.usage.cache_read_input_tokens or 0
            elif event.type == "content_block_delta" and not first:
                first = (time.perf_counter() - began) * 1000
    return first, cached
