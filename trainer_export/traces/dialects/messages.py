"""Messages of a call as recorded: nested attributes of the older forms, JSON text or real values of the
newer ones.
"""

from typing import Any

from trainer_export.traces.attributes import Nested, unflatten
from trainer_export.traces.dialects.json_text import loaded
from trainer_export.traces.names import OPERATION_INPUT, OPERATION_OUTPUT
from trainer_export.traces.span import Attributes

_PROMPT_PREFIXES = ("gen_ai.prompt", f"{OPERATION_INPUT}.messages", "llm.input_messages")
_RESPONSE_PREFIXES = ("gen_ai.completion", f"{OPERATION_OUTPUT}.choices", "llm.output_messages")
_PROMPT_TEXTS = ("gen_ai.input.messages", "gen_ai.prompt", "input.value")
_RESPONSE_TEXTS = ("gen_ai.output.messages", "gen_ai.completion", "output.value")


def prompt_messages(attributes: Attributes) -> Any:
    """What was sent; None when content was not recorded."""
    return _content(attributes, _PROMPT_PREFIXES, _PROMPT_TEXTS, "messages")


def response_messages(attributes: Attributes) -> Any:
    """What came back; None when content was not recorded."""
    return _content(attributes, _RESPONSE_PREFIXES, _RESPONSE_TEXTS, "choices")


def _content(attributes: Attributes, prefixes: tuple[str, ...], names: tuple[str, ...], key: str) -> Any:
    for prefix in prefixes:
        nested = _numbered_below(attributes, prefix)
        if nested:
            return nested
    for name in names:
        found = loaded(attributes.get(name))
        if isinstance(found, dict):
            found = found.get(key)
        if found:
            return found
    return None


def _numbered_below(attributes: Attributes, prefix: str) -> Nested:
    """Only digit segments are messages: `gen_ai.prompt.name` is the name of a prompt template."""
    start = prefix + "."
    flat = {
        key[len(start) :]: value
        for key, value in attributes.items()
        if key.startswith(start) and key[len(start) :].split(".", 1)[0].isdecimal()
    }
    return unflatten(flat)
