"""POST and DELETE /api/sessions/{id}/keys: another key for a session, or none. Admin only."""

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.direct import SESSION_KEY, DirectView, json_response
from sessions_app.store import sessions


class KeysView(DirectView):
    """The key of a session. What it opened before, it opens no longer."""

    http_method_names = ["post", "delete"]

    async def post(self, request: Request, session_id: str) -> HttpResponseBase:
        """Rotate: the new key is told once."""
        key = access.new_session_key()
        await self._replace(request, session_id, access.key_hash(key))
        response = json_response({"session_id": session_id, "key": key})
        response[SESSION_KEY] = key
        response["Cache-Control"] = "no-store"
        return response

    async def delete(self, request: Request, session_id: str) -> HttpResponseBase:
        """Revoke: only the admin token opens the session from now on."""
        await self._replace(request, session_id, None)
        response = HttpResponse(status=204)
        del response["Content-Type"]
        return response

    @staticmethod
    async def _replace(request: Request, session_id: str, key_hash: bytes | None) -> None:
        state = runtime.current()
        access.require_admin(state, request)
        if not await sessions.replace_key(state.db, access.parse_session_id(session_id), key_hash):
            raise errors.SessionNotFound(session_id)
