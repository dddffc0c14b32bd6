"""The view of one turn, whatever the protocol and however its session is named.

Subclasses say which protocol, and which session a request means. Invariant: until a session is known nothing
is recorded; from then on a record says what became of the request.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import Any, ClassVar

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.addressing import Addressing
from sessions_app.api.direct import DirectRequest, DirectView, body_of, received_headers
from sessions_app.api.responding import event_stream, passed_through, reply_response
from sessions_app.api.runtime import Runtime
from sessions_app.json_text import dumps, parsed
from sessions_app.protocols import sse
from sessions_app.protocols.base import Incoming, WireProtocol
from sessions_app.protocols.errors import reference_error
from sessions_app.protocols.upstream import own_error
from sessions_app.store import sessions
from sessions_app.store.values import SessionSettings
from sessions_app.turns.stopwatch import ASKED_BY, NO_STOPWATCH, RunningStopwatch
from sessions_app.turns.values import Arrival, ChatRequest, TurnResult


class TurnView(DirectView):
    """Generates the next reply of a conversation."""

    protocol: ClassVar[WireProtocol]
    addressing: ClassVar[Addressing]
    reference = False
    """Errors and engines' answers as the reference session server gives them."""

    async def post(self, request: Request, **named: str) -> HttpResponseBase:
        """One turn."""
        state = runtime.current()
        if state.draining:
            raise errors.Draining("this process is shutting down")
        await access.count_request(state, request, named)
        settings = await self.addressing.session_of(state, request, self.protocol, **named)
        self.reference = self.reference and settings.history_policy != "linear"
        arrival = arrival_of(state, request, self.protocol, reference=self.reference)
        await self._check_room(state, settings, arrival)
        chat = await self._read(state, settings, arrival)
        arrival.stopwatch.lap("parse")
        work = state.spawn(state.turns.run(settings, chat))
        if isinstance(request._request, DirectRequest):
            request._request.answered_by(work)
        return await self._answer(state, chat, work)

    async def _check_room(self, state: Runtime, settings: SessionSettings, arrival: Arrival) -> None:
        """Where the process is full its body is not even read; the record says so."""
        try:
            state.turns.admission.check_room()
        except errors.Overloaded as error:
            await state.turns.refuse(settings, arrival, error)
            raise

    async def _read(self, state: Runtime, settings: SessionSettings, arrival: Arrival) -> ChatRequest:
        """The request of a body; one that is none leaves a record, but an unknown session is told first."""
        try:
            incoming = await self.incoming(state, settings, arrival)
            chat = self.protocol.read(incoming)
            return replace(chat, odd_numbers=True) if incoming.odd_numbers else chat
        except errors.TitoError as error:
            if not await sessions.exists(state.db, settings.id):
                raise errors.SessionNotFound(settings.id.hex) from None
            await state.turns.refuse(settings, arrival, error)
            raise

    async def incoming(self, state: Runtime, settings: SessionSettings, arrival: Arrival) -> Incoming:
        """The body, with what has to be looked up to understand it."""
        value, odd_numbers = parsed(arrival.body) if arrival.body else ({}, False)
        return Incoming(arrival, value, settings, odd_numbers=odd_numbers)

    async def _answer(
        self, state: Runtime, chat: ChatRequest, work: "asyncio.Task[TurnResult]"
    ) -> HttpResponseBase:
        every_s = state.configuration.keepalive_s
        waits = chat.stream or state.configuration.json_keepalive
        if not await sse.finished_within(work, every_s if waits else None):
            return self._waiting(work, chat, every_s)
        result = _result(state, work)
        if chat.stream:
            return event_stream(self.protocol.events(result, chat), result)
        body = self.protocol.reply(result, chat)
        response = reply_response(body, result, with_engine_headers=self.reference)
        return _timed(response, chat.arrival, state)

    def _waiting(
        self, work: "asyncio.Task[TurnResult]", chat: ChatRequest, every_s: float
    ) -> HttpResponseBase:
        """A reply that starts before its turn has ended."""
        if chat.stream:
            events = partial(self.protocol.events, request=chat)
            stream = sse.stream(work, events, self._late_events, every_s, self.protocol.keep_alive)
            return event_stream(stream, None)
        reply = partial(self.protocol.reply, request=chat)
        body = sse.padded_json(work, reply, self._late_error, every_s)
        return StreamingHttpResponse(body, content_type="application/json")

    def _late_events(self, error: errors.TitoError) -> Any:
        return self.protocol.error_events(own_error(error))

    def _late_error(self, error: errors.TitoError) -> bytes:
        told = own_error(error)
        return dumps({**self.error_body(told), "status": told.status})

    def error_body(self, error: errors.TitoError) -> Any:
        """The protocol's own shape, or the reference's."""
        return reference_error(error) if self.reference else self.protocol.error_body(error)

    def error_response(self, error: errors.TitoError) -> HttpResponseBase:
        """On the reference's path an engine's own answer passes through with its headers."""
        if isinstance(error, errors.UpstreamStatus) and self.reference:
            return passed_through(error)
        return super().error_response(own_error(error))


def _result(state: Runtime, work: "asyncio.Task[TurnResult]") -> TurnResult:
    """Of a turn that has ended. Raises what ended it."""
    if work.cancelled() and state.draining:
        raise errors.Draining(errors.SHUT_DOWN)
    return work.result()


def arrival_of(state: Runtime, request: Request, protocol: WireProtocol, *, reference: bool) -> Arrival:
    """What is known of a request before its body is read."""
    started, body = perf_counter(), body_of(request)
    return Arrival(
        protocol=protocol.name,
        path=protocol.path,
        body=body,
        request_hash=sha256(body).digest(),
        headers=_forwardable(state, request, reference),
        query=request.META.get("QUERY_STRING", ""),
        arrived_at=datetime.now(UTC),
        started=started,
        idempotency_key=request.headers.get("idempotency-key") or None,
        reference=reference,
        stopwatch=RunningStopwatch(started) if _is_timed(state, request) else NO_STOPWATCH,
    )


def _is_timed(state: Runtime, request: Request) -> bool:
    return ASKED_BY in request.headers or state.own_spans is not None


def _timed(response: HttpResponseBase, arrival: Arrival, state: Runtime) -> HttpResponseBase:
    """The reply, with the time of each stage where it was asked for."""
    stopwatch = arrival.stopwatch
    if ASKED_BY in arrival.headers and isinstance(stopwatch, RunningStopwatch):
        stopwatch.lap("reply")
        response["Server-Timing"] = stopwatch.header(state.db.statements)
    return response


def _forwardable(state: Runtime, request: Request, reference: bool) -> dict[str, str]:
    """Header names in lower case. Only where nobody is asked for a key may one be for the engine."""
    headers = received_headers(request)
    if reference and state.configuration.auth == "off":
        return headers
    return {name: value for name, value in headers.items() if not access.is_credential(name)}
