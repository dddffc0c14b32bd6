"""Definitions of the tools a call was given, in the API's own form."""

from collections.abc import Iterator
from typing import Any

from trainer_export.traces.attributes import unflatten
from trainer_export.traces.dialects.json_text import loaded, loaded_dict, loaded_list
from trainer_export.traces.span import Attributes

_FLAT = ("gen_ai.request.functions", "llm.request.functions")


def tool_definitions(attributes: Attributes) -> list[dict[str, Any]] | None:
    """None where no dialect recorded any."""
    for candidate in _candidates(attributes):
        found = [tool for item in candidate if (tool := _tool(item))]
        if found:
            return found
    return None


def _candidates(attributes: Attributes) -> Iterator[list[Any]]:
    yield loaded_list(attributes.get("gen_ai.tool.definitions"))
    for prefix in _FLAT:
        yield _numbered(attributes, prefix)
    yield [item.get("tool") for item in _numbered(attributes, "llm.tools") if isinstance(item, dict)]
    yield loaded_list(loaded_dict(attributes.get("input.value")).get("tools"))


def _numbered(attributes: Attributes, prefix: str) -> list[Any]:
    start = prefix + "."
    nested = unflatten(
        {key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)}
    )
    return nested if isinstance(nested, list) else []


def _tool(item: Any) -> dict[str, Any] | None:
    """Whole objects, bare functions, and OpenInference's schemas."""
    if isinstance(item, dict) and "json_schema" in item:
        item = loaded(item["json_schema"])
    if not isinstance(item, dict):
        return None
    nested = item.get("function")
    function = nested if isinstance(nested, dict) else item
    if not isinstance(function.get("name"), str):
        return None
    parameters = function.get("parameters")
    schema = loaded(parameters) if isinstance(parameters, str) else parameters
    definition = {
        "name": function["name"],
        "description": function.get("description") or "",
        "parameters": schema if isinstance(schema, dict) else {},
    }
    return {"type": "function", "function": definition}
