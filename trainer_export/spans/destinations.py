"""Which session each span of a batch goes to: what it names, else the response it is about, else its trace.

Each distinct destination is looked up once. A span that names what its sender may not use, or what does not
exist, is refused with the same words.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from sessions_app.store.pool import Executor
from trainer_export.spans.prepared import Origin, PreparedSpan, linked_response, origin_of, prepare
from trainer_export.spans.responses import sessions_of_responses
from trainer_export.traces.otlp import ReceivedSpan, Rejection, Route, route_of

FindSession = Callable[[Route], Awaitable[UUID]]
"""The session of a route that names one. Raises Refused."""


class Refused(Exception):
    """A span cannot go where it wants; the text is told to the sender."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is known of a whole request."""

    at: datetime
    """When it arrived."""
    named: Route
    """By URL or headers."""
    default: Route
    """Where spans go that name nothing: the session of the sender's key."""


@dataclass(slots=True)
class Sorted:
    """A batch by destination."""

    by_session: dict[UUID, list[PreparedSpan]] = field(default_factory=dict)
    unrouted: list[PreparedSpan] = field(default_factory=list)
    """Name nothing and are about no response of ours."""
    rejected: list[Rejection] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Addressed:
    """A span with where it says it belongs."""

    span: PreparedSpan
    route: Route
    response: str | None
    """The response it is about; looked for only where it names no rollout."""


def addressed(spans: Iterable[ReceivedSpan], envelope: Envelope) -> list[Addressed]:
    """Everything about spans that takes no database. Slow: reads every attribute."""
    origins: dict[tuple[int, int], Origin] = {}
    found = []
    for received in spans:
        route = _route(received, envelope)
        shared = (id(received.resource), id(received.scope))
        if shared not in origins:
            origins[shared] = origin_of(received.resource, received.scope)
        response = None if route.is_known else linked_response(received)
        found.append(
            Addressed(prepare(received, route.sequence_id, origins[shared], envelope.at), route, response)
        )
    return found


def _route(received: ReceivedSpan, envelope: Envelope) -> Route:
    """What a span names itself comes first, as a whole."""
    own, named = route_of(received, Route()), envelope.named
    if own.is_known:
        same = own.rollout_id is not None and named.rollout_id in (None, own.rollout_id)
        return replace(own, attempt_id=own.attempt_id or (named.attempt_id if same else None))
    if not named.is_known:
        named = envelope.default
    return replace(named, attempt_id=own.attempt_id or named.attempt_id, sequence_id=own.sequence_id)


async def sort_out(db: Executor, spans: Sequence[Addressed], find: FindSession) -> Sorted:
    """Every span has one outcome; order is kept within each."""
    answers = await _answers(spans, find)
    responses = [item.response for item in spans if item.response is not None]
    about = await sessions_of_responses(db, responses)
    outcome = Sorted()
    for item in spans:
        answer = answers[_key(item.route)] if item.route.is_known else about.get(item.response or "")
        if answer is None:
            outcome.unrouted.append(item.span)
        elif isinstance(answer, Refused):
            outcome.rejected.append(Rejection(str(answer), item.span.span_id))
        else:
            outcome.by_session.setdefault(answer, []).append(item.span)
    return outcome


async def _answers(spans: Iterable[Addressed], find: FindSession) -> dict[Route, UUID | Refused]:
    answers: dict[Route, UUID | Refused] = {}
    for item in spans:
        key = _key(item.route)
        if item.route.is_known and key not in answers:
            try:
                answers[key] = await find(key)
            except Refused as refusal:
                answers[key] = refusal
    return answers


def _key(route: Route) -> Route:
    return replace(route, sequence_id=None)
