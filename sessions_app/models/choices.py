"""The closed lists as database choices; their one source is `sessions_app.history` and the configuration."""

from collections.abc import Iterable, Mapping

from django.db import models
from django.db.models import F, Func

from sessions_app.history.causes import AttachKind, Cause
from tito_project import configuration

Choices = list[tuple[str, str]]


def _choices(values: Iterable[str]) -> Choices:
    return [(str(value), str(value)) for value in values]


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

CLOSED_LISTS: Mapping[str, Choices] = {
    "history_policy": HISTORY_POLICIES,
    "on_nonlinear": ON_NONLINEAR,
    "on_truncated": ON_TRUNCATED,
    "retry_policy": RETRY_POLICIES,
    "session_status": SESSION_STATUSES,
    "attach_kind": ATTACH_KINDS,
    "cause": CAUSES,
    "event_kind": EVENT_KINDS,
    "record_state": RECORD_STATES,
    "drift_outcome": DRIFT_OUTCOMES,
    "what_if_state": WHAT_IF_STATES,
}
"""The lists that the database knows as functions `tito_known_NAME`."""


def known(name: str, field: str, closed_list: str) -> models.CheckConstraint:
    """The constraint that keeps a column to one of CLOSED_LISTS (null passes where the column allows it).

    It calls a function of the database: a list inside the constraint would be read anew by every statement
    that writes such a row. A list that grows needs a migration that replaces its function.
    """
    assert closed_list in CLOSED_LISTS
    holds = Func(F(field), function=f"tito_known_{closed_list}", output_field=models.BooleanField())
    return models.CheckConstraint(condition=holds, name=name)
