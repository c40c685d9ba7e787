"""Running one tool, for whoever may: within its time limit, and with a sentence for whatever goes wrong."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from agent.registry import Tool, ToolContext, ToolError, ToolOutput, WaitForUser
from maxclaw.database_threads import in_database_at_length
from threads.transcript import LeaseLost, ThreadGone

logger = logging.getLogger("maxclaw.tools")


async def run_tool(tool: Tool, context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """What a tool says to arguments that fit its schema. Raises WaitForUser, LeaseLost, ThreadGone."""
    try:
        return await _within(tool.time_limit_seconds, tool, context, arguments)
    except TimeoutError:
        return ToolOutput(
            f"{tool.name} did not end within {tool.time_limit_seconds:g} seconds and was given up. It may have "
            "had effects. Ask for less at once.",
            True,
        )
    except ToolError as error:
        return ToolOutput(str(error), True)
    except (WaitForUser, LeaseLost, ThreadGone):
        raise
    except Exception:
        # The message of an unforeseen exception may hold anything, secrets included: it goes to the log alone.
        logger.exception("The tool %s failed.", tool.name)
        return ToolOutput(f"{tool.name} failed on the server. Go on without it or try something else.", True)


async def _within(seconds: float, tool: Tool, context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Run a tool for at most `seconds`. A coroutine is cancelled; a unit of database work cannot be, so it is left to
    end by itself and what it says then is dropped. Raises TimeoutError."""
    if inspect.iscoroutinefunction(tool.run):
        async with asyncio.timeout(seconds):
            return await cast("Awaitable[ToolOutput]", tool.run(context, arguments))
    run = cast("Callable[[ToolContext, dict[str, Any]], ToolOutput]", tool.run)
    work = asyncio.ensure_future(in_database_at_length(run, context, arguments))
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    ended, _running = await asyncio.wait([work], timeout=seconds)
    if not ended:
        raise TimeoutError
    return work.result()
