"""Errors in the shape of the real API."""

import json
from typing import Any

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
ERROR_MESSAGES = {
    "rate_limit_error": "This request would exceed your account's rate limit. Please try again later.",
    "api_error": "Internal server error",
    "timeout_error": "Request timed out",
    "overloaded_error": "Overloaded",
}


class ApiError(Exception):
    """A refusal with status, error type and message, as the API words it."""

    def __init__(
        self,
        message: str,
        status: int = 400,
        error_type: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.error_type = error_type or ERROR_TYPES.get(status, "api_error")
        self.headers = headers or {}


def error_body(error_type: str, message: str, request_id: str) -> dict[str, Any]:
    """The JSON body of an error answer, and of an `error` event in a stream."""
    return {"type": "error", "error": {"type": error_type, "message": message}, "request_id": request_id}


def error_bytes(error: ApiError, request_id: str) -> bytes:
    """What goes over the wire for `error`; for an oversized body the edge's own shape, without id."""
    if error.status == 413:
        return b'{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}'
    return json.dumps(error_body(error.error_type, error.message, request_id), ensure_ascii=False).encode()
