"""POST /sessions/{id}/rewards: values for a session or for one of its nodes, also after it was deleted."""

from uuid import UUID

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.direct import DirectView, body_of, json_response
from sessions_app.api.runtime import Runtime
from trainer_export.arguments import Arguments
from trainer_export.lifecycle.rewards import is_kept, read_reports, report


class RewardsView(DirectView):
    """One reward as the body, or a list of them as `rewards`."""

    http_method_names = ["post"]

    async def post(self, request: Request, session_id: str) -> HttpResponseBase:
        """Store rewards, all or none."""
        state = runtime.current()
        session = await _session(state, request, session_id)
        key = request.headers.get("idempotency-key") or None
        reports = read_reports(Arguments.of_body(body_of(request)), key)
        reported = await report(state.db, session, reports)
        return json_response(
            {"rewards": [{"key": one.key, "node": one.node, "created": one.created} for one in reported]}
        )


async def _session(state: Runtime, request: Request, session_id: str) -> UUID:
    """The session of the URL. Admins reach deleted ones as well: drivers delete early, rewards come late."""
    if not access.is_admin(state, access.credentials_of(request)):
        return (await access.open_session(state, request, session_id)).id
    session = access.parse_session_id(session_id)
    if not await is_kept(state.db, session):
        raise errors.SessionNotFound(session_id)
    return session
