"""What verify_renderer finds of a profile's renderer, kept with the profile.

Made when there is none for this renderer and its parsers, else read. Invariant: a stored result is of the
very tokenizer, template, kwargs, parsers and edition of the checks that its key names.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from sessions_app.models import ModelProfile
from sessions_app.rendering.protocol import Renderer
from sessions_app.rendering.verification import FAIL, Check, cannot_render, verification_key, verify

_PARSE_THEMSELVES = frozenset({"sglang", "vllm-chat", "demo"})
"""Backends whose engine reads its replies: our parsers have no say."""
_RENDER_THEMSELVES = frozenset({"vllm-chat"})
"""Backends whose engine makes the prompts: what we would append has no say either."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The rows of verify_renderer's table for one profile."""

    checks: tuple[Check, ...]
    backend: str

    @property
    def failures(self) -> tuple[Check, ...]:
        """What failed and counts for the way the backend is used."""
        return tuple(check for check in self.checks if check.verdict == FAIL and self._counts(check))

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each failure."""
        return tuple(f"{check.area}: {check.name}: {check.detail}" for check in self.failures)

    def _counts(self, check: Check) -> bool:
        backends = _PARSE_THEMSELVES if check.area == "parse" else _RENDER_THEMSELVES
        return self.backend not in backends


def stored(profile: ModelProfile) -> Verification | None:
    """The result as it stands with the profile, whatever renderer it is of; None = never verified."""
    if not profile.verification_key:
        return None
    return Verification(tuple(Check.of(row) for row in json.loads(profile.verification)), profile.backend)


def verified(profile: ModelProfile, renderer: Renderer) -> Verification:
    """The stored result, or a new one, stored. Raises ValueError for a template that renders nothing."""
    key = verification_key(renderer, profile.tool_parser, profile.reasoning_parser)
    known = stored(profile) if profile.verification_key == key else None
    if known is not None:
        return known
    if problem := cannot_render(renderer):
        raise ValueError(f"the chat template renders no conversation: {problem}")
    checks = verify(renderer)
    _store(profile, key, checks)
    return Verification(checks, profile.backend)


def _store(profile: ModelProfile, key: str, checks: Sequence[Check]) -> None:
    """On the object too; `updated_at` stays: nothing was set."""
    profile.verification_key = key
    profile.verification = json.dumps([check.as_json() for check in checks])
    profile.verified_at = timezone.now()
    columns = ("verification_key", "verification", "verified_at")
    ModelProfile.objects.filter(pk=profile.pk).update(**{name: getattr(profile, name) for name in columns})
