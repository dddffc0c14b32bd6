"""The outer layers of an OTLP/JSON body, the same for traces and logs: resource, scope, records."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sessions_app.errors import BadRequest, InvalidJson
from trainer_export.traces.otlp.batch import RejectedSpan
from trainer_export.traces.otlp.json_fields import objects, one_object, text
from trainer_export.traces.otlp.json_values import attributes
from trainer_export.traces.otlp.received import Resource, Scope


def loaded(body: bytes) -> Mapping[str, Any]:
    """The object of a body; an empty body is an empty request."""
    if not body.strip():
        return {}
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"Unable to parse OTLP payload: {type(error).__name__}") from None
    if not isinstance(request, Mapping):
        raise BadRequest("Unable to parse OTLP payload: not an object")
    return request


def records(
    request: Mapping[str, Any], groups: str, scopes: str, items: str
) -> Iterator[tuple[Mapping[str, Any] | None, Resource, Scope]]:
    """Each record with its resource and scope; None in place of one that is no object."""
    try:
        for group in objects(request, groups):
            resource = Resource(attributes(one_object(group, "resource")), text(group, "schemaUrl"))
            for scoped in objects(group, scopes):
                scope = _scope(one_object(scoped, "scope"), text(scoped, "schemaUrl"))
                for item in _listed(scoped, items):
                    yield (item if isinstance(item, Mapping) else None), resource, scope
    except RejectedSpan as error:
        raise BadRequest(f"Unable to parse OTLP payload: {error}") from None


def _listed(item: Mapping[str, Any], key: str) -> list[Any]:
    found = item.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise RejectedSpan(f"{key} is no list")
    return found


def _scope(scope: Mapping[str, Any], schema_url: str) -> Scope:
    return Scope(text(scope, "name"), text(scope, "version"), attributes(scope), schema_url)
