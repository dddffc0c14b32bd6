"""The closed lists as database choices; their one source is `sessions_app.history` and the configuration."""

from collections.abc import Iterable

from django.db import models
from django.db.models import Q

from sessions_app.history.causes import AttachKind, Cause
from tito_project import configuration

Choices = list[tuple[str, str]]


def _choices(values: Iterable[str]) -> Choices:
    return [(str(value), str(value)) for value in values]


def known(name: str, field: str, choices: Choices) -> models.CheckConstraint:
    """The constraint that keeps a column to its closed list (null passes where the column allows it)."""
    return models.CheckConstraint(condition=Q(**{f"{field}__in": [value for value, _ in choices]}), name=name)


HISTORY_POLICIES = _choices(configuration.HISTORY_POLICIES)
ON_NONLINEAR = _choices(configuration.ON_NONLINEAR)
ON_TRUNCATED = _choices(configuration.ON_TRUNCATED)
RETRY_POLICIES = _choices(configuration.RETRY_POLICIES)
SESSION_STATUSES = _choices(["open", "finished", "closed", "idle"])
FINISH_REASONS = _choices(["stop", "tool_calls", "length", "abort", "content_filter", "error"])
ATTACH_KINDS = _choices(AttachKind)
CAUSES = _choices(Cause)
EVENT_KINDS = _choices(
    ["fork", "retry", "rollback", "reset", "passthrough", "refused", "late", "trim", "rewrite", "notice"]
)
RECORD_STATES = _choices(
    [
        "intent",
        "answered",
        "committed",
        "confirmed",
        "refused",
        "upstream_error",
        "cancelled",
        "late",
        "replayed",
        "lost",
    ]
)
DRIFT_OUTCOMES = _choices(["same", "expected", "defect", "unknown"])
"""same: id by id; expected: the same text in other ids, or the assistant's as sampled; defect: anybody else's
text or other special tokens; unknown: not comparable."""
WHAT_IF_STATES = _choices(["pending", "running", "done", "failed", "cancelled"])
