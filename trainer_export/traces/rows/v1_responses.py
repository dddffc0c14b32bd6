"""Token ids and log probabilities of a recorded response body: an object, or a list of stream chunks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def trimmed_response(response: Any) -> dict[str, Any]:
    """`prompt_token_ids`, `response_token_ids`, `response_log_probs`; ids default to [], log probabilities
    to None.
    """
    if isinstance(response, Mapping):
        return _from_body(response)
    if isinstance(response, list):
        return _from_chunks(response)
    return _trimmed([], [], None)


def _from_body(body: Mapping[str, Any]) -> dict[str, Any]:
    prompt_ids = body.get("prompt_token_ids", [])
    choices = body.get("choices", [])
    if not choices:
        return _trimmed(prompt_ids, [], None)
    first = choices[0]
    prompt_ids = prompt_ids or first.get("prompt_token_ids", [])
    return _trimmed(prompt_ids, first.get("token_ids", []), _log_probs(first.get("logprobs")))


def _from_chunks(chunks: Sequence[Any]) -> dict[str, Any]:
    """The first prompt ids win, response ids are joined; chunks carry no log probabilities."""
    prompt_ids: Any = []
    response_ids: list[Any] = []
    for chunk in chunks:
        prompt_ids = prompt_ids or chunk.get("prompt_token_ids") or []
        choices = chunk.get("choices", [])
        if choices:
            response_ids.extend(choices[0].get("token_ids") or ())
    return _trimmed(prompt_ids, response_ids, None)


def _trimmed(prompt_ids: Any, response_ids: Any, log_probs: list[float] | None) -> dict[str, Any]:
    return {
        "prompt_token_ids": prompt_ids,
        "response_token_ids": response_ids,
        "response_log_probs": log_probs,
    }


def _log_probs(recorded: Any) -> list[float] | None:
    """None as soon as one value is missing, no number or not finite."""
    if not isinstance(recorded, Mapping):
        return None
    content, plain = recorded.get("content"), recorded.get("token_logprobs")
    if isinstance(content, list):
        values = [item.get("logprob") if isinstance(item, Mapping) else None for item in content]
    elif isinstance(plain, list):
        values = plain
    else:
        return None
    numbers = [_finite(value) for value in values]
    return None if None in numbers else [number for number in numbers if number is not None]


def _finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
