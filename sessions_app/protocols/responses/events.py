"""A Response as the events of a stream: each item whole, in the sequence of the real service."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from sessions_app.json_text import dumps

_Fields = dict[str, Any]


def stream_events(response: Mapping[str, Any]) -> Iterator[bytes]:
    """All events, numbered."""
    numbers = count()
    for kind, fields in _events(response):
        yield event(kind, {**fields, "sequence_number": next(numbers)})


def event(kind: str, fields: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"event: " + kind.encode() + b"\ndata: " + dumps({"type": kind, **fields}) + b"\n\n"


def _events(response: Mapping[str, Any]) -> Iterator[tuple[str, _Fields]]:
    begun = {**response, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        yield "response.output_item.added", {"output_index": index, "item": _empty(item)}
        for kind, fields in _parts(item):
            yield kind, {"output_index": index, "item_id": item["id"], **fields}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield f"response.{response['status']}", {"response": response}


def _empty(item: Mapping[str, Any]) -> _Fields:
    """An item as it begins."""
    if item["type"] == "function_call":
        return {**item, "status": "in_progress", "arguments": ""}
    if item["type"] == "message":
        return {**item, "status": "in_progress", "content": []}
    return {**item, "content": []}


def _parts(item: Mapping[str, Any]) -> Iterator[tuple[str, _Fields]]:
    if item["type"] == "function_call":
        arguments = item["arguments"]
        yield "response.function_call_arguments.delta", {"delta": arguments}
        yield "response.function_call_arguments.done", {"name": item["name"], "arguments": arguments}
        return
    for index, part in enumerate(item["content"]):
        kind, at = part["type"], {"content_index": index}
        logprobs: _Fields = {"logprobs": []} if kind == "output_text" else {}
        yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
        yield f"response.{kind}.delta", {**at, "delta": part["text"], **logprobs}
        yield f"response.{kind}.done", {**at, "text": part["text"], **logprobs}
        yield "response.content_part.done", {**at, "part": part}
