"""What the pages of the admin may load and where they may send: this server, and nothing else.

Scripts come from files, never from the page. The toolkit of the pages evaluates the expressions of their
attributes, which takes `unsafe-eval`; styles stand in attributes too.
"""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

POLICY = "; ".join((
    "default-src 'self'",
    "script-src 'self' 'unsafe-eval'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "object-src 'none'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
))  # fmt: skip

Answer = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class ContentPolicyMiddleware:
    """Sets the header on every answer that Django gives."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Answer) -> None:
        self._get_response = get_response
        self._awaits = iscoroutinefunction(get_response)
        if self._awaits:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """The answer, with the policy."""
        if self._awaits:
            return self._later(request)
        response = self._get_response(request)
        assert isinstance(response, HttpResponseBase)
        return _with_policy(response)

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._get_response(request)
        assert not isinstance(answer, HttpResponseBase)
        return _with_policy(await answer)


def _with_policy(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    return response
