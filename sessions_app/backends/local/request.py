"""A request of SGLang's native protocol, as the local engine takes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessions_app.backends.local.decoding import Sampling


class Unreadable(Exception):
    """Answered 400 with this text."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One generation wanted."""

    rid: str
    prompt: list[int]
    sampling: Sampling
    raw_logprobs: bool
    """Also report the logprobs of the model's own distribution."""


def read(body: object, vocab_size: int, context_length: int) -> Asked:
    """The wish in a parsed body. Raises Unreadable."""
    if not isinstance(body, dict):
        raise Unreadable("the body must be a JSON object")
    prompt = body.get("input_ids")
    if not isinstance(prompt, list) or not prompt:
        raise Unreadable("input_ids must be a non-empty list of token ids")
    if not all(type(token) is int and 0 <= token < vocab_size for token in prompt):
        raise Unreadable(f"input_ids holds an id outside the vocabulary of {vocab_size}")
    room = context_length - len(prompt)
    if room < 1:
        raise Unreadable(
            f"This model's maximum context length is {context_length} tokens. However, your prompt contains"
            f" {len(prompt)} input tokens, which leaves no room for output tokens."
        )
    params = body.get("sampling_params") or {}
    if not isinstance(params, dict):
        raise Unreadable("sampling_params must be an object")
    rid = str(body.get("rid") or "")
    return Asked(rid, prompt, _sampling(params, room), bool(body.get("return_raw_logprobs")))


def _sampling(params: Mapping[str, Any], room: int) -> Sampling:
    limit = int(_number(params, "max_new_tokens", 4096, least=1))
    seed = params.get("sampling_seed", params.get("seed"))
    return Sampling(
        temperature=_number(params, "temperature", 1.0, least=0.0),
        top_p=_number(params, "top_p", 1.0, least=1e-6),
        top_k=int(_number(params, "top_k", -1, least=-1)),
        min_p=_number(params, "min_p", 0.0, least=0.0),
        repetition_penalty=_number(params, "repetition_penalty", 1.0, least=1e-6),
        max_new_tokens=min(limit, room),
        stop=_texts(params.get("stop")),
        stop_token_ids=_ids(params.get("stop_token_ids")),
        ignore_eos=bool(params.get("ignore_eos")),
        seed=seed if type(seed) is int else None,
    )


def _number(params: Mapping[str, Any], name: str, default: float, *, least: float) -> float:
    value = params.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise Unreadable(f"{name} must be a number of at least {least:g}")
    return value


def _texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(text for text in listed if isinstance(text, str) and text)


def _ids(value: object) -> frozenset[int]:
    listed = value if isinstance(value, list) else []
    return frozenset(token for token in listed if type(token) is int)
