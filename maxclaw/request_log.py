"""One line for a request that failed: its method and path, without what stands behind the question mark.

Queries carry what people search for, so they are words, and words stay out of the log.
"""

from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware


class RequestLogMiddleware(RequestMiddleware):
    """The request's id in every line that is written meanwhile, and a line of its own where it fails."""

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {request.path}"
