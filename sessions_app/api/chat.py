"""POST /sessions/{id}/v1/chat/completions."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from time import perf_counter
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.direct import (
    DirectRequest,
    body_of,
    bytes_response,
    copy_headers,
    json_response,
    with_error_headers,
)
from sessions_app.api.proxy import ProxyView
from sessions_app.api.runtime import Runtime
from sessions_app.json_text import dumps, loads
from sessions_app.protocols import openai_chat, sse
from sessions_app.protocols.errors import openai_error, reference_error
from sessions_app.store import sessions
from sessions_app.store.values import SessionSettings
from sessions_app.turns.values import Arrival, TurnResult

_EVENT_STREAM = "text/event-stream; charset=utf-8"


class ChatView(ProxyView):
    """One chat turn of a session named by the URL. Methods other than POST are the raw proxy's."""

    _linear = False
    path = openai_chat.PATH.lstrip("/")

    async def post(  # type: ignore[override]
        self, request: Request, session_id: str
    ) -> HttpResponseBase:
        """Generate the next reply of a conversation."""
        state = runtime.current()
        if state.draining:
            raise errors.Draining("this process is shutting down")
        settings = await access.open_session(state, request, session_id)
        self._linear = settings.history_policy == "linear"
        arrival = arrival_of(state, request, openai_chat.NAME, openai_chat.PATH)
        return await self._turn(request, state, settings, arrival)

    async def _turn(
        self, request: Request, state: Runtime, settings: SessionSettings, arrival: Arrival
    ) -> HttpResponseBase:
        try:
            chat = openai_chat.read_request(arrival, loads(arrival.body) if arrival.body else {})
        except errors.TitoError as error:
            await self._refuse(state, settings, arrival, error)
            raise
        work = state.spawn(state.turns.run(settings, chat))
        if isinstance(request._request, DirectRequest):
            request._request.turn = work
        configuration = state.configuration
        waits = chat.stream or configuration.json_keepalive
        if not await sse.finished_within(work, configuration.keepalive_s if waits else None):
            return self._waiting(work, chat.stream, configuration.keepalive_s)
        result = work.result()
        if chat.stream:
            return _event_stream(openai_chat.stream_events(result), result)
        return _json_reply(result, passed_through=not self._linear)

    async def _refuse(
        self, state: Runtime, settings: SessionSettings, arrival: Arrival, error: errors.TitoError
    ) -> None:
        """A body that is no request; an unknown session is told first."""
        if not await sessions.exists(state.db, settings.id):
            raise errors.SessionNotFound(settings.id.hex)
        await state.turns.refuse(settings, arrival, error)

    def _waiting(self, work: Any, stream: bool, every_s: float) -> HttpResponseBase:
        """A reply that starts before its turn has ended."""
        if stream:
            return _event_stream(sse.stream(work, openai_chat.stream_events, _error_events, every_s), None)
        body = sse.padded_json(work, openai_chat.reply_json, self._late_error, every_s)
        return StreamingHttpResponse(body, content_type="application/json")

    def _late_error(self, error: errors.TitoError) -> bytes:
        body = self.error_body(error)
        return dumps({**body, "status": error.status})

    def error_body(self, error: errors.TitoError) -> Any:
        """The reference's body; policy `linear` speaks OpenAI's."""
        return openai_error(error) if self._linear else reference_error(error)

    def error_response(self, error: errors.TitoError) -> HttpResponseBase:
        """An engine's own answer passes through with its headers."""
        if isinstance(error, errors.UpstreamStatus):
            return _passed_through(error)
        return super().error_response(error)


def arrival_of(state: Runtime, request: Request, protocol: str, path: str) -> Arrival:
    """What is known of a request before its body is read."""
    body = body_of(request)
    return Arrival(
        protocol=protocol,
        path=path,
        body=body,
        request_hash=sha256(body).digest(),
        headers=_forwardable(state, request),
        query=request.META.get("QUERY_STRING", ""),
        arrived_at=datetime.now(UTC),
        started=perf_counter(),
        idempotency_key=request.headers.get("idempotency-key") or None,
    )


def _forwardable(state: Runtime, request: Request) -> dict[str, str]:
    headers = {name.lower(): value for name, value in request.headers.items()}
    if state.configuration.auth == "off":
        return headers
    return {name: value for name, value in headers.items() if not access.is_credential(name)}


def tito_headers(result: TurnResult) -> dict[str, str]:
    """Where a reply was stored, for clients that want to know."""
    if result.node_seq is None:
        return {"X-Tito-Recorded": "false", "X-Tito-Reason": str(result.late or "")}
    headers = {
        "X-Tito-Recorded": "true",
        "X-Tito-Node": str(result.node_seq),
        "X-Tito-Attach": result.kind,
        "X-Tito-Reused-Tokens": str(result.reused_tokens),
    }
    if result.parent_seq is not None:
        headers["X-Tito-Parent"] = str(result.parent_seq)
    if result.cause is not None:
        headers["X-Tito-Cause"] = result.cause
    if result.replayed:
        headers["X-Tito-Replayed"] = "true"
    return headers


def _json_reply(result: TurnResult, *, passed_through: bool) -> HttpResponse:
    response = bytes_response(openai_chat.reply_json(result))
    if passed_through:
        copy_headers(response, result.generation.headers)
    for name, value in tito_headers(result).items():
        response[name] = value
    return response


def _event_stream(
    events: Iterator[bytes] | AsyncIterator[bytes], result: TurnResult | None
) -> HttpResponseBase:
    if isinstance(events, AsyncIterator):
        response: HttpResponseBase = StreamingHttpResponse(events, content_type=_EVENT_STREAM)
    else:
        response = HttpResponse(b"".join(events), content_type=_EVENT_STREAM)
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    for name, value in (tito_headers(result) if result else {}).items():
        response[name] = value
    return response


def _error_events(error: errors.TitoError) -> Iterator[bytes]:
    yield b"data: " + dumps(openai_error(error)) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _passed_through(error: errors.UpstreamStatus) -> HttpResponseBase:
    """An engine's answer other than 200: JSON compactly, anything else byte for byte."""
    try:
        response = json_response(loads(error.body), error.status)
        response["Content-Type"] = error.headers.get("content-type", "application/json")
    except errors.InvalidJson:
        response = bytes_response(error.body, error.status, error.headers.get("content-type", ""))
    copy_headers(response, error.headers)
    return with_error_headers(response, error)
