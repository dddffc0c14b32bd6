"""How a request names its session: by URL, by key, or by rollout and attempt."""

from typing import Protocol

from rest_framework.request import Request

from sessions_app.api import access
from sessions_app.api.direct import body_of
from sessions_app.api.runtime import Runtime
from sessions_app.json_text import loads
from sessions_app.protocols.base import WireProtocol
from sessions_app.store.values import SessionSettings


class Addressing(Protocol):
    """Finds the session a request means, if its caller may use it."""

    async def session_of(
        self, state: Runtime, request: Request, protocol: WireProtocol, **named: str
    ) -> SessionSettings:
        """The session. `named`: what the URL says. Raises SessionNotFound or Unauthorized."""
        ...


class ByUrl:
    """`/sessions/{session_id}/…`"""

    async def session_of(
        self, state: Runtime, request: Request, protocol: WireProtocol, **named: str
    ) -> SessionSettings:
        """See Addressing."""
        return await access.open_session(state, request, named["session_id"])


class ByKey:
    """The session that the caller's key opens; with TITO_AUTO_SESSIONS a new one where it opens none."""

    async def session_of(
        self, state: Runtime, request: Request, protocol: WireProtocol, **named: str
    ) -> SessionSettings:
        """See Addressing."""

        def name_in_body() -> str:
            body = body_of(request)
            return protocol.session_name(loads(body) if body else None)

        return await access.session_by_key(state, request, name_in_body)


class ByAttempt:
    """`/rollout/{rollout_id}/attempt/{attempt_id}/…`: a session for each attempt, created on first use."""

    async def session_of(
        self, state: Runtime, request: Request, protocol: WireProtocol, **named: str
    ) -> SessionSettings:
        """See Addressing."""
        return await access.session_of_attempt(state, request, named["rollout_id"], named["attempt_id"])


BY_URL, BY_KEY, BY_ATTEMPT = ByUrl(), ByKey(), ByAttempt()
