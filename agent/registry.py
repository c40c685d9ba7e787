"""Tools that a model may call. Each app registers its own in its `tools.py`, which is found at start-up."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from jsonschema import Draft202012Validator

from agent.tool_arguments import Schema, problem_with

DEFAULT_TIME_LIMIT_SECONDS = 60


@dataclass(frozen=True)
class ToolContext:
    """Who calls: the thread (by id), its owner, the turn's frame and the row of the call. A tool that writes locks the
    thread with the lease's `token` first, so that a turn that lost its lease writes nothing through a tool either."""

    thread_id: int
    owner_id: int
    frame_id: int
    call_id: int
    token: UUID | None = None


@dataclass(frozen=True)
class ToolOutput:
    """What a tool says to the model. `is_error` marks a sentence that says what to change. `left_out` is how much more
    there was to find, None for a tool that finds nothing; not `left_out_exact`: at least so much."""

    text: str
    is_error: bool = False
    left_out: int | None = None
    left_out_exact: bool = True


class ToolError(Exception):
    """Raised by a tool whose call cannot be carried out; its text is the sentence the model reads."""


class WaitForUser(Exception):
    """Raised by a tool whose result is the user's to give: the turn waits, and its state survives a restart."""


ToolFunction = Callable[[ToolContext, dict[str, Any]], ToolOutput | Awaitable[ToolOutput]]


@dataclass(frozen=True)
class Tool:
    """One tool. `run` is a coroutine function, or a plain one that is a single unit of database work. `reads_only`: it
    changes nothing anywhere, so that what it found proves where a document is."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: ToolFunction
    parallel_safe: bool = False
    time_limit_seconds: float = DEFAULT_TIME_LIMIT_SECONDS
    reads_only: bool = False
    _validator: Draft202012Validator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Schema.check_schema(self.parameters)
        object.__setattr__(self, "_validator", Schema(self.parameters))

    def wire(self) -> dict[str, Any]:
        """The tool as the request header lists it."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}

    def objection(self, arguments: Any) -> str | None:
        """What is wrong with the arguments, as a sentence, or None."""
        problem = problem_with(arguments, self._validator)
        return None if problem is None else f"Invalid arguments for {self.name}{problem}"


_tools: dict[str, Tool] = {}


def register(tool: Tool) -> Tool:
    """Add a tool. A second one of the same name is a programming error."""
    if tool.name in _tools:
        raise ValueError(f"There is already a tool named {tool.name}.")
    _tools[tool.name] = tool
    return tool


def tool(
    *,
    name: str,
    description: str,
    parameters: dict[str, Any],
    parallel_safe: bool = False,
    time_limit_seconds: float = DEFAULT_TIME_LIMIT_SECONDS,
    reads_only: bool = False,
) -> Callable[[ToolFunction], ToolFunction]:
    """Register the decorated function as a tool."""

    def decorate(function: ToolFunction) -> ToolFunction:
        register(
            Tool(
                name=name,
                description=description,
                parameters=parameters,
                run=function,
                parallel_safe=parallel_safe,
                time_limit_seconds=time_limit_seconds,
                reads_only=reads_only,
            )
        )
        return function

    return decorate


def unregister(name: str) -> None:
    """Take a tool out again."""
    _tools.pop(name, None)


def get(name: str) -> Tool | None:
    return _tools.get(name)


def all_tools() -> list[Tool]:
    """Every tool, by name: an order that does not depend on which app was loaded first, because it is part of the
    cached prefix."""
    return [_tools[name] for name in sorted(_tools)]
