"""One request of `manage.py triplets`: adapter, options and input -> JSON, or the error as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from trainer_export.traces.adapters import ADAPTERS
from trainer_export.traces.adapters.registry import EVENTS, SPANS


def convert(adapter_name: str, options: Mapping[str, Any], source: Any) -> Any:
    """The adapter's result. Raises what the reference raises, ValueError for an unknown adapter."""
    adapter = ADAPTERS.get(adapter_name)
    if adapter is None:
        raise ValueError(
            f"Unknown adapter: {adapter_name}. Available adapters: {', '.join(sorted(ADAPTERS))}"
        )
    return adapter.convert(source, options)


def answer(adapter_name: Any, options: Any, source: Any) -> Any:
    """Like `convert`, with every exception turned into `{"error": {"type", "message"}}`."""
    try:
        return convert(adapter_name, options or {}, source)
    except Exception as error:
        return error_answer(error)


def answer_request(request: Any) -> Any:
    """A request as one object; the input stands under `input_spans` or `input`."""
    if not isinstance(request, Mapping):
        return error_answer(ValueError("A request is an object with adapter, options and input_spans."))
    return answer(request.get("adapter"), request.get("options"), source_of(request))


def source_of(request: Mapping[str, Any]) -> Any:
    """The input of a request."""
    return request[SPANS] if SPANS in request else request.get(EVENTS)


def encoded(result: Any) -> str:
    """The answer as JSON text; one that is nested too deep to be written is an error as well."""
    try:
        return json.dumps(result)
    except RecursionError as error:
        return json.dumps(error_answer(error))


def error_answer(error: Exception) -> dict[str, dict[str, str]]:
    """The error as the command prints it."""
    return {"error": {"type": type(error).__name__, "message": str(error)}}
