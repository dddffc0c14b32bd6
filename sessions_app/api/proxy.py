"""The raw proxy below a session: a few declared engine paths, nothing recorded."""

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.direct import DirectView, body_of, bytes_response, copy_headers, received_headers
from sessions_app.protocols.errors import reference_error
from sessions_app.store import sessions


class ProxyView(DirectView):
    """Any other path below a session."""

    http_method_names = ["get", "post", "put", "delete", "patch"]
    path = ""
    """The path below the session, where the URL pattern does not give it."""

    async def get(self, request: Request, **named: str) -> HttpResponseBase:
        """Forward the request to the engine as it is."""
        session_id, path = named["session_id"], named.get("path") or self.path
        state = runtime.current()
        settings = await access.open_session(state, request, session_id)
        if not await sessions.exists(state.db, settings.id):
            raise errors.SessionNotFound(session_id)
        if path not in state.configuration.proxy_paths:
            raise errors.NotFound(f"path not proxied: {path}")
        profile = await state.profiles.get(settings.profile)
        answer = await profile.backend.forward(
            session_id=settings.id.hex,
            method=request.method or "GET",
            path=path,
            query=request.META.get("QUERY_STRING", ""),
            body=body_of(request) if request.method != "GET" else b"",
            headers=self._headers(request, state.configuration.proxy_credentials),
        )
        response = bytes_response(answer.body, answer.status)
        copy_headers(response, answer.headers)
        return response

    post = put = delete = patch = get

    @staticmethod
    def _headers(request: Request, with_credentials: bool) -> dict[str, str]:
        headers = received_headers(request)
        return (
            headers if with_credentials else {n: v for n, v in headers.items() if not access.is_credential(n)}
        )

    def error_body(self, error: errors.TitoError) -> object:
        """The reference's body."""
        return reference_error(error)
