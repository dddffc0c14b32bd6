"""Who may send spans for which session, and where spans go that name none.

The admin token sends for every session. A session's key sends for its session and for every attempt of its
rollout. Deleted sessions still take spans: SDKs send what has ended seconds later.
"""

from dataclasses import dataclass
from uuid import UUID

from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access
from sessions_app.api.runtime import Runtime
from sessions_app.store import sessions
from sessions_app.store.tracing import (
    TraceTarget,
    target_of_attempt,
    target_of_key,
    target_of_session,
)
from trainer_export.arguments import is_text
from trainer_export.spans.destinations import Refused
from trainer_export.traces.otlp import Route

FIRST_ATTEMPT = "0"
"""Of a rollout whose spans name no attempt."""
_NOT_THERE = "the span names a session or rollout that does not exist or that this key does not open"


@dataclass(frozen=True, slots=True)
class Sender:
    """The caller of one request."""

    state: Runtime
    request: Request
    admin: bool
    own: TraceTarget | None
    """The session of its key."""

    @property
    def default(self) -> Route:
        """Where spans go that name nothing."""
        return Route(session_id=self.own.session_id.hex) if self.own else Route()

    async def find(self, route: Route) -> UUID:
        """The session of a route. Raises Refused."""
        names = (route.session_id, route.rollout_id, route.attempt_id)
        if not all(name is None or is_text(name) for name in names):
            raise Refused("the span names a session, rollout or attempt that cannot be one")
        if route.session_id is not None:
            return await self._session(route.session_id)
        return await self._attempt(route.rollout_id or "", route.attempt_id)

    async def _session(self, session_id: str) -> UUID:
        if access.SESSION_ID.match(session_id):
            target = await target_of_session(self.state.db, UUID(session_id))
            if target is not None and self._may_send_for(target):
                return target.session_id
        raise Refused(_NOT_THERE)

    async def _attempt(self, rollout_id: str, attempt_id: str | None) -> UUID:
        if not self.admin and not await self._opens(rollout_id):
            raise Refused(_NOT_THERE)
        target = await target_of_attempt(self.state.db, rollout_id, attempt_id)
        if target is not None:
            return target.session_id
        try:
            created = await access.session_of_attempt(
                self.state, self.request, rollout_id, attempt_id or FIRST_ATTEMPT
            )
        except errors.Unauthorized:
            raise Refused(_NOT_THERE) from None
        except errors.BadRequest as error:
            raise Refused(str(error)) from None
        return created.id

    def _may_send_for(self, target: TraceTarget) -> bool:
        if self.admin or self.own is None:
            return self.admin
        same_rollout = target.rollout_id is not None and target.rollout_id == self.own.rollout_id
        return same_rollout or target.session_id == self.own.session_id

    async def _opens(self, rollout_id: str) -> bool:
        if self.own is not None and self.own.rollout_id == rollout_id:
            return True
        key_hash = access.credentials_of(self.request).hash
        return await sessions.key_opens_rollout(self.state.db, rollout_id, key_hash)


async def sender_of(state: Runtime, request: Request) -> Sender:
    """The caller. Raises Unauthorized where a key is needed and none, or an unknown one, was sent."""
    credentials = access.credentials_of(request)
    admin = access.is_admin(state, credentials)
    own = None
    if credentials.key is not None and not (admin and state.configuration.auth != "off"):
        own = await _own(state, credentials)
    if not admin and own is None:
        raise errors.Unauthorized("this needs the admin token or the key of a session or rollout")
    return Sender(state, request, admin, own)


async def _own(state: Runtime, credentials: access.Credentials) -> TraceTarget | None:
    """The session of a key; without authentication a key may be a session's id."""
    key = credentials.key or ""
    found = await target_of_key(state.db, credentials.hash)
    if found is None and state.configuration.auth == "off" and access.SESSION_ID.match(key):
        found = await target_of_session(state.db, UUID(key))
    return found


async def session_of_url(sender: Sender, route: Route) -> UUID:
    """The session that a URL names. Raises SessionNotFound or Unauthorized: the whole request is about it."""
    try:
        return await sender.find(route)
    except Refused:
        if route.session_id is not None:
            raise errors.SessionNotFound(route.session_id) from None
        raise errors.Unauthorized("no session of this rollout has this key") from None
