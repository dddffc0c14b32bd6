"""Responses of a turn: its headers, streams, and an engine's own answer handed on."""

from collections.abc import AsyncIterator, Iterator

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from sessions_app import errors
from sessions_app.api.direct import bytes_response, copy_headers, json_response, with_error_headers
from sessions_app.json_text import loads
from sessions_app.turns.values import TurnResult

_EVENT_STREAM = "text/event-stream; charset=utf-8"


def tito_headers(result: TurnResult) -> dict[str, str]:
    """Where a reply was stored, for clients that want to know."""
    session = {"X-Tito-Session": result.session_id.hex}
    if result.replayed:
        session["X-Tito-Replayed"] = "true"
    if result.node_seq is None:
        return {**session, "X-Tito-Recorded": "false", "X-Tito-Reason": str(result.late or "")}
    headers = {
        **session,
        "X-Tito-Recorded": "true",
        "X-Tito-Node": str(result.node_seq),
        "X-Tito-Attach": result.kind,
        "X-Tito-Reused-Tokens": str(result.reused_tokens),
    }
    if result.parent_seq is not None:
        headers["X-Tito-Parent"] = str(result.parent_seq)
    if result.cause is not None:
        headers["X-Tito-Cause"] = result.cause
    return headers


def reply_response(body: bytes, result: TurnResult, *, with_engine_headers: bool) -> HttpResponse:
    """A reply in one piece."""
    response = bytes_response(body)
    if with_engine_headers:
        copy_headers(response, result.generation.headers)
    for name, value in tito_headers(result).items():
        response[name] = value
    return response


def event_stream(
    events: Iterator[bytes] | AsyncIterator[bytes], result: TurnResult | None
) -> HttpResponseBase:
    """A streamed reply. `result`: of a turn that has ended; None while it is waited for."""
    if isinstance(events, AsyncIterator):
        response: HttpResponseBase = StreamingHttpResponse(events, content_type=_EVENT_STREAM)
    else:
        response = HttpResponse(b"".join(events), content_type=_EVENT_STREAM)
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    for name, value in (tito_headers(result) if result else {}).items():
        response[name] = value
    return response


def passed_through(error: errors.UpstreamStatus) -> HttpResponseBase:
    """An engine's answer other than 200: JSON compactly, anything else byte for byte."""
    try:
        response = json_response(loads(error.body), error.status)
    except errors.InvalidJson:
        response = bytes_response(error.body, error.status, content_type="")
    copy_headers(response, error.headers)
    return with_error_headers(response, error)
