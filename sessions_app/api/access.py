"""Who may do what: the admin token, session keys, and which session a key means.

Keys are compared in constant time and stored as SHA-256. With TITO_AUTH=off every caller may do
everything; the server then refuses to listen beyond loopback.
"""

import hmac
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api.runtime import Runtime
from sessions_app.store import sessions
from sessions_app.store.values import SessionSettings

SESSION_ID = re.compile(r"[0-9a-f]{32}\Z")
_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-session-id", "x-tito-session-key")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request carries."""

    key: str | None
    """Bearer token or X-Api-Key."""
    session_id: str | None
    """X-Session-Id."""


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
    return hmac.compare_digest(credentials.key.encode(), token.encode())


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
    if not admin and not await sessions.key_opens(runtime.db, settings.id, key_hash(credentials.key or "")):
        raise errors.SessionNotFound(session_id)
    return settings


def is_credential(header: str) -> bool:
    """Whether a header (lower case) holds a credential of this server."""
    return header in _CREDENTIAL_HEADERS
