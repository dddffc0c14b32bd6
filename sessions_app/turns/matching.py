"""The matcher in force for a request: the session's own, behind a harness profile where one is named.

A profile loosens matching only if the session (or TITO_HARNESS) names it, or asks for `auto`: then the first
committed turn's headers decide for the whole session, because stored keys belong to one way of comparing.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sessions_app.history.harness.detection import detect_harness
from sessions_app.history.harness.matcher import HarnessMatcher
from sessions_app.history.harness.profiles import BUILT_IN_PROFILES, HarnessProfile, define_profile
from sessions_app.history.matchers.base import MessageMatcher
from sessions_app.history.matchers.linear_form import LINEAR_FORM, uses_linear_form
from sessions_app.history.matchers.registry import resolve_matcher
from sessions_app.store.pool import Database
from sessions_app.store.roots import load_detected_harness
from sessions_app.store.values import SessionSettings
from tito_project.configuration import Configuration

AUTO = "auto"
_KEPT = 20_000


class Matching:
    """Matchers by name and profile; one per process."""

    def __init__(self, db: Database, default: str, defined: Sequence[HarnessProfile]) -> None:
        """`default` is resolved now, so that a wrong one stops the start. Raises ValueError."""
        self._db = db
        self._profiles = {**BUILT_IN_PROFILES, **{profile.name: profile for profile in defined}}
        self._plain: dict[str, MessageMatcher] = {default: resolve_matcher(default)}
        self._behind: dict[tuple[str, str], MessageMatcher] = {}
        self._detected: dict[UUID, str] = {}

    async def matcher_of(self, settings: SessionSettings, headers: Mapping[str, str]) -> MessageMatcher:
        """The matcher of a session's request."""
        plain = self._plain_matcher(settings)
        harness = settings.harness
        if harness == AUTO:
            harness = await self._detected_harness(settings.id) or detect_harness(headers)
        profile = self._profiles.get(harness) if harness is not None else None
        if profile is None:
            return plain
        key = (plain.name, profile.name)
        if key not in self._behind:
            self._behind[key] = HarnessMatcher(plain, profile)
        return self._behind[key]

    def _plain_matcher(self, settings: SessionSettings) -> MessageMatcher:
        if uses_linear_form(settings.history_policy, healing=settings.healing):
            return LINEAR_FORM
        name = settings.message_matcher
        if name not in self._plain:
            self._plain[name] = resolve_matcher(name)
        return self._plain[name]

    async def _detected_harness(self, session_id: UUID) -> str | None:
        """What the session's turns showed; never changes once there is one."""
        if session_id not in self._detected:
            found = await load_detected_harness(self._db, session_id)
            if found is None:
                return None
            if len(self._detected) >= _KEPT:
                self._detected.pop(next(iter(self._detected)))
            self._detected[session_id] = found
        return self._detected[session_id]


def configured_matching(db: Database, configuration: Configuration) -> Matching:
    """What the settings ask for. Raises ValueError with the setting that names what there is not."""
    setting = "TITO_HARNESS_PROFILES"
    try:
        defined = [define_profile(name, rules) for name, rules in configuration.harness_profiles.items()]
        setting = "TITO_MESSAGE_MATCHER"
        return Matching(db, configuration.message_matcher, defined)
    except ValueError as error:
        raise ValueError(f"{setting}: {error}") from error
