"""Which rollout a span belongs to: its own attributes, then its resource's, then what headers or the URL say.

The reference's names are accepted beside ours. A sequence id that is no whole number or negative counts as
none given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer_export.traces.names import ATTEMPT_ID, ROLLOUT_ID, SPAN_SEQUENCE_ID
from trainer_export.traces.otlp.cleaning import whole_number
from trainer_export.traces.otlp.received import ReceivedSpan

ROLLOUT_NAMES = ("tito.rollout_id", ROLLOUT_ID)
ATTEMPT_NAMES = ("tito.attempt_id", ATTEMPT_ID)
SESSION_NAMES = ("tito.session_id",)
SEQUENCE_NAMES = ("tito.sequence_id", SPAN_SEQUENCE_ID)

_HEADERS = {"rollout_id": "x-rollout-id", "attempt_id": "x-attempt-id", "session_id": "x-session-id"}


@dataclass(frozen=True, slots=True)
class Route:
    """Where a span goes; what is not known is None."""

    rollout_id: str | None = None
    attempt_id: str | None = None
    session_id: str | None = None
    sequence_id: int | None = None
    """Given by the sender."""

    @property
    def is_known(self) -> bool:
        """Enough to store the span under a rollout or a session."""
        return self.rollout_id is not None or self.session_id is not None


def route_of_headers(headers: Mapping[str, str]) -> Route:
    """Header names in lower case."""
    found = {field: headers.get(name, "").strip() or None for field, name in _HEADERS.items()}
    return Route(found["rollout_id"], found["attempt_id"], found["session_id"])


def route_of(span: ReceivedSpan, request: Route) -> Route:
    """`request` holds what headers and URL say; each part is looked up on its own."""
    places = (span.attributes, span.resource.attributes)
    return Route(
        rollout_id=_text(places, ROLLOUT_NAMES) or request.rollout_id,
        attempt_id=_text(places, ATTEMPT_NAMES) or request.attempt_id,
        session_id=_text(places, SESSION_NAMES) or request.session_id,
        sequence_id=_sequence(places),
    )


def _text(places: tuple[Mapping[str, Any], ...], names: tuple[str, ...]) -> str | None:
    for place in places:
        for name in names:
            value = place.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
                return str(value)
    return None


def _sequence(places: tuple[Mapping[str, Any], ...]) -> int | None:
    for place in places:
        for name in SEQUENCE_NAMES:
            number = whole_number(place.get(name))
            if number is not None and number >= 0:
                return number
    return None
