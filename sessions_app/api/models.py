"""GET …/v1/models: the profiles of this server, in the shape of the client that asks."""

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.addressing import BY_ATTEMPT, BY_URL, Addressing
from sessions_app.api.direct import DirectView, json_response
from sessions_app.protocols.errors import anthropic_error, openai_error
from sessions_app.protocols.model_list import anthropic_list, openai_list
from sessions_app.protocols.openai_chat import CHAT
from sessions_app.store.profiles import load_listed


class ModelsView(DirectView):
    """GET /sessions/{id}/v1/models."""

    http_method_names = ["get"]
    addressing: ClassVar[Addressing] = BY_URL

    async def get(self, request: Request, **named: str) -> HttpResponseBase:
        """The list; the same for all sessions."""
        state = runtime.current()
        await self.addressing.session_of(state, request, CHAT, **named)
        return await self.listed(request)

    async def listed(self, request: Request) -> HttpResponseBase:
        """The list as a response."""
        profiles = await load_listed(runtime.current().db)
        shape = anthropic_list if self._asked_by_anthropic() else openai_list
        return json_response(shape(profiles))

    def _asked_by_anthropic(self) -> bool:
        request = getattr(self, "request", None)
        return request is not None and "anthropic-version" in request.headers

    def error_body(self, error: errors.TitoError) -> Any:
        """In the shape of the list."""
        return anthropic_error(error) if self._asked_by_anthropic() else openai_error(error)


class AttemptModelsView(ModelsView):
    """GET /rollout/{rollout_id}/attempt/{attempt_id}/v1/models."""

    addressing = BY_ATTEMPT


class KeyModelsView(ModelsView):
    """GET /v1/models. Creates no session: any key of this server will do."""

    async def get(self, request: Request, **named: str) -> HttpResponseBase:
        """The list."""
        await access.require_any_key(runtime.current(), request)
        return await self.listed(request)
