"""GET …/v1/models: the profiles of this server, in the shape of the client that asks."""

from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.addressing import BY_ATTEMPT, BY_URL, Addressing
from sessions_app.api.direct import DirectView, json_response
from sessions_app.protocols.errors import anthropic_error, openai_error
from sessions_app.protocols.model_list import anthropic_list, one_of_list, openai_list
from sessions_app.protocols.openai_chat import CHAT
from sessions_app.store.profiles import load_listed


class ModelsView(DirectView):
    """GET /sessions/{id}/v1/models."""

    http_method_names = ["get"]
    addressing: ClassVar[Addressing] = BY_URL

    async def get(self, request: Request, **named: str) -> HttpResponseBase:
        """The list; the same for all sessions."""
        await self.admit(request, **named)
        return json_response(await self.listed())

    async def admit(self, request: Request, **named: str) -> None:
        """Raises what refuses a caller without a key."""
        await self.addressing.session_of(runtime.current(), request, CHAT, **named)

    async def listed(self) -> dict[str, Any]:
        """The list in the caller's shape."""
        profiles = await load_listed(runtime.current().db)
        shape = anthropic_list if self._asked_by_anthropic() else openai_list
        return shape(profiles)

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

    async def admit(self, request: Request, **named: str) -> None:
        """Raises Unauthorized."""
        await access.require_any_key(runtime.current(), request)


class ModelView(ModelsView):
    """GET /sessions/{id}/v1/models/{model}."""

    async def get(self, request: Request, **named: str) -> HttpResponseBase:
        """One model of the list."""
        name = named.pop("model")
        await self.admit(request, **named)
        found = one_of_list(await self.listed(), name)
        if found is None:
            raise errors.NotFound(f"The model {name[:80]!r} does not exist.")
        return json_response(found)


class AttemptModelView(ModelView):
    """GET /rollout/{rollout_id}/attempt/{attempt_id}/v1/models/{model}."""

    addressing = BY_ATTEMPT


class KeyModelView(ModelView, KeyModelsView):
    """GET /v1/models/{model}."""
