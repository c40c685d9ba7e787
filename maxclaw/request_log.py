"""One line for a request that failed: its method and the pattern of its address, without what stands in the places of
parameters and behind the question mark.

Queries carry what people search for, so they are words, and words stay out of the log.
"""

import structlog
from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware

from maxclaw.logs import route_of


class RequestLogMiddleware(RequestMiddleware):
    """The request's id in every line that is written meanwhile, and a line of its own where it fails."""

    @classmethod
    def bind_ip(cls, request: HttpRequest) -> None:
        """The address that throttling goes by: the connection's own, or what the proxy that MAXCLAW_HTTPS speaks of
        says, which the web server has put in its place. Anybody can send a header."""
        structlog.contextvars.bind_contextvars(ip=request.META.get("REMOTE_ADDR"))

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {route_of(request)}"
