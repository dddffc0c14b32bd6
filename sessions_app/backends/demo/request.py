"""What a client asks of the demo engine, the same for each protocol it speaks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessions_app.backends.demo import forms
from sessions_app.backends.demo.forms import Form

_DEFAULT_MAX_TOKENS = 4096
_MAX_TOKENS = ("max_completion_tokens", "max_tokens", "max_new_tokens")


@dataclass(frozen=True, slots=True)
class Asked:
    """One generation wanted."""

    prompt_ids: list[int]
    form: Form
    max_tokens: int
    stop: tuple[str, ...]
    seed: int | None
    temperature: float
    model: str
    rid: str
    """The client's name for it; "" where the protocol has none."""
    routed_experts: bool
    indexer_topk: bool
    start_len: int
    """First replay row wanted."""


class Unreadable(Exception):
    """The engine answers 400 with this text."""


_PROMPT_KEYS: dict[str, tuple[str, Form]] = {
    "/v1/chat/completions": ("input_ids", forms.sglang_chat),
    "/generate": ("input_ids", forms.sglang_generate),
    "/inference/v1/generate": ("token_ids", forms.vllm_generate),
    "/v1/completions": ("prompt", forms.vllm_completion),
}
PATHS = tuple(_PROMPT_KEYS)


def read(path: str, body: Any, vocab_size: int) -> Asked:
    """The wish in a body. Raises Unreadable."""
    if not isinstance(body, dict):
        raise Unreadable("the body must be a JSON object")
    key, form = _PROMPT_KEYS[path]
    params = body.get("sampling_params", body)
    if not isinstance(params, dict):
        raise Unreadable("sampling_params must be an object")
    return Asked(
        prompt_ids=_prompt(body.get(key), key, vocab_size),
        form=form,
        max_tokens=_max_tokens(params),
        stop=_stop(params.get("stop")),
        seed=params.get("seed"),
        temperature=_number(params.get("temperature"), 1.0),
        model=str(body.get("model") or "demo"),
        rid=str(body.get("rid") or body.get("request_id") or ""),
        routed_experts=bool(body.get("return_routed_experts")),
        indexer_topk=bool(body.get("return_indexer_topk")),
        start_len=int(_number(body.get("routed_experts_start_len"), 0)),
    )


def _prompt(value: object, key: str, vocab_size: int) -> list[int]:
    if not isinstance(value, list) or not value:
        raise Unreadable(f"{key} must be a non-empty list of token ids")
    if not all(type(token) is int and 0 <= token < vocab_size for token in value):
        raise Unreadable(f"{key} holds an id outside the vocabulary of {vocab_size}")
    return value


def _max_tokens(params: Mapping[str, Any]) -> int:
    asked = next((params[key] for key in _MAX_TOKENS if params.get(key) is not None), _DEFAULT_MAX_TOKENS)
    if type(asked) is not int or asked < 1:
        raise Unreadable("max_tokens must be a positive integer")
    return asked


def _stop(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(text for text in listed if isinstance(text, str) and text)


def _number(value: object, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable("a sampling field must be a number")
    return value
