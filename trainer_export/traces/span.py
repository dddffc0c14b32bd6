"""A span as the adapters see it: an immutable value. Invariant: nobody changes its attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AttributeValue = str | bool | int | float | list[str] | list[bool] | list[int] | list[float]
Attributes = Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class Span:
    """One recorded operation of one attempt of one rollout."""

    span_id: str
    parent_id: str | None
    """Only None means root; an empty string is the id of a missing parent."""
    name: str
    attributes: Attributes
    start_time: float | None
    """Seconds; None when not recorded."""
    end_time: float | None
    """Seconds; None when not recorded. May lie before the start (clock skew)."""
    sequence_id: int = 0
    """Order inside the attempt as given by the sender or on arrival; 0 when unknown."""
    trace_id: str = ""
    rollout_id: str = ""
    attempt_id: str = ""
    status_code: str = "OK"
    """UNSET, OK or ERROR."""
    status_description: str | None = None
    events: tuple[Mapping[str, Any], ...] = ()
    links: tuple[Mapping[str, Any], ...] = ()
    resource: Mapping[str, Any] = field(default_factory=dict)
    """Resource attributes."""
