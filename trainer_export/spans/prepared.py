"""A decoded span as it is stored: texts that Postgres holds, and the facts it is looked up by. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from trainer_export.traces.better.reward_facts import is_reward_operation, rewards_of
from trainer_export.traces.dialects.agents import agent_name
from trainer_export.traces.dialects.conversation import conversation_id
from trainer_export.traces.dialects.recognition import is_call
from trainer_export.traces.dialects.response_ids import response_id
from trainer_export.traces.otlp.received import ReceivedSpan, Resource, Scope
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.selection import DEFAULT_CALL_PATTERN
from trainer_export.traces.span import Span

MOST_INDEXED = 500
"""Longer texts are no ids; an index would refuse them."""
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Origin:
    """Resource and scope of a span."""

    digest: bytes
    body: str
    """JSON text."""


@dataclass(frozen=True, slots=True)
class PreparedSpan:
    """The columns of a span, but those that its session gives it."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: int
    status_code: str
    status_description: str
    start_ns: int | None
    end_ns: int | None
    given_sequence: int | None
    """None: the sender gave none."""
    attributes: str
    events: str
    links: str
    origin: Origin
    trace_state: str
    flags: int
    dropped_attributes: int
    dropped_events: int
    dropped_links: int
    is_call: bool
    is_reward: bool
    response_id: str | None
    conversation_id: str | None
    agent_name: str | None
    received_at: datetime

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same span when it comes again."""
        return (self.trace_id, self.span_id)


def prepare(received: ReceivedSpan, given_sequence: int | None, origin: Origin, at: datetime) -> PreparedSpan:
    """Never raises for a span that was decoded."""
    read = received.to_span("", "", 0)
    events = [{"name": e.name, "time_ns": e.time_ns, "attributes": e.attributes} for e in received.events]
    links = [
        {"trace_id": link.trace_id, "span_id": link.span_id, "attributes": link.attributes}
        for link in received.links
    ]
    return PreparedSpan(
        trace_id=received.trace_id,
        span_id=received.span_id,
        parent_id=received.parent_id,
        name=received.name,
        kind=received.kind if 0 <= received.kind < 2**31 else 0,
        status_code=received.status_code,
        status_description=received.status_description,
        start_ns=_storable(received.start_ns),
        end_ns=_storable(received.end_ns),
        given_sequence=_storable(given_sequence),
        attributes=_json(received.attributes),
        events=_json(events) if events else "",
        links=_json(links) if links else "",
        origin=origin,
        trace_state=received.trace_state,
        flags=_storable(received.flags) or 0,
        dropped_attributes=_storable(received.dropped_attributes) or 0,
        dropped_events=_storable(received.dropped_events) or 0,
        dropped_links=_storable(received.dropped_links) or 0,
        is_call=is_call(read, DEFAULT_CALL_PATTERN),
        is_reward=_is_reward(read),
        response_id=_indexed(response_id(read.attributes)),
        conversation_id=_indexed(conversation_id(read.attributes)),
        agent_name=agent_name(read),
        received_at=at,
    )


def origin_of(resource: Resource, scope: Scope) -> Origin:
    """Equal for equal contents."""
    body = _json(
        {
            "resource": resource.attributes,
            "resource_schema_url": resource.schema_url,
            "scope": scope.name,
            "scope_version": scope.version,
            "scope_attributes": scope.attributes,
            "scope_schema_url": scope.schema_url,
        }
    )
    return Origin(blake2b(body.encode(), digest_size=16).digest(), body)


def linked_response(received: ReceivedSpan) -> str | None:
    """The response that a span names: as the call's record, or as a reward for it."""
    read = received.to_span("", "", 0)
    own = response_id(read.attributes)
    if own is not None:
        return _indexed(own)
    try:
        named = [reward.links.get("gen_ai.response.id") for reward in rewards_of(read)]
    except ValidationError:
        return None
    return _indexed(next((name for name in named if name), None))


def _is_reward(span: Span) -> bool:
    """Malformed ones too: the report says what is wrong with them."""
    try:
        return is_reward_operation(span) or bool(rewards_of(span))
    except ValidationError:
        return True


def _storable(number: int | None) -> int | None:
    """Beyond 64 bits with a sign is as good as unknown."""
    return number if number is not None and number < _INT64 else None


def _indexed(text: str | None) -> str | None:
    return text if text and len(text) <= MOST_INDEXED else None


def _json(value: Mapping[str, Any] | list[Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
