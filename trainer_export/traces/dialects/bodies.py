"""The whole response body, where a dialect records it: OpenInference's `output.value`, LiteLLM's
`llm.<provider>.…`.
"""

from collections.abc import Iterator
from typing import Any

from trainer_export.traces.attributes import unflatten
from trainer_export.traces.dialects.json_text import loaded, loaded_dict
from trainer_export.traces.names import OPERATION_OUTPUT
from trainer_export.traces.span import Attributes

_PROVIDER_KEYS = ("id", "choices", "prompt_token_ids", "response_token_ids")


def response_bodies(attributes: Attributes) -> Iterator[dict[str, Any]]:
    """Bodies in OpenAI's shape, as far as they are recorded; the richest dialect first."""
    for body in (loaded_dict(attributes.get("output.value")), _weave(attributes), _litellm(attributes)):
        if body:
            yield body


def first_choice(body: dict[str, Any]) -> dict[str, Any]:
    """The first choice, {} when there is none."""
    choices = loaded(body.get("choices"))
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _weave(attributes: Attributes) -> dict[str, Any]:
    start = OPERATION_OUTPUT + "."
    flat = {key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)}
    nested = unflatten(flat)
    return nested if isinstance(nested, dict) else {}


def _litellm(attributes: Attributes) -> dict[str, Any]:
    """`llm.hosted_vllm.choices` and the like, whichever provider wrote them."""
    body: dict[str, Any] = {}
    for key, value in attributes.items():
        parts = key.split(".")
        if len(parts) == 3 and parts[0] == "llm" and parts[2] in _PROVIDER_KEYS:
            body.setdefault(parts[2], value)
    return body
