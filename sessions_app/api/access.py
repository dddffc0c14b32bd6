"""Who may do what: the admin token, session keys, and which session a request means.

Keys are compared in constant time and stored as SHA-256; no text of a key leaves this module. With
TITO_AUTH=off every caller may do everything; the server then refuses to listen beyond loopback.
"""

import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID, uuid4

from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api.direct import SESSION_KEY, tell
from sessions_app.api.runtime import Runtime
from sessions_app.api.session_options import read_options
from sessions_app.store import sessions
from sessions_app.store.values import SessionSettings

SESSION_ID = re.compile(r"[0-9a-f]{32}\Z")
_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-session-id", "x-tito-session-key", "cookie")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request carries."""

    key: str | None
    """Bearer token or X-Api-Key."""
    session_id: str | None
    """X-Session-Id."""

    @property
    def hash(self) -> bytes:
        """What would be stored of the key."""
        return key_hash(self.key or "")

    @property
    def names_session(self) -> bool:
        """X-Session-Id has the form of an id of ours; harnesses send ids of their own by that name."""
        return self.session_id is not None and SESSION_ID.match(self.session_id) is not None


def credentials_of(request: Request) -> Credentials:
    """The credentials of a request."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    key = bearer or request.headers.get("x-api-key", "").strip()
    return Credentials(key or None, request.headers.get("x-session-id", "").strip() or None)


def new_session_key() -> str:
    """A key for one session, 43 characters."""
    return "tito-" + secrets.token_urlsafe(29)


def key_hash(key: str) -> bytes:
    """What is stored of a key."""
    return sha256(key.encode("utf-8", "surrogatepass")).digest()


def parse_session_id(text: str) -> UUID:
    """A session id of a URL. Raises SessionNotFound for what cannot be one."""
    if not SESSION_ID.match(text):
        raise errors.SessionNotFound(text)
    return UUID(text)


def is_admin(runtime: Runtime, credentials: Credentials) -> bool:
    """Whether the caller holds the admin token, or none is needed."""
    token = runtime.configuration.admin_token
    if runtime.configuration.auth == "off":
        return True
    if token is None or credentials.key is None:
        return False
    return hmac.compare_digest(credentials.key.encode("utf-8", "surrogatepass"), token.encode())


def require_admin(runtime: Runtime, request: Request) -> None:
    """Raises Unauthorized unless the caller is an admin."""
    if not is_admin(runtime, credentials_of(request)):
        raise errors.Unauthorized("this needs the admin token")


async def open_session(runtime: Runtime, request: Request, session_id: str) -> SessionSettings:
    """The session of a URL, if the caller may use it. Another key's session is one that does not exist."""
    credentials = credentials_of(request)
    admin = is_admin(runtime, credentials)
    if not admin and credentials.key is None:
        raise errors.Unauthorized("this needs the session's key or the admin token")
    settings = await runtime.turns.settings_of(parse_session_id(session_id))
    if not admin and not await sessions.key_opens(runtime.db, settings.id, credentials.hash):
        raise errors.SessionNotFound(session_id)
    return settings


async def session_by_key(
    runtime: Runtime, request: Request, name_in_body: Callable[[], str]
) -> SessionSettings:
    """The session that the caller's key opens. `name_in_body`: asked where no credential is there to be
    the key of a session yet to be created."""
    credentials = credentials_of(request)
    if runtime.configuration.auth == "off":
        return await _open_by_key(runtime, credentials, name_in_body)
    if credentials.key is None:
        raise errors.Unauthorized("this needs a session's key")
    if is_admin(runtime, credentials):
        if credentials.session_id is None:
            raise errors.Unauthorized("the admin token opens every session: name one in X-Session-Id")
        return await runtime.turns.settings_of(parse_session_id(credentials.session_id))
    settings = await sessions.find_by_key(runtime.db, credentials.hash)
    if settings is None:
        raise errors.Unauthorized("no session has this key")
    if credentials.names_session and credentials.session_id != settings.id.hex:
        raise errors.SessionNotFound(credentials.session_id or "")
    return settings


async def count_request(runtime: Runtime, request: Request, named: Mapping[str, str]) -> None:
    """Raises RateLimited where a key asks too often. `named`: what the URL says, where there is no key."""
    credentials = credentials_of(request)
    if runtime.limiter is None or (runtime.configuration.auth != "off" and is_admin(runtime, credentials)):
        return
    asking = credentials.key or credentials.session_id or "/".join(named.values())
    await runtime.limiter.take(key_hash(asking))


async def require_any_key(runtime: Runtime, request: Request) -> None:
    """Raises Unauthorized unless the caller has the admin token or the key of any session."""
    credentials = credentials_of(request)
    if is_admin(runtime, credentials):
        return
    if credentials.key is None or await sessions.find_by_key(runtime.db, credentials.hash) is None:
        raise errors.Unauthorized("this needs a session's key or the admin token")


async def _open_by_key(
    runtime: Runtime, credentials: Credentials, name_in_body: Callable[[], str]
) -> SessionSettings:
    """Without authentication a key may be a session's id, and may be the name of one to be created."""
    if credentials.key is not None:
        found = await sessions.find_by_key(runtime.db, credentials.hash)
        if found is not None:
            return found
    for name in (credentials.key, credentials.session_id):
        if name is not None and SESSION_ID.match(name) and (known := await _by_id(runtime, name)):
            return known
    named = credentials.key or credentials.session_id
    if not runtime.configuration.auto_sessions:
        if named is not None and SESSION_ID.match(named):
            raise errors.SessionNotFound(named)
        raise errors.Unauthorized("no session has this key, and TITO_AUTO_SESSIONS is off")
    new = read_options({}, runtime.configuration, uuid4(), key_hash(named or name_in_body()))
    return await sessions.find_or_create_by_key(runtime.db, new)


async def _by_id(runtime: Runtime, session_id: str) -> SessionSettings | None:
    try:
        return await runtime.turns.settings_of(UUID(session_id))
    except errors.SessionNotFound:
        return None


async def session_of_attempt(
    runtime: Runtime, request: Request, rollout_id: str, attempt_id: str
) -> SessionSettings:
    """The session of an attempt, created on first use. The admin token opens it, and so does the key of any
    session of the rollout, which then is the new session's key. One created otherwise has its key told in
    the answer to the request that created it."""
    credentials = credentials_of(request)
    admin = is_admin(runtime, credentials)
    named = {"rollout_id": rollout_id, "attempt_id": attempt_id}
    key = new_session_key()
    hashed = key_hash(key) if admin else credentials.hash
    new = read_options(named, runtime.configuration, uuid4(), hashed)
    if not admin and credentials.key is None:
        raise errors.Unauthorized("this needs a key of the rollout or the admin token")
    if not admin and not await sessions.key_opens_rollout(runtime.db, rollout_id, credentials.hash):
        raise errors.Unauthorized("no session of this rollout has this key")
    found = await sessions.find_attempt(runtime.db, rollout_id, attempt_id)
    if found is None and await sessions.create(runtime.db, new):
        if admin:
            tell(request, SESSION_KEY, key)
        return new.settings
    # Created by somebody else in the meantime, or the profile is gone.
    found = found or await sessions.find_attempt(runtime.db, rollout_id, attempt_id)
    if found is None:
        raise errors.InvalidArgument("profile does not exist")
    return found


def is_credential(header: str) -> bool:
    """Whether a header (lower case) holds a credential of this server."""
    return header in _CREDENTIAL_HEADERS
