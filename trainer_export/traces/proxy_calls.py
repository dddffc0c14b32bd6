"""Calls as the LLM proxy records them: two span names with their own attributes, values real or as Python
text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer_export.traces.python_text import evaluated, id_list
from trainer_export.traces.span import Attributes, Span

RAW_REQUEST = "raw_gen_ai_request"
LITELLM_REQUEST = "litellm_request"

_PROVIDER = "llm.hosted_vllm"


@dataclass(frozen=True, slots=True)
class ProxyCall:
    """A call with both id lists."""

    span: Span
    prompt_ids: list[int]
    response_ids: list[int]
    response_id: str | None


def proxy_call(span: Span) -> ProxyCall | None:
    """None for spans of other names and for those without prompt or response ids."""
    read = _READERS.get(span.name)
    if read is None:
        return None
    prompt_ids, response_ids = read(span.attributes)
    if not prompt_ids or not response_ids:
        return None
    return ProxyCall(span, prompt_ids, response_ids, _response_id(span.attributes))


def _raw_request(attributes: Attributes) -> tuple[list[int], list[int]]:
    prompt_ids = id_list(attributes.get(f"{_PROVIDER}.prompt_token_ids"))
    response_ids = _first_list(attributes.get(f"{_PROVIDER}.response_token_ids"))
    return prompt_ids, response_ids or _first_choice(attributes.get(f"{_PROVIDER}.choices"))


def _first_list(value: Any) -> list[int]:
    lists = evaluated(value)
    if isinstance(lists, list) and lists and isinstance(lists[0], list):
        return id_list(lists[0])
    return []


def _first_choice(value: Any) -> list[int]:
    choices = evaluated(value)
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        ids = choices[0].get("token_ids")
        return id_list(ids) if isinstance(ids, list) else []
    return []


def _litellm_request(attributes: Attributes) -> tuple[list[int], list[int]]:
    return id_list(attributes.get("prompt_token_ids")), id_list(attributes.get("response_token_ids"))


def _response_id(attributes: Attributes) -> str | None:
    """The first of the two that is not empty; None when that one is no text."""
    value = attributes.get("gen_ai.response.id") or attributes.get(f"{_PROVIDER}.id")
    return value if isinstance(value, str) and value else None


_READERS: dict[str, Callable[[Attributes], tuple[list[int], list[int]]]] = {
    RAW_REQUEST: _raw_request,
    LITELLM_REQUEST: _litellm_request,
}
