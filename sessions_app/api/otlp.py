"""OTLP over HTTP: `POST /v1/traces` and `/v1/logs`, by key, by session and by attempt.

Answers are in the encoding of the request, errors are `google.rpc.Status`. A slash at the end changes
nothing: exporters count a redirect as success and lose what they sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import runtime
from sessions_app.api.access import SESSION_ID
from sessions_app.api.direct import DirectView, body_of, bytes_response, with_error_headers
from sessions_app.api.trace_access import Sender, sender_of, session_of_url
from trainer_export.spans.destinations import Envelope
from trainer_export.spans.service import Decode, Delivery
from trainer_export.traces.otlp import (
    GZIP,
    Encoding,
    Rejection,
    Route,
    answered,
    decode_logs,
    decode_traces,
    encoding_of,
    logs_response,
    route_of_headers,
    status_body,
    traces_response,
)

RETRY_AFTER_S = "1"
"""Exporters give up at once where they are asked to wait longer than they have left."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One of OTLP's kinds of batches."""

    decode: Decode
    answer: Callable[[Encoding, Sequence[Rejection]], bytes]


class OtlpView(DirectView):
    """Takes one batch."""

    http_method_names = ["post"]
    signal: ClassVar[Signal]

    async def post(self, request: Request, **named: str) -> HttpResponseBase:
        """Store what can be stored; say what cannot, and why."""
        state = runtime.current()
        if state.draining:
            raise errors.Draining("this process is shutting down")
        encoding = encoding_of(self.content_type)
        sender = await sender_of(state, request)
        envelope = await self._envelope(sender, named)
        delivery = Delivery(body_of(request), self.content_type, request.headers.get("content-encoding", ""))
        rejected = await state.spans.receive(delivery, self.signal.decode, envelope, sender.find)
        sent, zipped = answered(
            self.signal.answer(encoding, rejected), request.headers.get("accept-encoding", "")
        )
        response = bytes_response(sent, content_type=str(encoding))
        response["Vary"] = "Accept-Encoding"
        if zipped:
            response["Content-Encoding"] = GZIP
        return response

    async def _envelope(self, sender: Sender, named: dict[str, str]) -> Envelope:
        """What URL, headers and key say."""
        at = datetime.now(UTC)
        if named:
            url = Route(named.get("rollout_id"), named.get("attempt_id"), named.get("session_id"))
            session = await session_of_url(sender, url)
            return Envelope(at, Route(session_id=session.hex), Route())
        headers = {name.lower(): value for name, value in sender.request.headers.items()}
        if not SESSION_ID.match(headers.get("x-session-id", "").strip()):
            headers.pop("x-session-id", None)  # harnesses send ids of their own by that name
        return Envelope(at, route_of_headers(headers), sender.default)

    def error_response(self, error: errors.TitoError) -> HttpResponseBase:
        """A Status in the encoding of the request; in JSON where that is neither."""
        encoding = Encoding.PROTOBUF if "protobuf" in self.content_type.lower() else Encoding.JSON
        body = status_body(encoding, error.status, str(error))
        response = bytes_response(body, error.status, str(encoding))
        with_error_headers(response, error)
        if error.status == errors.NotReady.status:
            response["Retry-After"] = RETRY_AFTER_S
        return response


TRACES = Signal(decode_traces, traces_response)
LOGS = Signal(decode_logs, logs_response)


class KeyTracesView(OtlpView):
    """Spans, routed by what they name, by headers or by the key."""

    signal = TRACES


class SessionTracesView(OtlpView):
    """Spans of a session."""

    signal = TRACES


class AttemptTracesView(OtlpView):
    """Spans of an attempt."""

    signal = TRACES


class KeyLogsView(OtlpView):
    """Rewards as log records; all other records are taken and ignored."""

    signal = LOGS


class SessionLogsView(OtlpView):
    """Rewards of a session as log records."""

    signal = LOGS


class AttemptLogsView(OtlpView):
    """Rewards of an attempt as log records."""

    signal = LOGS
