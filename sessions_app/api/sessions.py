"""Sessions over HTTP: create, read, delete; and the raw proxy below a session."""

import asyncio
import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, reading, runtime
from sessions_app.api.direct import SESSION_KEY, DirectView, body_of, json_response
from sessions_app.api.reading import PARTS, Selection
from sessions_app.api.runtime import Runtime
from sessions_app.api.session_options import read_options
from sessions_app.api.wiring import conninfo
from sessions_app.protocols.errors import reference_error
from sessions_app.store import sessions
from trainer_export.retention import discard


class SessionsView(DirectView):
    """POST /sessions."""

    http_method_names = ["post"]

    async def post(self, request: Request) -> HttpResponseBase:
        """Create a session. An empty or odd body is fine; a known key with a bad value is refused."""
        state = runtime.current()
        access.require_admin(state, request)
        new, key = await create_session(state, _object(body_of(request)))
        response = json_response({"session_id": new.hex})
        response[SESSION_KEY] = key
        return response

    def error_body(self, error: errors.TitoError) -> Any:
        """The reference's body."""
        return reference_error(error)


async def create_session(state: Runtime, options: Mapping[str, Any]) -> tuple[uuid.UUID, str]:
    """A new session and its key. Raises InvalidArgument on a bad option."""
    key = access.new_session_key()
    new = read_options(options, state.configuration, uuid.uuid4(), access.key_hash(key))
    await state.profiles.get(new.settings.profile)
    if not await sessions.create(state.db, new):
        raise errors.InvalidArgument("attempt_id: this rollout and attempt have a session already")
    state.turns.remember(new.settings)
    return new.settings.id, key


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class SessionView(DirectView):
    """GET and DELETE /sessions/{id}."""

    http_method_names = ["get", "delete"]

    async def get(self, request: Request, session_id: str) -> HttpResponseBase:
        """The records of a path and what they add up to."""
        state = runtime.current()
        settings = await access.open_session(state, request, session_id)
        profile = await state.profiles.get(settings.profile)
        chunks = await reading.session_chunks(state.db, settings, profile.renderer, _selection(request))
        return StreamingHttpResponse(chunks, content_type="application/json")

    async def delete(self, request: Request, session_id: str) -> HttpResponseBase:
        """Close and hide the session; its rows stay until retention, unless an admin discards them."""
        state = runtime.current()
        settings = await access.open_session(state, request, session_id)
        gone = await _discarded(state, request, settings.id)
        if not gone and not await sessions.delete(state.db, settings.id):
            raise errors.SessionNotFound(session_id)
        state.turns.forget(settings.id)
        response = HttpResponse(status=204)
        del response["Content-Type"]
        return response

    def error_body(self, error: errors.TitoError) -> Any:
        """The reference's body."""
        return reference_error(error)


async def _discarded(state: Runtime, request: Request, session_id: uuid.UUID) -> bool:
    """Whether the session is gone for good, because `?discard=true` said so and nothing needs it."""
    said = request.query_params.get("discard", "false")
    if said not in ("true", "false"):
        raise errors.InvalidArgument("discard must be true or false")
    if said == "false":
        return False
    access.require_admin(state, request)
    return await asyncio.to_thread(discard, conninfo(), session_id)


def _selection(request: Request) -> Selection:
    """What the query asks for. Raises InvalidArgument naming the parameter."""
    query = request.query_params
    parts = frozenset(part for part in query.get("include", "").split(",") if part) or PARTS
    if parts - PARTS:
        raise errors.InvalidArgument(f"include takes a comma-separated list of {', '.join(sorted(PARTS))}")
    leaf = "leaf" if "leaf" in query else "node"
    return Selection(_number(query, leaf), parts, _number(query, "after") or 0, _number(query, "limit"))


def _number(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name)
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        raise errors.InvalidArgument(f"{name} must be a whole number, got {value[:40]!r}")
    return int(value)
