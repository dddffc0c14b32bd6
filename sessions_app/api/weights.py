"""POST /admin-api/pause, /resume, /weights: weight updates, told by the trainer.

The body names a profile (default: `default`) and, for /weights, the version that is in place. `/weights`
does not resume: a trainer pauses, updates, tells the version, resumes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app import errors
from sessions_app.api import access, runtime
from sessions_app.api.direct import DirectView, body_of, json_response
from sessions_app.api.runtime import Runtime
from sessions_app.json_text import loads
from sessions_app.store import profiles
from sessions_app.turns.profiles import DEFAULT_PROFILE

_MOST_TEXT = 200


class WeightsView(DirectView, ABC):
    """Common to the three."""

    http_method_names = ["post"]

    async def post(self, request: Request) -> HttpResponseBase:
        """Change the profile and say what it is now."""
        state = runtime.current()
        access.require_admin(state, request)
        body = _object(body_of(request))
        name = _text(body, "profile", DEFAULT_PROFILE)
        if not await self.change(state, name, body):
            raise errors.NotFound(f"profile not found: {name}")
        return json_response({"profile": name, "in_flight": state.turns.in_flight})

    @abstractmethod
    async def change(self, state: Runtime, name: str, body: Mapping[str, Any]) -> bool:
        """False when there is no such profile."""


class PauseView(WeightsView):
    """Hold new generations; those in flight go on."""

    async def change(self, state: Runtime, name: str, body: Mapping[str, Any]) -> bool:
        """Pause."""
        return await profiles.set_paused(state.db, name, True)


class ResumeView(WeightsView):
    """Answer what was held."""

    async def change(self, state: Runtime, name: str, body: Mapping[str, Any]) -> bool:
        """Resume."""
        return await profiles.set_paused(state.db, name, False)


class VersionView(WeightsView):
    """Name the weights in place."""

    async def change(self, state: Runtime, name: str, body: Mapping[str, Any]) -> bool:
        """Store the version."""
        version = _text(body, "weight_version", None)
        return await profiles.set_weight_version(state.db, name, version)


def _object(body: bytes) -> dict[str, Any]:
    value = loads(body) if body else {}
    if not isinstance(value, dict):
        raise errors.InvalidArgument("the body must be a JSON object")
    return value


def _text(body: Mapping[str, Any], name: str, default: str | None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_TEXT or "\x00" in value:
        raise errors.InvalidArgument(f"{name} must be a text of 1 to {_MOST_TEXT} characters")
    return value
