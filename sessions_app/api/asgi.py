"""Direct dispatch: requests for a DirectView are answered without Django's handler, its threads and its
middleware.

What the middleware would have guarded is guarded here: host, origin, content type, body size, security
headers.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any, cast

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, HTTPScope
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.request import split_domain_port, validate_host
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from sessions_app import errors
from sessions_app.api.direct import DirectRequest, DirectView
from sessions_app.api.urls import ROUTES, SLASHED

logger = logging.getLogger(__name__)

_ROUTES = [(re.compile(f"/{pattern}\\Z"), view.as_view()) for pattern, view in [*SLASHED, *ROUTES]]
_JSON_ONLY = re.compile(r"/v1/(chat/completions|messages|messages/count_tokens|responses)\Z")
_SINGLE_LABEL = re.compile(r"[a-z0-9_-]+\Z")
_SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]


def route(path: str) -> tuple[Any, dict[str, str]] | None:
    """The view of a path and its arguments; None: the path is Django's."""
    for pattern, view in _ROUTES:
        if found := pattern.match(path):
            return view, found.groupdict()
    return None


async def serve(
    scope: HTTPScope,
    receive: ASGIReceiveCallable,
    send: ASGISendCallable,
    view: Any,
    arguments: dict[str, str],
) -> None:
    """Answer one request."""
    try:
        body = await _read_body(scope, receive)
        request = DirectRequest(cast(dict[str, Any], scope), BytesIO(body))
        request._body = body
        request.META["CONTENT_LENGTH"] = str(len(body))  # a chunked body declares none, and DRF asks for it
        check_host(request)
        check_origin(request)
        check_content_type(request)
        check_content_encoding(request)
    except errors.TitoError as error:
        await _send(_refusing(view, scope).error_response(error), send)
        return
    if settings.TITO.on_disconnect == "abort":
        await _serve_watched(request, receive, send, view, arguments)
    else:
        await _send(await view(request, **arguments), send)


def _refusing(view: Any, scope: HTTPScope) -> DirectView:
    """A view that answers a request it never saw in the form that the request would have got."""
    refusing: DirectView = view.view_class()
    refusing.content_type = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
    return refusing


async def _serve_watched(
    request: DirectRequest,
    receive: ASGIReceiveCallable,
    send: ASGISendCallable,
    view: Any,
    arguments: dict[str, str],
) -> None:
    """Cancel the turn when its client leaves."""
    watcher = asyncio.create_task(_cancel_on_disconnect(request, receive))
    try:
        await _send(await view(request, **arguments), send)
    except asyncio.CancelledError:
        if not watcher.done():
            raise
    finally:
        watcher.cancel()


async def _cancel_on_disconnect(request: DirectRequest, receive: ASGIReceiveCallable) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    request.abandon()


async def _read_body(scope: HTTPScope, receive: ASGIReceiveCallable) -> bytes:
    limit = settings.TITO.max_body_bytes
    refusal = errors.BodyTooLarge(f"the body exceeds TITO_MAX_BODY_MB={settings.TITO.max_body_mb}")
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > limit:
        raise refusal
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise errors.BadRequest("the client left before its body was complete")
        chunk = cast(bytes, message.get("body", b""))
        size += len(chunk)
        if size > limit:
            raise refusal
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def check_host(request: ASGIRequest) -> None:
    """The Host header is one of ALLOWED_HOSTS, or a name without a dot, which no foreign page can stand
    for.
    """
    domain, _ = split_domain_port(request.META.get("HTTP_HOST", ""))
    if not domain and "HTTP_HOST" not in request.META:
        return
    if not domain or not (validate_host(domain, settings.ALLOWED_HOSTS) or _SINGLE_LABEL.match(domain)):
        raise errors.InvalidHost("the Host header is not in ALLOWED_HOSTS")


def check_origin(request: ASGIRequest) -> None:
    """With authentication off, no page of another origin may call."""
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None or settings.TITO.auth != "off":
        return
    own = f"{request.scheme}://{request.META.get('HTTP_HOST', '')}"
    if origin != own:
        raise errors.ForbiddenOrigin("calls from other origins are refused while TITO_AUTH is off")


def check_content_type(request: ASGIRequest) -> None:
    """Protocol endpoints take JSON, declared or not."""
    if request.method != "POST" or not _JSON_ONLY.search(request.path_info):
        return
    kind = request.META.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise errors.UnsupportedMediaType(f"content type {kind[:80]!r} is not JSON")


def check_content_encoding(request: ASGIRequest) -> None:
    """Protocol endpoints unpack nothing: a small body cannot become a large one."""
    coding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if coding not in ("", "identity") and _JSON_ONLY.search(request.path_info):
        raise errors.UnsupportedMediaType(
            f"content encoding {coding[:80]!r} is not taken: send the JSON as it is"
        )


async def _send(response: HttpResponseBase, send: ASGISendCallable) -> None:
    if isinstance(response, Response):
        response.render()
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.items()]
    await send(
        {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": headers + _SECURITY_HEADERS,
            "trailers": False,
        }
    )
    if isinstance(response, StreamingHttpResponse):
        async for chunk in cast(AsyncIterator[bytes], response.streaming_content):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    else:
        content = cast(HttpResponse, response).content
        await send({"type": "http.response.body", "body": content, "more_body": False})
