"""The renderer of a profile for reading stored ids, loaded once per process; or the reason why there is none.

Invariant: ids are never decoded by another tokenizer than the one they are of.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from django.conf import settings

from sessions_app.api.wiring import configured, renderer_of
from sessions_app.history.harness.profiles import BUILT_IN_PROFILES, define_profile
from sessions_app.insight.tokens import Reader
from sessions_app.insight.what_if.running import World
from sessions_app.insight.what_if.wanted import Wanted
from sessions_app.models import ModelProfile, Session
from sessions_app.rendering.protocol import Renderer
from tito_project.configuration import Configuration

_RETRY_S = 30.0
"""A profile that could not be loaded is not tried again for so long: it may take minutes to fail."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What there is to read ids with."""

    renderer: Renderer | None
    unavailable: str | None
    """Why there is no renderer."""

    @property
    def reader(self) -> Reader | None:
        """How ids become text."""
        renderer = self.renderer
        if renderer is None:
            return None
        return Reader(
            lambda ids: renderer.decode(np.asarray(ids, dtype=np.int32)), renderer.comparison.special_ids
        )


class Readers:
    """Renderers by what a profile says."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: dict[tuple[str, ...], Renderer] = {}
        self._failed: dict[tuple[str, ...], tuple[float, str]] = {}

    def reading(self, profile: ModelProfile, tokenizers: Iterable[str]) -> Reading:
        """`tokenizers`: fingerprints of what the ids are of."""
        found = self._renderer(profile)
        if isinstance(found, str):
            return Reading(None, found)
        if strange := sorted(set(tokenizers) - {found.tokenizer_fingerprint}):
            return Reading(None, _other_tokenizer(profile, found, strange[0]))
        return Reading(found, None)

    def _renderer(self, profile: ModelProfile) -> Renderer | str:
        key = _key(profile)
        with self._lock:
            if (loaded := self._loaded.get(key)) is not None:
                return loaded
            until, reason = self._failed.get(key, (0.0, ""))
            if time.monotonic() < until:
                return reason
            return self._load(profile, key)

    def _load(self, profile: ModelProfile, key: tuple[str, ...]) -> Renderer | str:
        try:
            renderer = renderer_of(configured(settings.TITO, profile))
        except Exception as error:
            reason = f"profile {profile.name!r} cannot be loaded: {error}"
            self._failed[key] = (time.monotonic() + _RETRY_S, reason)
            return reason
        self._loaded[key] = renderer
        return renderer


def _key(profile: ModelProfile) -> tuple[str, ...]:
    return (
        profile.model,
        profile.chat_template,
        profile.chat_template_kwargs,
        profile.renderer,
        profile.tool_parser,
        profile.reasoning_parser,
    )


def _other_tokenizer(profile: ModelProfile, renderer: Renderer, strange: str) -> str:
    return (
        f"these ids are of tokenizer {strange[:12]}, profile {profile.name!r} now names "
        f"{renderer.tokenizer_fingerprint[:12]}"
    )


READERS = Readers()
"""Those of this process."""


def counting_renderer(wanted: Wanted) -> Callable[[Session], Renderer | str | None]:
    """What a replay counts ids with: nothing, the profile that it names, or each session's own."""

    def renderer_of(session: Session) -> Renderer | str | None:
        if not wanted.renders:
            return None
        name = wanted.changes.profile
        profile = session.profile if name is None else ModelProfile.objects.get(name=name)
        reading = READERS.reading(profile, ())
        return reading.renderer or reading.unavailable

    return renderer_of


def world() -> World:
    """What replays take from the settings. Raises ValueError for a harness profile that is no good."""
    configuration: Configuration = settings.TITO
    defined = {name: define_profile(name, rules) for name, rules in configuration.harness_profiles.items()}
    return World({**BUILT_IN_PROFILES, **defined}, configuration.max_rollback)
