"""GET …/v1/responses/{id} and what SDKs offer beside it. A response is a turn of its session: it can be read
for as long as the session, and it is neither deleted nor cancelled.
"""

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.addressing import BY_ATTEMPT, BY_URL, Addressing
from sessions_app.api.direct import DirectView, json_response
from sessions_app.api.runtime import Runtime
from sessions_app.protocols.responses import RESPONSES
from sessions_app.protocols.responses.identity import node_of
from sessions_app.protocols.responses.replying import response_of
from sessions_app.protocols.responses.stored import asked_of, input_items, item_page
from sessions_app.protocols.responses.tools import names_of
from sessions_app.store import attach, read, sessions
from sessions_app.store.values import PathMessage, SessionSettings

_LARGEST = 2**31


class StoredResponseView(DirectView):
    """GET /sessions/{id}/v1/responses/{response}: the response again."""

    http_method_names = ["get", "delete"]
    addressing: ClassVar[Addressing | None] = BY_URL

    async def get(self, request: Request, **named: str) -> HttpResponseBase:
        """As it was answered."""
        state = runtime.current()
        settings, seq, path = await self.found(state, request, **named)
        asked = await read.load_asked(state.db, settings.id, seq)
        result = await state.turns.stored(settings, seq)
        return json_response(response_of(result, asked_of(asked, path)))

    async def delete(self, request: Request, **named: str) -> HttpResponseBase:
        """Refused."""
        await self.found(runtime.current(), request, **named)
        raise errors.MethodNotAllowed("a response is a turn of its session and stays as long as that")

    async def found(
        self, state: Runtime, request: Request, response_id: str, **named: str
    ) -> tuple[SessionSettings, int, Sequence[PathMessage]]:
        """Session and node of a response, and the path to it. One that the caller may not see is none."""
        await access.count_request(state, request, named)
        known = node_of(response_id)
        path: Sequence[PathMessage] = ()
        if known is not None:
            settings = await self._session(state, request, known[0], named)
            path = await _path(state, settings, *known)
        if known is None or not path:
            raise errors.NotFound(f"Response with id {response_id[:80]!r} not found.")
        return settings, known[1], path

    async def _session(
        self, state: Runtime, request: Request, session_id: UUID, named: dict[str, str]
    ) -> SessionSettings:
        """The session of the URL; without one that of the response, which its key must open."""
        if self.addressing is None:
            return await access.open_session(state, request, session_id.hex)
        return await self.addressing.session_of(state, request, RESPONSES, **named)

    def error_body(self, error: errors.TitoError) -> Any:
        """OpenAI's shape."""
        return RESPONSES.error_body(error)


async def _path(
    state: Runtime, settings: SessionSettings, session_id: UUID, seq: int
) -> Sequence[PathMessage]:
    """None of a node that is not there, or not in this session."""
    if settings.id != session_id or seq >= _LARGEST or not await sessions.exists(state.db, session_id):
        return ()
    return await attach.load_path_messages(state.db, session_id, seq)


class KeyStoredResponseView(StoredResponseView):
    """GET /v1/responses/{response}."""

    addressing = None


class AttemptStoredResponseView(StoredResponseView):
    """GET /rollout/{rollout_id}/attempt/{attempt_id}/v1/responses/{response}."""

    addressing = BY_ATTEMPT


class InputItemsView(StoredResponseView):
    """GET /sessions/{id}/v1/responses/{response}/input_items: what the response answered."""

    http_method_names = ["get"]

    async def get(self, request: Request, **named: str) -> HttpResponseBase:
        """A page, the newest item first."""
        state = runtime.current()
        settings, seq, path = await self.found(state, request, **named)
        names = names_of(asked_of(await read.load_asked(state.db, settings.id, seq), path)["tools"])
        query = {name: str(text) for name, text in request.query_params.items()}
        return json_response(item_page(input_items(settings.id, path, names), query))


class KeyInputItemsView(InputItemsView):
    """GET /v1/responses/{response}/input_items."""

    addressing = None


class AttemptInputItemsView(InputItemsView):
    """GET /rollout/{rollout_id}/attempt/{attempt_id}/v1/responses/{response}/input_items."""

    addressing = BY_ATTEMPT


class CancelResponseView(StoredResponseView):
    """POST /sessions/{id}/v1/responses/{response}/cancel: refused, as nothing runs in the background."""

    http_method_names = ["post"]

    async def post(self, request: Request, **named: str) -> HttpResponseBase:
        """Refused."""
        await self.found(runtime.current(), request, **named)
        raise errors.InvalidArgument("Cannot cancel a synchronous response.")


class KeyCancelResponseView(CancelResponseView):
    """POST /v1/responses/{response}/cancel."""

    addressing = None


class AttemptCancelResponseView(CancelResponseView):
    """POST /rollout/{rollout_id}/attempt/{attempt_id}/v1/responses/{response}/cancel."""

    addressing = BY_ATTEMPT
