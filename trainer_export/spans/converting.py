"""One session's spans, nodes and rewards -> triplets and an account of every span. Pure.

A call whose response we served gets its ids from our checkpoint, in both modes. A session without spans is
converted from its own calls alone, as the spans of a proxy would be.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainer_export.forests.rows import RewardRow
from trainer_export.samples.rewards import total
from trainer_export.samples.values import Reward
from trainer_export.spans.arranging import Added, arranged
from trainer_export.spans.loading import StoredSpan
from trainer_export.spans.own_calls import OwnCall, span_id_of, span_of
from trainer_export.spans.rules import BETTER, TraceRules
from trainer_export.traces.better.conversion import Outcome, Rules, ServedTokens, convert
from trainer_export.traces.better.distinct import told_apart
from trainer_export.traces.better.report import Entry, Remark, Use
from trainer_export.traces.compat import PROXY, TRACER, convert_compat
from trainer_export.traces.dialects.response_ids import response_id
from trainer_export.traces.dialects.token_ids import are_token_ids, prompt_ids, response_ids
from trainer_export.traces.names import ANNOTATION
from trainer_export.traces.proxy_calls import RAW_REQUEST, proxy_call
from trainer_export.traces.rewards.emission import reward_attributes
from trainer_export.traces.span import Span
from trainer_export.traces.triplet import Triplet

_RAW = "llm.hosted_vllm."


@dataclass(frozen=True, slots=True)
class TracedSession:
    """Everything of one session that its triplets depend on."""

    session_id: str
    """32 hex digits."""
    rollout_id: str
    attempt_id: str
    received: Sequence[StoredSpan]
    own: Sequence[OwnCall]
    served: Mapping[str, OwnCall]
    """Our record of a call by the response id that a span names."""
    rewards: Sequence[RewardRow] = ()
    """Reported over the API."""


@dataclass(slots=True)
class Converted:
    """What came of a session."""

    triplets: list[Triplet] = field(default_factory=list)
    report: list[Entry] = field(default_factory=list)
    traces: Mapping[str, str] = field(default_factory=dict)
    """Trace id by span id."""
    error: str | None = None
    """What the reference would have raised; then there are no triplets."""
    final_reward: float | None = None
    """Reported for the whole session."""
    received: Sequence[Span] = ()
    """The session's spans under the ids that the report names them by."""


def converted(session: TracedSession, rules: TraceRules) -> Converted:
    """Never raises for what spans hold."""
    final = total(
        [Reward(row.name, row.value, row.weight) for row in session.rewards if row.node_seq is None]
    )
    adapter = rules.adapter or (TRACER if session.received else PROXY)
    session = _told_apart(session) if rules.mode == BETTER else session
    received = [one.span for one in session.received]
    spans = _spans(session, rules.mode, adapter)
    traces = {span.span_id: span.trace_id for span in spans}
    try:
        outcome = (
            _better(session, spans, rules, final)
            if rules.mode == BETTER
            else _compat(session, spans, rules, adapter, final)
        )
    except Exception as error:  # whatever the reference's rules run into
        told = f"{type(error).__name__}: {error}"
        entries = [Entry(span.span_id, span.name, Use.CONVERSION_FAILED) for span in spans]
        return Converted([], entries, traces, told[:500], final, received)
    return Converted(outcome.triplets, outcome.report, traces, None, final, received)


def _told_apart(session: TracedSession) -> TracedSession:
    spans = told_apart([one.span for one in session.received])
    renamed = [replace(one, span=span) for one, span in zip(session.received, spans, strict=True)]
    return replace(session, received=renamed)


def _better(session: TracedSession, spans: list[Span], rules: TraceRules, final: float | None) -> Outcome:
    earlier = {one.span.span_id: one.agent_before for one in session.received if one.agent_before}
    by_response = {
        named: earlier[one.span.span_id]
        for one in session.received
        if one.span.span_id in earlier and (named := response_id(one.span.attributes))
    }
    own = {call.response_id: call for call in session.own if call.response_id}

    def served(told: str) -> ServedTokens | None:
        call = session.served.get(told) or own.get(told)
        if call is None:
            return None
        return replace(call.tokens, agent=by_response.get(told, call.agent))

    return convert(spans, Rules(**rules.better, final_reward=final, served=served))


def _compat(
    session: TracedSession, spans: list[Span], rules: TraceRules, adapter: str, final: float | None
) -> Outcome:
    joined = [_joined(span, session.served) for span in spans]
    outcome = convert_compat(adapter, [one.span for one in joined], rules.compat(adapter))
    if not all(_is_storable(triplet) for triplet in outcome.triplets):
        raise ValueError("A call has numbers for token ids that no vocabulary has.")
    remarks = {one.span.span_id: one.remarks for one in joined}
    for entry in outcome.report:
        entry.remarks += remarks[entry.span_id]
    if final is not None and outcome.triplets:
        outcome.triplets[-1] = outcome.triplets[-1].with_reward(final)
    return outcome


def _is_storable(triplet: Triplet) -> bool:
    return are_token_ids(triplet.prompt["token_ids"]) and are_token_ids(triplet.response["token_ids"])


@dataclass(frozen=True, slots=True)
class _Joined:
    """A span with the ids of our record of its call."""

    span: Span
    remarks: tuple[Remark, ...] = ()


def _joined(span: Span, served: Mapping[str, OwnCall]) -> _Joined:
    call = served.get(response_id(span.attributes) or "")
    if call is None:
        return _Joined(span)
    ours = (call.prompt.tolist(), call.completion.tolist())
    named = (prompt_ids(span.attributes), response_ids(span.attributes))
    added: dict[str, Any] = {"prompt_token_ids": ours[0], "response_token_ids": ours[1]}
    if span.name == RAW_REQUEST:
        added = {f"{_RAW}prompt_token_ids": ours[0], f"{_RAW}response_token_ids": [ours[1]]}
    remarks = (
        *((Remark.TOKENS_DISAGREE,) if _disagree(named, ours) else ()),
        *((Remark.LATE_REPLY,) if call.late is not None else ()),
    )
    return _Joined(replace(span, attributes={**span.attributes, **added}), remarks)


def _disagree(named: Iterable[list[int]], ours: Iterable[list[int]]) -> bool:
    """A span that names no ids disagrees with nothing."""
    return any(ids and ids != our for ids, our in zip(named, ours, strict=True))


def _spans(session: TracedSession, mode: str, adapter: str) -> list[Span]:
    """What was received, what of our own calls belongs beside it, and rewards behind their calls."""
    records = _records(session)
    own = [call for call in session.own if not _is_recorded(records.get(call.seq, ()), mode, adapter)]
    added = [Added(span_of(call, session.rollout_id, session.attempt_id), call.arrived_at) for call in own]
    calls = {call.seq: one.span for call, one in zip(own, added, strict=True)}
    calls |= {seq: spans[0] for seq, spans in records.items() if seq not in calls}
    after: dict[str, list[Span]] = {}
    for row in session.rewards:
        if row.node_seq is not None and row.node_seq in calls:
            call = calls[row.node_seq]
            number = len(after.setdefault(call.span_id, []))
            after[call.span_id].append(_reward(row, call, number, mode))
    return arranged(session.received, added, after)


def _records(session: TracedSession) -> dict[int, list[Span]]:
    """Received spans of the session's own calls, by seq."""
    records: dict[int, list[Span]] = {}
    for one in session.received:
        call = session.served.get(response_id(one.span.attributes) or "")
        if call is not None and call.session_id == session.session_id:
            records.setdefault(call.seq, []).append(one.span)
    return records


def _is_recorded(records: Sequence[Span], mode: str, adapter: str) -> bool:
    """Whether an own call has no need of a span of its own."""
    if mode != BETTER and adapter != PROXY:
        return True
    if mode == BETTER:
        return bool(records)
    return any(proxy_call(span) is not None or span.name == RAW_REQUEST for span in records)


def _reward(row: RewardRow, call: Span, number: int, mode: str) -> Span:
    """A reward of one node: below its call, or beside it where the tree is not looked at."""
    return Span(
        span_id=span_id_of(f"{call.span_id}:{row.name}", number),
        parent_id=call.span_id if mode == BETTER else call.parent_id,
        name=ANNOTATION,
        attributes=reward_attributes({row.name: row.value}, row.name),
        start_time=call.end_time,
        end_time=call.end_time,
        trace_id=call.trace_id,
        rollout_id=call.rollout_id,
        attempt_id=call.attempt_id,
    )
