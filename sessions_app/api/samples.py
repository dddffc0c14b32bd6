"""POST /sessions/{id}/samples: the training samples of a session, as safetensors or as JSON."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.direct import body_of, bytes_response, with_error_headers
from sessions_app.api.proxy import ProxyView
from trainer_export.samples.arguments import parse_arguments

_TEXT = "text/plain; charset=utf-8"


class SamplesView(ProxyView):
    """Methods other than POST are the raw proxy's, as in the reference."""

    path = "samples"

    async def post(  # type: ignore[override]
        self, request: Request, session_id: str
    ) -> HttpResponseBase:
        """Assemble, pick, post-process, encode."""
        state = runtime.current()
        settings = await access.open_session(state, request, session_id)
        arguments = parse_arguments(body_of(request))
        profile = await state.profiles.get(settings.profile)
        answer = await state.samples.answer(
            settings, profile.renderer, arguments, as_json=_wants_json(request)
        )
        return bytes_response(answer.body, content_type=answer.content_type)

    def error_response(self, error: errors.TitoError) -> HttpResponseBase:
        """What assembly or a hook refuses is plain text."""
        if isinstance(error, errors.SamplesFailed):
            response = bytes_response(str(error).encode("utf-8", "replace"), error.status, _TEXT)
            return with_error_headers(response, error)
        return super().error_response(error)


def _wants_json(request: Request) -> bool:
    kinds: list[Any] = [
        part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")
    ]
    return "application/json" in kinds and "application/octet-stream" not in kinds
