"""Request and response metadata of a call; None (not {}) when no candidate prefix has anything."""

from typing import Any

from trainer_export.traces.attributes import Nested, first_nested
from trainer_export.traces.names import OPERATION_INPUT, OPERATION_OUTPUT
from trainer_export.traces.span import Attributes

_REQUEST = ("gen_ai.request", OPERATION_INPUT)
_RESPONSE = ("gen_ai.response", OPERATION_OUTPUT)
_TOLD_ELSEWHERE_IN_REQUEST = ("messages",)
_TOLD_ELSEWHERE_IN_RESPONSE = ("choices", "prompt_token_ids", "response_token_ids")


def request_metadata(attributes: Attributes) -> Nested | None:
    """What was asked for, without the messages."""
    return _without(first_nested(attributes, _REQUEST), _TOLD_ELSEWHERE_IN_REQUEST)


def response_metadata(attributes: Attributes) -> Nested | None:
    """What came back, without choices and token ids."""
    return _without(first_nested(attributes, _RESPONSE), _TOLD_ELSEWHERE_IN_RESPONSE)


def _without(nested: Nested | None, keys: tuple[str, ...]) -> Any:
    if not isinstance(nested, dict):
        return nested
    return {key: value for key, value in nested.items() if key not in keys}
