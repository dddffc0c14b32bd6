"""POST /sessions/{id}/finish: the driver says that the rollout has ended."""

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app.api import access, runtime
from sessions_app.api.direct import DirectView, body_of, json_response
from trainer_export.arguments import Arguments
from trainer_export.lifecycle.finishing import Finish, finish
from trainer_export.lifecycle.groups import rollout_state


class FinishView(DirectView):
    """Closes a session for serving; `{status, reward?, metadata?}`, all optional."""

    http_method_names = ["post"]

    async def post(self, request: Request, session_id: str) -> HttpResponseBase:
        """Finish, and say how far its rollout and its group are."""
        state = runtime.current()
        settings = await access.open_session(state, request, session_id)
        said = Finish.of(Arguments.of_body(body_of(request)))
        changed = await finish(state.db, settings.id, said)
        rollout = await rollout_state(state.db, settings.id)
        return json_response(
            {
                "session_id": settings.id.hex,
                "status": said.status,
                "changed": changed,
                "rollout": rollout.as_json(),
            }
        )
