"""What a direct view is to drf-spectacular: its docstrings, and the operation that is declared for it."""

import re
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from sessions_app.api.openapi.components import SESSION_ID, named
from sessions_app.api.openapi.operations import EVENTS, Operation, operation_of

_NO_KEY = frozenset({"HealthView", "ReadyView"})
_PATH_SHAPES = {"session_id": SESSION_ID, "path": {"type": "string", "pattern": "^[A-Za-z0-9_/-]+$"}}
_TAGS = (
    (re.compile(r"chat|messages|responses|models"), "protocols"),
    (re.compile(r"/v1/(traces|logs)"), "traces"),
    (re.compile(r"^/sessions"), "sessions"),
    (re.compile(r"^/api/"), "inspection"),
    (re.compile(r"^/admin-api/"), "weights"),
    (re.compile(r"^/(exports|samples)"), "exports"),
)


class DirectSchema(AutoSchema):
    """One operation at a time."""

    @property
    def operation(self) -> Operation:
        """What is declared for the method at hand."""
        return operation_of(self.view.__class__.__name__, self.method.lower())

    def is_excluded(self) -> bool:
        """The raw proxy hides behind every path below a session; it is described once."""
        handler = getattr(self.view, self.method.lower(), None)
        name = self.view.__class__.__name__
        return handler is not None and handler.__qualname__.startswith("ProxyView.") and name != "ProxyView"

    def get_operation_id(self) -> str:
        """Unique, because a view stands at one path."""
        return f"{self.method.lower()}_{self.view.__class__.__name__.removesuffix('View')}"

    def get_tags(self) -> list[str]:
        """By what an operation is for."""
        return [next((tag for pattern, tag in _TAGS if pattern.search(self.path)), "service")]

    def get_summary(self) -> str:
        """The class's own words."""
        return _first_line(self.view.__class__.__doc__)

    def get_description(self) -> str:  # type: ignore[override]
        """The method's."""
        return _first_line(getattr(self.view, self.method.lower()).__doc__)

    def get_auth(self) -> list[dict[str, Any]]:
        """A key as a bearer token or in X-Api-Key; none with TITO_AUTH=off."""
        if self.view.__class__.__name__ in _NO_KEY:
            return []
        return [{"bearer": []}, {"apiKey": []}, {}]

    def get_override_parameters(self) -> list[OpenApiParameter | Any]:
        """Declared queries, and the form of ids in the path."""
        queries = [
            OpenApiParameter(name, shape, OpenApiParameter.QUERY)
            for name, shape in self.operation.query.items()
        ]
        paths = [
            OpenApiParameter(name, shape, OpenApiParameter.PATH)
            for name, shape in _PATH_SHAPES.items()
            if "{" + name + "}" in self.path
        ]
        return [*paths, *queries]

    def get_request_serializer(self) -> Any:
        """The body."""
        body = self.operation.body
        return None if body is None else {"application/json": body}

    def get_response_serializers(self) -> Any:
        """The reply, and the shape of errors."""
        operation = self.operation
        replies: dict[Any, Any] = {(operation.status, media): operation.reply for media in operation.media}
        if operation.reply is None:
            replies = {operation.status: None}
        if EVENTS in operation.media:
            replies[(operation.status, EVENTS)] = {"description": "Events of the protocol."}
        return {**replies, ("default", "application/json"): named(operation.error)}


def _first_line(doc: str | None) -> str:
    return " ".join((doc or "").split("\n\n")[0].split())
