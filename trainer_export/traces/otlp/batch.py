"""What a request body held: spans, and the reason for each that was not taken."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from trainer_export.traces.otlp.received import ReceivedSpan

_MAX_REASONS = 8


@dataclass(frozen=True, slots=True)
class Rejection:
    """One span or log record that was not taken."""

    reason: str
    """Without the text of any conversation."""
    span_id: str = ""
    """As sent, when it could be read."""


class RejectedSpan(Exception):
    """Reading one span failed; caught around that span alone."""


@dataclass(slots=True)
class Batch:
    """Outcome of decoding; later steps may reject more."""

    spans: list[ReceivedSpan] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)


def summary(rejected: Iterable[Rejection]) -> str:
    """Reasons with their counts, most frequent first."""
    counts = Counter(rejection.reason for rejection in rejected)
    parts = [f"{count} x {reason}" for reason, count in counts.most_common(_MAX_REASONS)]
    if len(counts) > _MAX_REASONS:
        parts.append(f"and {len(counts) - _MAX_REASONS} more reasons")
    return "; ".join(parts)
