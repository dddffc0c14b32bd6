"""The one HTTP client of a process towards its engines, and the names of what can go wrong on the way.

Invariant: a request whose first byte may have reached an engine is never sent twice. Redirects are not
followed, and an answer of any status is an answer: only the lack of one is an error here.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from sessions_app import errors
from sessions_app.backends.destinations import GuardedResolver

CONNECT_ATTEMPTS = 3
_FIRST_PAUSE_S = 0.05
_LONGEST_CONNECT_S = 10.0
_IDLE_CONNECTION_S = 4.0
"""Shorter than the idle limit of common engine servers (5 s), so that they do not hang up on a new request.
"""
_LARGEST_ANSWER = 2**30
"""Bytes, unpacked: many times the replay rows of a long context, and less than what ends a process."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An engine's answer, whole."""

    status: int
    headers: Mapping[str, str]
    """Lower-case names; repeated ones joined by a comma."""
    body: bytes


class ConnectFailed(errors.UpstreamUnreachable):
    """Nothing was sent: asking again, or elsewhere, is safe."""


class HttpClient:
    """A pool of connections without limit, bound to the event loop that started it."""

    def __init__(self, timeout_s: float, largest_answer: int = _LARGEST_ANSWER) -> None:
        self._timeout_s = timeout_s
        self._largest_answer = largest_answer
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open the pool; a second call changes nothing."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=_IDLE_CONNECTION_S, resolver=GuardedResolver()
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
            )

    async def close(self) -> None:
        """Close all connections; idempotent."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        """One request. A refused connection is tried again a few times: nothing was sent then."""
        for attempt in range(1, CONNECT_ATTEMPTS):
            try:
                return await self.request(method, url, body, headers, self._timeout_s)
            except ConnectFailed:
                await asyncio.sleep(_FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.0))
        return await self.request(method, url, body, headers, self._timeout_s)

    async def request(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float
    ) -> HttpReply:
        """One request, one attempt, the whole answer. Raises UpstreamUnreachable or UpstreamTimeout, and
        UpstreamInvalidReply on an answer without end."""
        if self._session is None:
            raise errors.NotReady("the connection pool to the engine is not open")
        limits = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(timeout_s, _LONGEST_CONNECT_S))
        try:
            async with self._session.request(
                method,
                URL(url, encoded=True),
                data=body or None,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                skip_auto_headers=("Content-Type",),
            ) as response:
                return HttpReply(response.status, _joined(response.headers), await self._whole(response))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise transport_error(error) from error

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        blocks, size = [], 0
        async for block in response.content.iter_any():
            blocks.append(block)
            size += len(block)
            if size > self._largest_answer:
                raise errors.UpstreamInvalidReply(
                    f"invalid engine reply: the answer is longer than {self._largest_answer} bytes"
                )
        return b"".join(blocks)


def _joined(headers: Mapping[str, str]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def transport_error(error: BaseException) -> errors.UpstreamError:
    """The contract's error for a failure of the transport. Order matters: aiohttp's classes overlap."""
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ConnectFailed(_text("ConnectTimeout", ""))
        case aiohttp.ClientConnectorError() | aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ConnectFailed(_text("ConnectError", "All connection attempts failed"))
        case UnicodeError():
            return ConnectFailed(_text("ConnectError", "the engine's host is no host name"))
        case TimeoutError():
            return errors.UpstreamTimeout(_text("ReadTimeout", ""))
        case aiohttp.ServerDisconnectedError():
            return errors.UpstreamUnreachable(
                _text("RemoteProtocolError", "Server disconnected without sending a response.")
            )
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return errors.UpstreamUnreachable(
                _text("RemoteProtocolError", "the answer broke off or is no HTTP")
            )
        case _:
            return errors.UpstreamUnreachable(_text("ReadError", ""))


def _text(name: str, message: str) -> str:
    return f"backend transport error: {name}: {message}"
