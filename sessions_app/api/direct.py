"""DRF views that run on the event loop: the base class of the chat endpoints and of everything agents
call.

The policies of DRF (authentication, permission, parsing, rendering, exception handling) are kept; their
synchronous hooks are replaced by awaited ones, so that no request needs a thread. Mounted in urls.py too,
where Django's handler serves them the same way, only slower.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from sessions_app.api import error_counts
from sessions_app.api.openapi.inspection import DirectSchema
from sessions_app.errors import (
    MethodNotAllowed,
    PrefixMismatch,
    TitoError,
    UnrecordedReply,
    refused_answer,
)
from sessions_app.json_text import dumps
from sessions_app.protocols.errors import plain_error
from sessions_app.store.commit import LateReason
from sessions_app.unexpected import whence

logger = logging.getLogger(__name__)

_NOT_PASSED_BACK = frozenset({
    "content-length", "transfer-encoding", "content-encoding", "server", "date", "connection", "keep-alive",
    "proxy-authenticate", "proxy-authorization", "te", "trailer", "upgrade",
})  # fmt: skip

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

ERROR_CODE, RETRYABLE = "X-Tito-Error-Code", "X-Tito-Retryable"
SESSION_KEY = "X-Tito-Session-Key"
SHOULD_RETRY = "X-Should-Retry"
"""What the SDKs of OpenAI and Anthropic obey; left alone they send a 409 again."""


class BytesParser(BaseParser):
    """Hands the body on as it came: how it is read depends on the session it is for."""

    media_type = "*/*"

    def parse(  # type: ignore[override]
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """The body."""
        return stream.body if isinstance(stream, HttpRequest) else stream.read()


class ExactJSONRenderer(BaseRenderer):
    """Compact UTF-8 JSON that alters no value."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The JSON text."""
        return dumps(data)


class FixedNegotiation(BaseContentNegotiation):
    """One parser, one renderer: Accept and Content-Type choose nothing here."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """The only parser."""
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """The only renderer."""
        return renderers[0], renderers[0].media_type


class DirectRequest(ASGIRequest):
    """A request that the ASGI entry dispatched itself."""

    turn: "asyncio.Task[Any] | None" = None
    """The generation it waits for, so that a vanished client can cancel it."""
    gone = False
    """Its client has left and nobody waits for an answer."""

    def answered_by(self, turn: "asyncio.Task[Any]") -> None:
        """Name the generation it waits for."""
        self.turn = turn
        if self.gone:
            self.abandon()

    def abandon(self) -> None:
        """Its client has left: cancel the generation, once there is one. Not before it has begun, or nothing
        would record that it was asked for."""
        self.gone = True
        if self.turn is not None:
            asyncio.get_running_loop().call_soon(self.turn.cancel)


class DirectView(APIView):
    """An APIView whose handlers are coroutines and whose errors are TitoErrors."""

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    parser_classes = (BytesParser,)
    renderer_classes = (ExactJSONRenderer,)
    content_negotiation_class = FixedNegotiation
    schema = DirectSchema()
    view_is_async = True
    content_type = ""
    """Of the request's body, as declared."""

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Run the handler of the method on this loop."""
        self.args, self.kwargs, self.format_kwarg = args, kwargs, None
        self.content_type = request.META.get("CONTENT_TYPE", "")
        drf_request = self.initialize_request(request, *args, **kwargs)
        self.request, self.headers = drf_request, self.default_response_headers
        drf_request.accepted_renderer, drf_request.accepted_media_type = self.perform_content_negotiation(
            drf_request
        )
        try:
            response = await self._handler(request)(drf_request, *args, **kwargs)
        except TitoError as error:
            response = self.error_response(error)
        except Exception as error:
            view = self.__class__.__name__
            logger.error("unhandled error on %s %s: %s", request.method, view, whence(error))
            response = self.error_response(TitoError("internal error"))
        self._let_go(drf_request)
        return self.finalize_response(drf_request, response, *args, **kwargs)

    def _let_go(self, request: Request) -> None:
        """Cut the circles that DRF and Django make, or every body would stay until the garbage collector
        comes.
        """
        request.parser_context = None  # type: ignore[assignment]
        self.__dict__.pop("head", None)

    def _handler(self, request: HttpRequest) -> Callable[..., Awaitable[Any]]:
        name = (request.method or "").lower()
        handler = getattr(self, name, None) if name in self.http_method_names and name != "options" else None
        return handler or self._no_such_method

    async def _no_such_method(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return self.method_response()

    def method_response(self) -> HttpResponseBase:
        """405 in the words of the reference, with the methods that are there."""
        methods = [
            name.upper() for name in self.http_method_names if name != "options" and hasattr(self, name)
        ]
        response = json_response({"detail": "Method Not Allowed"}, 405)
        response["allow"] = ", ".join(methods)
        return with_error_headers(response, MethodNotAllowed())

    def error_body(self, error: TitoError) -> Any:
        """The body of an error; protocols override it."""
        return plain_error(error)

    def error_response(self, error: TitoError) -> HttpResponseBase:
        """An error in the caller's protocol."""
        return with_error_headers(json_response(self.error_body(error), error.status), error)

    @property
    def default_response_headers(self) -> dict[str, str]:
        """None: `Vary` and `Allow` say nothing here."""
        return {}


def tell(request: Request, header: str, value: str) -> None:
    """A header of the answer to come, whatever that will be."""
    request.parser_context["view"].headers[header] = value


def body_of(request: Request) -> bytes:
    """The body as it came."""
    data: Any = request.data  # an empty body never reaches the parser
    return data if isinstance(data, bytes) else b""


def json_response(data: Any, status: int = 200) -> HttpResponse:
    """Compact JSON."""
    return bytes_response(dumps(data), status)


def bytes_response(body: bytes, status: int = 200, content_type: str = "application/json") -> HttpResponse:
    """A body of known length."""
    response = HttpResponse(body, status=status, content_type=content_type)
    response["Content-Length"] = str(len(body))
    return response


def with_error_headers(response: HttpResponseBase, error: TitoError) -> HttpResponseBase:
    """Machine-readable facts of an error, which is counted."""
    error_counts.count(error.code)
    response[ERROR_CODE] = error.code
    response[RETRYABLE] = response[SHOULD_RETRY] = "true" if error.retryable else "false"
    if error.retry_after_s is not None:
        response["Retry-After"] = str(error.retry_after_s)
    if (reason := _unattached_for(error)) is not None:
        response["X-Tito-Recorded"], response["X-Tito-Reason"] = "false", reason
    return response


def _unattached_for(error: TitoError) -> LateReason | None:
    """Why a generated reply is not in the tree; None where none was generated."""
    if isinstance(error, UnrecordedReply):
        return LateReason.INTERNAL_ERROR
    if isinstance(error, PrefixMismatch):
        return LateReason.PREFIX_MISMATCH
    return LateReason.FAILED_VALIDATION if refused_answer(error) is not None else None


def received_headers(request: Request) -> dict[str, str]:
    """What the client sent, names in lower case; UTF-8 read as such, to go out as it came. Django drops names
    with an underscore from its own; engines get them like all others.
    """
    received: dict[str, str] = {}
    for raw_name, raw_value in cast(ASGIRequest, request._request).scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), _as_utf8(raw_value.decode("latin-1"))
        joint = "; " if name == "cookie" else ","
        received[name] = f"{received[name]}{joint}{value}" if name in received else value
    return received


def _as_utf8(value: str) -> str:
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def copy_headers(response: HttpResponse, headers: Mapping[str, str]) -> None:
    """The engine's headers byte for byte, without those of its connection and those no client could read."""
    of_connection = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    for name, value in headers.items():
        if name.lower() in _NOT_PASSED_BACK | of_connection or _CONTROL.search(value):
            continue
        response[name] = value.encode("utf-8", "surrogateescape").decode("latin-1")
