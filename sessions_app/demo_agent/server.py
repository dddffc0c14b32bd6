"""A running TITO, seen from outside: is it there, sessions made, read and removed over HTTP."""

from dataclasses import dataclass
from typing import Any

import aiohttp

_PATIENCE = aiohttp.ClientTimeout(total=60)


class NoServer(Exception):
    """Nothing usable answers; the text says what to do."""


class RequestFailed(Exception):
    """An answer other than 2xx to a request of ours."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session of ours."""

    id: str
    key: str


class Server:
    """Use as an async context manager."""

    def __init__(self, base: str, admin_token: str | None) -> None:
        self.base = base.rstrip("/")
        self._authorization = {"Authorization": f"Bearer {admin_token}"} if admin_token else {}

    async def __aenter__(self) -> "Server":
        self._http = aiohttp.ClientSession(timeout=_PATIENCE, headers=self._authorization)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.close()

    async def require_ready(self) -> None:
        """Raises NoServer unless turns can be served."""
        try:
            async with self._http.get(f"{self.base}/ready") as reply:
                body = await reply.json(content_type=None)
        except (aiohttp.ClientConnectionError, TimeoutError):
            hint = "run `manage.py up` first, or give --base-url"
            raise NoServer(f"nothing answers at {self.base}: {hint}") from None
        except (aiohttp.ClientError, ValueError):
            body = None
        if not isinstance(body, dict) or "ready" not in body:
            raise NoServer(f"what answers at {self.base} is not TITO: give its address with --base-url")
        if not body["ready"]:
            bad = ", ".join(f"{name}: {state}" for name, state in body["parts"].items() if state != "ok")
            raise NoServer(f"{self.base} is not ready ({bad or 'it is shutting down'})")

    async def open(self, **options: Any) -> Opened:
        """A new session."""
        async with self._http.post(f"{self.base}/sessions", json=options) as reply:
            body = await _body(reply)
            session_id = body["session_id"]
            return Opened(session_id, reply.headers.get("X-Tito-Session-Key", session_id))

    async def read(self, session_id: str, leaf: int | None = None) -> dict[str, Any]:
        """The session along its active path, or along the path to a leaf."""
        query = {} if leaf is None else {"leaf": str(leaf)}
        async with self._http.get(f"{self.base}/sessions/{session_id}", params=query) as reply:
            body: dict[str, Any] = await _body(reply)
            return body

    async def ask(self, session_id: str, body: dict[str, Any]) -> None:
        """One turn whose reply does not matter."""
        url = f"{self.base}/sessions/{session_id}/v1/chat/completions"
        async with self._http.post(url, json=body) as reply:
            await _body(reply)

    async def discard(self, session_id: str) -> None:
        """Remove a session and all that belongs to it."""
        url = f"{self.base}/sessions/{session_id}"
        async with self._http.delete(url, params={"discard": "true"}) as reply:
            await _body(reply)


async def _body(reply: aiohttp.ClientResponse) -> Any:
    if reply.status == 204:
        return None
    if reply.status == 401:
        raise NoServer(
            "the server wants its admin token: set TITO_AUTH=token and TITO_ADMIN_TOKEN as it has them"
        )
    if reply.status >= 400:
        code = reply.headers.get("X-Tito-Error-Code", "")
        raise RequestFailed(f"{reply.method} {reply.status} {code}".strip())
    return await reply.json(content_type=None)
