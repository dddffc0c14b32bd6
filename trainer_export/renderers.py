"""Renderers of profiles for processes that serve no turns: workers and commands. No engine is started."""

from functools import lru_cache

from django.conf import settings
from django.db import connection

from sessions_app.api.wiring import configured, mirrored_default, renderer_of
from sessions_app.errors import InvalidArgument
from sessions_app.models import ModelProfile
from sessions_app.rendering.protocol import Renderer
from sessions_app.turns.profiles import DEFAULT_PROFILE


@lru_cache(maxsize=16)
def profile_renderer(name: str) -> Renderer:
    """The renderer of a profile. Raises InvalidArgument where it cannot be built. Slow at first."""
    try:
        row = ModelProfile.objects.filter(name=name).first()
        if row is None and name == DEFAULT_PROFILE:
            row = mirrored_default()  # no server has started here yet
    finally:
        connection.close()
    if row is None:
        raise InvalidArgument(f"profile {name!r} does not exist")
    try:
        return renderer_of(configured(settings.TITO, row))
    except ValueError as error:
        raise InvalidArgument(f"profile {name!r}: {error}") from error
