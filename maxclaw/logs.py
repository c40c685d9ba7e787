"""Logs: structured lines to standard error, for people or, with MAXCLAW_LOG_FORMAT=json, for machines.

They say who and which (user, thread, turn, request), never what was said.
"""

import io
import re
from types import TracebackType
from typing import Any, TextIO

import structlog

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

LOGGERS = ("maxclaw", "accounts", "llm", "threads", "agent", "quotes", "memory", "shadow", "chat")

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def without_rows(text: str) -> str:
    """A traceback without the rows that the database quoted in it."""
    return _DETAIL.sub(r"\1: (left out)", text)


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
                "foreign_pre_chain": _SHARED,
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
