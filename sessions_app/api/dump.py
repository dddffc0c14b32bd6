"""GET /api/sessions/{id}/dump: one session as one file that `session_load` reads. Admin only."""

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app.api import access
from sessions_app.api.direct import DirectView, bytes_response
from sessions_app.api.exports import admin_runtime
from trainer_export.dumps.writing import dump


class SessionDumpView(DirectView):
    """The whole session, deleted ones too."""

    http_method_names = ["get"]

    async def get(self, request: Request, session_id: str) -> HttpResponseBase:
        """The file."""
        state = admin_runtime(request)
        session = access.parse_session_id(session_id)
        response = bytes_response(await dump(state.db, session), content_type="application/gzip")
        response["Content-Disposition"] = f'attachment; filename="{session.hex}.tito.gz"'
        return response
