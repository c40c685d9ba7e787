"""Logs: structured lines to standard error, for people or, with MAXCLAW_LOG_FORMAT=json, for machines.

They say who and which (user, thread, turn, request), never what was said.
"""

import io
import re
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from django.urls import Resolver404, resolve

if TYPE_CHECKING:
    from django.http import HttpRequest

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


# PostgreSQL says which row or key it refused, and with it what people wrote.
_DETAIL = re.compile(
    r"^(DETAIL|CONTEXT):.*(?:\n(?!HINT:|DETAIL:|CONTEXT:|The above exception|During handling).*)*", re.M
)

NOWHERE = "(an address of no page)"

LOGGERS = ("maxclaw", "accounts", "llm", "threads", "agent", "quotes", "memory", "shadow", "chat")

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def without_rows(text: str) -> str:
    """A traceback without the rows that the database quoted in it."""
    return _DETAIL.sub(r"\1: (left out)", text)


def route_of(request: "HttpRequest") -> str:
    """The pattern of a request's address, with its parameters by name: what was put in their places may be anybody's
    words, or the address of a conversation that is erased."""
    match = request.resolver_match
    if match is None:
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return NOWHERE
    return f"/{match.route}"


def _with_routes(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """Django's own lines about requests, with the pattern in the place of the address."""
    request = getattr(event.get("_record"), "request", None)
    path = getattr(request, "path", "")
    if request is not None and len(path) > 1:
        for written in (path, path.encode("unicode_escape").decode()):
            event["event"] = str(event["event"]).replace(written, route_of(request))
    return event


def _plain_traceback(stream: TextIO, exception: ExceptionInfo) -> None:
    whole = io.StringIO()
    structlog.dev.plain_traceback(whole, exception)
    stream.write(without_rows(whole.getvalue()))


def _format_traceback(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    event = dict(structlog.processors.format_exc_info(_logger, _method, event))
    if "exception" in event:
        event["exception"] = without_rows(event["exception"])
    return event


def logging_settings(log_format: str, level: str) -> dict[str, Any]:
    """Django's LOGGING, and structlog set up to write through it. `log_format` is console or json."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    final: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if log_format == "json":
        final += [_format_traceback, structlog.processors.JSONRenderer()]
    else:
        # Not the default tracebacks: they show local variables, and with them what people said.
        final += [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=_plain_traceback)]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*_SHARED, _with_routes],
                "processors": final,
            }
        },
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["console"], "level": "WARNING"},
        "loggers": {
            # One line a request is the proxy's work; errors and slow things are ours.
            "django_structlog": {"level": "WARNING"},
            **{name: {"level": level} for name in LOGGERS},
        },
    }
