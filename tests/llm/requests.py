"""Small requests for tests of the provider, the ledger and `ask`."""

from asgiref.sync import async_to_sync

from llm import catalog, ledger, provider, wire
from llm.calls import Prepared
from maxclaw.database_threads import in_database

CLOCK_TOOL = {
    "name": "clock",
    "description": "Tells the time.",
    "input_schema": {"type": "object", "properties": {}, "additionalProperties": True},
}
SYSTEM = "You are being tested."


def user_message(text="Hello there", last_id=1):
    return wire.WireMessage(last_id, "user", wire.canonical([{"type": "text", "text": text}]))


def header_of(model, tools=(CLOCK_TOOL,), thinking=None):
    return wire.header_text(model=model, tools=tools, system=SYSTEM, thinking=thinking)


def body_of(model, messages=None, max_tokens=1_000, **header):
    messages = messages or [user_message()]
    anchors = wire.turn_anchors(model, None, messages[-1].last_id)
    return wire.body_bytes(header_of(model, **header), messages, anchors, max_tokens)


def answer_to(model_name="emulator-main", **request):
    """The whole answer of a model, through the SDK, over HTTP."""
    model = catalog.get(model_name)
    return async_to_sync(provider.complete)(model, body_of(model, **request))


def events_of(model_name="emulator-main", **request):
    """Every event of a streamed answer, the Answer last."""
    model = catalog.get(model_name)

    async def scenario():
        return [event async for event in provider.stream(model, body_of(model, **request))]

    return async_to_sync(scenario)()


def opened(model, *, purpose="turn", owner=None, attempt=1, max_tokens=1_000, **fields):
    """An open call in the ledger and the body it stands for."""
    header = wire.remember_header(header_of(model))
    messages = [user_message()]
    anchors = wire.turn_anchors(model, None, 1)
    body = wire.body_bytes(header.text, messages, anchors, max_tokens)
    call = ledger.open_call(
        purpose=purpose,
        owner_id=owner.pk if owner else None,
        thread_id=None,
        generation_id=None,
        header=header,
        model=model,
        body_sha256=wire.body_sha256(body),
        last_message_id=1,
        cut=0,
        thinking_from=0,
        anchors=anchors,
        max_tokens=max_tokens,
        attempt=attempt,
        **fields,
    )
    return call, body


class Asking:
    """The callbacks of `ask`, with a record of what they were told."""

    def __init__(self):
        self.builds = []
        self.events = []
        self.retries = []

    async def build(self, model, attempt, max_tokens):
        self.builds.append((model.name, attempt, max_tokens))
        limit = max_tokens or 1_000
        call, body = await in_database(opened, model, attempt=attempt, max_tokens=limit)
        return Prepared(call, model, body, (), limit)

    async def on_event(self, event):
        self.events.append(event)

    async def on_retry(self, error, will_retry):
        self.retries.append((error.kind.value, error.rule, will_retry))
