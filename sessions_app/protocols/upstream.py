"""An engine's refusal as an error of ours, for the protocols that do not hand on its own words.

A prompt that was too long becomes the standard context-length error, whatever the engine called it. The
record keeps the engine's answer as it came.
"""

import re
from typing import Any

from sessions_app.errors import ContextLengthExceeded, InvalidJson, TitoError, UpstreamStatus
from sessions_app.json_text import loads

_TOO_LONG = re.compile(
    r"context[ _-]?length|context window|maximum (?:model |allowed )?length|max_model_len|is longer than",
    re.IGNORECASE,
)
_LIMITS = (
    re.compile(r"maximum context length (?:is|of) (\d+)", re.IGNORECASE),
    re.compile(r"context[ _-]?(?:length|window)\D{0,20}?(\d+)", re.IGNORECASE),
    re.compile(r"max_model_len\D{0,20}?(\d+)", re.IGNORECASE),
)
_LONGEST_TEXT = 500


class EngineRefused(TitoError):
    """An engine's answer other than 200, in the caller's protocol."""

    code = UpstreamStatus.code

    def __init__(self, answer: UpstreamStatus) -> None:
        said = _said(answer.body)
        super().__init__(f"{answer}: {said}" if said else str(answer))
        self.status = answer.status
        self.retryable = answer.retryable
        self.retry_after_s = _retry_after(answer)


def own_error(error: TitoError) -> TitoError:
    """The error to tell a client; only an engine's own answer is told in other words."""
    if not isinstance(error, UpstreamStatus):
        return error
    text = answer_text(error.body)
    if error.status in (400, 413, 422) and _TOO_LONG.search(text):
        return ContextLengthExceeded(_context_text(text, error.prompt_tokens))
    return EngineRefused(error)


def answer_text(body: bytes) -> str:
    """All of an engine's answer that may hold its reason."""
    return body[:65_536].decode(errors="replace")


def _context_text(text: str, prompt_tokens: int | None) -> str:
    limit = next((int(found[1]) for pattern in _LIMITS if (found := pattern.search(text))), None)
    if limit is None or prompt_tokens is None:
        return (
            "The prompt exceeds this model's maximum context length. "
            "Please reduce the length of the messages."
        )
    return context_length_text(limit, prompt_tokens)


def context_length_text(limit: int, prompt: int) -> str:
    """The text that clients know as a context overflow."""
    return (
        f"This model's maximum context length is {limit} tokens. However, your prompt contains {prompt} "
        "input tokens, which leaves no room for output tokens. Please reduce the length of the messages."
    )


def _said(body: bytes) -> str:
    """The message of an engine's error body, in the shapes that engines use."""
    try:
        value = loads(body)
    except InvalidJson:
        return ""
    return " ".join(_message(value).split())[:_LONGEST_TEXT]


def _message(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    return next((_message(value[name]) for name in ("error", "message", "detail") if value.get(name)), "")


def _retry_after(answer: UpstreamStatus) -> int | None:
    value = answer.headers.get("retry-after", "")
    return int(value) if value.isascii() and value.isdigit() else None
