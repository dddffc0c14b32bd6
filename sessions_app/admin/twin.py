"""The JSON twin of a page: the same values at the same address with `?format=json`."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from sessions_app.json_text import dumps

FORMAT = "format"


def wants_json(request: HttpRequest) -> bool:
    """Whether the twin was asked for."""
    return request.GET.get(FORMAT) == "json"


def json_reply(value: Any, *, status: int = 200) -> HttpResponse:
    """A value of dataclasses and plain types as JSON."""
    return HttpResponse(dumps(plain(value)), content_type="application/json", status=status)


def plain(value: Any) -> Any:
    """The value as JSON types; numbers that JSON cannot say are null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case UUID():
            return value.hex
        case datetime():
            return value.isoformat()
        case bytes() | memoryview():
            return bytes(value).hex()
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)
