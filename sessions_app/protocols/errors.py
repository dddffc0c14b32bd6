"""Error bodies, one shape per protocol. Status, code and text are the error's own."""

from typing import Any

from sessions_app.errors import TitoError

_OPENAI_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


def reference_error(error: TitoError) -> dict[str, Any]:
    """Session paths: exactly one key."""
    return {"error": str(error)}


def plain_error(error: TitoError) -> dict[str, Any]:
    """Every path of our own: text and code."""
    return {"error": str(error), "code": error.code}


def openai_error(error: TitoError) -> dict[str, Any]:
    """OpenAI protocols."""
    default = "invalid_request_error" if error.status < 500 else "server_error"
    kind = _OPENAI_TYPES.get(error.status, default)
    return {"error": {"message": str(error), "type": kind, "param": None, "code": error.code}}


def anthropic_error(error: TitoError) -> dict[str, Any]:
    """Anthropic Messages."""
    default = "invalid_request_error" if error.status < 500 else "api_error"
    kind = _ANTHROPIC_TYPES.get(error.status, default)
    return {"type": "error", "error": {"type": kind, "message": str(error)}}
