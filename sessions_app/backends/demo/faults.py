"""Every way an engine is known to go wrong, by name. One table for the demo engine's switch and for the
tests.

A fault changes the completion before it is put into a protocol's form, the reply after that, or the wire
itself.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sessions_app.backends.demo.forms import Completion

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Status:
    """An answer instead of a completion."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; what is not set stays as it is."""

    completion: Callable[[Completion], Completion] | None = None
    reply: Callable[[Reply], Any] | None = None
    text: Callable[[bytes], bytes] | None = None
    """Changes the body's bytes."""
    status: Status | None = None
    wire: str = ""
    """`cut` (no answer), `cut_body` (half of it), `hang` (none until the client gives up), `slow`."""


def _error(status: int, message: str, **headers: str) -> Fault:
    body = json.dumps({"error": {"message": message, "code": status}}).encode()
    return Fault(
        status=Status(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)
    )


def _without(*names: str) -> Callable[[Reply], Any]:
    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strip(each) for key, each in value.items() if key not in names}
        return [strip(each) for each in value] if isinstance(value, list) else value

    return strip


def _last_logprob(value: float | None) -> Callable[[Completion], Completion]:
    return lambda done: replace(done, logprobs=[*done.logprobs[:-1], value])


def _null_content(done: Completion) -> Completion:
    return replace(done, message={"role": "assistant", "content": None})


def _empty_choices(reply: Reply) -> Any:
    return {**reply, "choices": []} if "choices" in reply else {}


FAULTS: dict[str, Fault] = {
    "400": _error(400, "This model's maximum context length is 8 tokens."),
    "429": _error(429, "slow down", retry_after="1"),
    "500": _error(500, "boom"),
    "503": _error(503, "unavailable", retry_after="1"),
    "wrong_length": Fault(
        completion=lambda done: replace(done, completion_tokens=done.completion_tokens + 1)
    ),
    "missing_token_ids": Fault(reply=_without("meta_info", "token_ids", "logprobs")),
    "missing_logprobs": Fault(reply=_without("output_token_logprobs", "logprobs")),
    "missing_completion_tokens": Fault(reply=_without("completion_tokens")),
    "missing_finish_reason": Fault(reply=_without("finish_reason")),
    "missing_choices": Fault(reply=_without("choices", "meta_info")),
    "empty_choices": Fault(reply=_empty_choices),
    "null_content": Fault(completion=_null_content),
    "nan_logprob": Fault(completion=_last_logprob(float("nan"))),
    "null_logprob": Fault(completion=_last_logprob(None)),
    "id_out_of_range": Fault(completion=lambda done: replace(done, ids=[*done.ids[:-1], 2**30])),
    "wrong_prompt_tokens": Fault(
        completion=lambda done: replace(
            done, prompt_tokens=done.prompt_tokens + 1, prompt_ids=[*done.prompt_ids, 0]
        )
    ),
    "malformed_json": Fault(text=lambda body: body[:-2]),
    "not_object": Fault(reply=lambda reply: [reply]),
    "cut": Fault(wire="cut"),
    "cut_body": Fault(wire="cut_body"),
    "hang": Fault(wire="hang"),
    "slow": Fault(wire="slow"),
}
