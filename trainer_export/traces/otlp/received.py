"""A span as it came over the wire, complete and cleaned for storage; times stay whole nanoseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer_export.traces.span import Span

STATUS_CODES = ("UNSET", "OK", "ERROR")
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Scope:
    """The instrumentation that made a span."""

    name: str = ""
    version: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    schema_url: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """The process a span comes from."""

    attributes: Mapping[str, Any] = field(default_factory=dict)
    schema_url: str = ""


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened during a span."""

    name: str
    time_ns: int | None
    attributes: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As adapters read it."""
        return {"name": self.name, "timestamp": _seconds(self.time_ns), "attributes": dict(self.attributes)}


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A span that this one is tied to without being its child."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As adapters read it."""
        context = {"trace_id": self.trace_id, "span_id": self.span_id}
        return {"context": context, "attributes": dict(self.attributes)}


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """Identified by (trace_id, span_id); the same span may come again."""

    trace_id: str
    """32 lower-case hex digits."""
    span_id: str
    """16 lower-case hex digits."""
    parent_id: str | None
    """None for a root, however the sender wrote that."""
    name: str
    start_ns: int | None
    """None when unknown (0 on the wire)."""
    end_ns: int | None
    """None when unknown. May lie before the start."""
    attributes: Mapping[str, Any]
    kind: int = 0
    status_code: str = "UNSET"
    status_description: str = ""
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    trace_state: str = ""
    flags: int = 0
    dropped_attributes: int = 0
    """Above 0: do not trust recorded messages, the SDK cut attributes off."""
    dropped_events: int = 0
    dropped_links: int = 0

    @property
    def ends_before_start(self) -> bool:
        """Clocks were skewed."""
        return self.start_ns is not None and self.end_ns is not None and self.end_ns < self.start_ns

    def to_span(self, rollout_id: str, attempt_id: str, sequence_id: int) -> Span:
        """The value that adapters work on."""
        return Span(
            span_id=self.span_id,
            parent_id=self.parent_id,
            name=self.name,
            attributes=self.attributes,
            start_time=_seconds(self.start_ns),
            end_time=_seconds(self.end_ns),
            sequence_id=sequence_id,
            trace_id=self.trace_id,
            rollout_id=rollout_id,
            attempt_id=attempt_id,
            status_code=self.status_code,
            status_description=self.status_description or None,
            events=tuple(event.to_json() for event in self.events),
            links=tuple(link.to_json() for link in self.links),
            resource=self.resource.attributes,
        )


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _NANOSECONDS
