"""What fits into a question: prefix, answer, page, what memory knows and the room for what is answered together take no
more than the model's window. A small one gets a smaller page."""

from collections.abc import Sequence

from agent import prefix
from agent.policy import SHADOW_TOOL
from agent.registry import get
from llm.catalog import Model
from llm.estimates import estimate_tokens, ratio
from llm.models import ModelCall
from llm.wire import canonical
from memory import backlog
from memory.backlog import BacklogRow, Page
from shadow import question
from threads.models import Generation, Message

ANSWER_MAX_TOKENS = 6_000
# Where the model itself chooses how much it thinks.
THINKING_MAX_TOKENS = 8_000
# Kept free for what memory knows already; of a larger window it gets what is left.
KNOWN_TOKENS = 1_000


def answer_tokens(model: Model, *, hot: bool) -> int:
    """Room for the answer, and beside it for the thinking that a hot request's header asks for."""
    thinking = model.thinking if hot else "off"
    room = thinking if isinstance(thinking, int) else 0 if thinking == "off" else THINKING_MAX_TOKENS
    return min(model.answer_tokens, ANSWER_MAX_TOKENS + room)


def behind(call: ModelCall, answer: Message, generation: Generation, model: Model) -> int:
    """Tokens for page and known memory behind a call and its answer, by the general estimate; below 0: less than
    none."""
    # What was sent and what came back, as the provider counted both.
    counted = (call.input_tokens, call.cache_read_tokens, call.cache_write_5m_tokens, call.cache_write_1h_tokens)
    sent = sum(tokens or 0 for tokens in (*counted, call.output_tokens))
    results = estimate_tokens("".join(prefix.results(answer)), model)
    return _left(model, sent + results, generation, hot=True)


def alone(generation: Generation, model: Model) -> int:
    """The same in a cold request."""
    tool = get(SHADOW_TOOL)
    assert tool is not None
    return _left(model, estimate_tokens(question.COLD_SYSTEM + canonical(tool.wire()), model), generation, hot=False)


def first_page(rows: Sequence[BacklogRow], room: int) -> Page:
    """The first of some rows that fit beside known memory, of one row at least: whether that fits is for `fits`."""
    return next(backlog.pages(rows, min(backlog.PAGE_TOKENS, room - KNOWN_TOKENS)))


def fits(page: Page, room: int) -> bool:
    """Whether the page leaves memory its room."""
    return page.tokens + KNOWN_TOKENS <= room


def _left(model: Model, taken: int, generation: Generation, *, hot: bool) -> int:
    asked = estimate_tokens(question.text(generation, Page(), ""), model)
    return int((model.context_window - taken - asked - answer_tokens(model, hot=hot)) / ratio(model))
