"""What the drift audit found, counted and one by one. Reads only.

A path counts once, under the leaf it ended at when it was audited. "Unknown" is a count of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q

from sessions_app.models import DriftFinding

OUTCOMES = ("same", "expected", "defect", "unknown")
TYPES = ("special_token_count", "special_token_type", "assistant_text", "non_assistant_text")
"""Columns with the comparator's counts."""
BREAKS = ("template_mismatch", "retoken_mismatch", "others_mismatch")
"""Columns that are true or false."""


@dataclass(frozen=True, slots=True)
class DriftCounts:
    """Audited paths of one group."""

    outcomes: Mapping[str, int]
    """Paths by outcome."""
    types: Mapping[str, int]
    """Paths with at least one difference of the comparator's type; a path may count under several."""
    breaks: Mapping[str, int]
    """Paths by the class of their first difference; a path may count under several."""

    @property
    def audited(self) -> int:
        """All of them."""
        return sum(self.outcomes.values())


@dataclass(frozen=True, slots=True)
class DriftGroup:
    """What is counted together."""

    profile: str
    harness: str | None
    model: str | None
    """As the requests named it."""
    template: str
    """Fingerprint of the template that served it."""
    renderer: str
    """Name of the renderer it was compared with."""


def load_counts(session_id: UUID | None = None) -> DriftCounts:
    """Over everything, or over one session. One statement."""
    rows = DriftFinding.objects.order_by()
    if session_id is not None:
        rows = rows.filter(session=session_id)
    return _counts(rows.aggregate(**_SUMS))


def load_groups() -> list[tuple[DriftGroup, DriftCounts]]:
    """By profile, harness, model, template and renderer, the most audited first. One statement."""
    columns = {
        "profile": "session__profile__name",
        "harness": "session__harness",
        "model": "node__model_name",
        "template": "template_fingerprint",
        "renderer": "renderer",
    }
    rows = DriftFinding.objects.order_by().values(*columns.values()).annotate(n=Count("*"), **_SUMS)
    return [
        (DriftGroup(**{name: row[column] for name, column in columns.items()}), _counts(row))
        for row in rows.order_by("-n", *columns.values())
    ]


_SUMS = {
    **{name: Count("node_seq", filter=Q(outcome=name)) for name in OUTCOMES},
    **{f"with_{name}": Count("node_seq", filter=Q(**{f"{name}__gt": 0})) for name in TYPES},
    **{f"with_{name}": Count("node_seq", filter=Q(**{name: True})) for name in BREAKS},
}


def _counts(row: Mapping[str, int]) -> DriftCounts:
    return DriftCounts(
        {name: row[name] for name in OUTCOMES},
        {name: row[f"with_{name}"] for name in TYPES},
        {name: row[f"with_{name}"] for name in BREAKS},
    )
