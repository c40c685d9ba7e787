"""Short ways to ask the rule-based model, without a server between."""

from typing import Any

from llm.emulator import mind
from llm.emulator.models import built_in_models
from llm.emulator.request_shape import read_request

OPENING = """<framework>
This is the opening of the context, written by the framework, not by the user.
channel: ch-blue
generation: 1 (id 7)
opened: Monday 2026-11-30 09:15 Europe/Paris
</framework>"""


def tool(name: str, /, **properties: Any) -> dict[str, Any]:
    """A tool whose required properties are all of `properties` (schemas, or type names)."""
    shapes = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    schema = {"type": "object", "properties": shapes, "required": list(shapes)}
    return {"name": name, "input_schema": schema}


SEARCH = tool("search_memory", query="string")
SEARCH["input_schema"]["properties"]["channel"] = {"type": "string"}
HISTORY = tool("message_history_read", channel="string")
HISTORY["input_schema"]["properties"]["before"] = {"type": "integer"}
ASK = tool("ask_user_question", question="string")
ASK["input_schema"]["properties"]["options"] = {"type": "array", "items": {"type": "string"}}
DISPATCH = tool("dispatch_task", title="string", instructions="string")
REMEMBER = tool("remember", text="string")
ALL = [SEARCH, HISTORY, ASK, DISPATCH, REMEMBER]


class Talk:
    """A conversation with the rule-based model: `say` adds words and the answer to them, as a server would."""

    def __init__(self, *tools: dict[str, Any], opening: str | None = OPENING, **parameters: Any) -> None:
        self.tools = list(tools)
        self.parameters = parameters
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": opening}] if opening else []

    def say(self, *words: str) -> list[Any]:
        """The answer's blocks without thinking; a text block is a string."""
        self.messages.append({"role": "user", "content": [{"type": "text", "text": part} for part in words]})
        return self._answer()

    def give(self, text: str, *, is_error: bool = False, note: str | None = None) -> list[Any]:
        """Answer the last answer's tool calls with `text`, with a framework note behind it."""
        calls = [block for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        content: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": is_error} for call in calls
        ]
        content += [{"type": "text", "text": f"<framework>\n{note}\n</framework>"}] if note else []
        self.messages.append({"role": "user", "content": content})
        return self._answer()

    def text(self, *words: str) -> str:
        """The answer's text; there must be no call."""
        (said,) = self.say(*words)
        assert isinstance(said, str)
        return said

    def call(self, *words: str) -> dict[str, Any]:
        """The answer's one tool call."""
        (call,) = [block for block in self.say(*words) if isinstance(block, dict)]
        return call

    def _answer(self) -> list[Any]:
        body = {"model": "emulator-main", "max_tokens": 4_000, "messages": self.messages, **self.parameters}
        if self.tools:
            body["tools"] = self.tools
        request = read_request(body, built_in_models(), "2026-10-21", frozenset())
        thinking, *blocks = mind.answer(request)
        assert isinstance(thinking, dict)
        assert thinking["thinking"].startswith("By rule: ")
        content = []
        for number, block in enumerate(blocks):
            if isinstance(block, str):
                content.append({"type": "text", "text": block})
            else:
                content.append({**block, "id": f"toolu_{len(self.messages)}_{number}"})
        self.messages.append({"role": "assistant", "content": content})
        return blocks
