"""Spans of the LLM proxy: ordered by sequence id alone, because clocks of different machines disagree.

A reward goes to the latest call of strictly smaller sequence id that has none yet.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_export.traces.adapters.better import COMPAT, convert_better, is_better
from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.adapters.registry import SPANS, adapter
from trainer_export.traces.coercion import to_float
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.proxy_calls import ProxyCall, proxy_call
from trainer_export.traces.rewards import reward_value
from trainer_export.traces.span import Span
from trainer_export.traces.triplet import Triplet

NAME = "LlmProxyTraceToTriplet"

_DEFAULTS = {"mode": COMPAT}


@adapter(NAME, SPANS)
def convert(source: Any, options: Mapping[str, Any]) -> Any:
    """Triplets in sequence order; no spans, no triplets."""
    if is_better(options):
        return convert_better(NAME, source, options)
    read_options(NAME, options, _DEFAULTS)
    spans = sorted(parse_spans(source), key=_order)
    calls = _distinct_calls(spans)
    rewards = _match(calls, spans)
    return [_triplet(call, rewards.get(call.span.span_id)).to_json() for call in calls]


def _order(span: Span) -> tuple[int, Any]:
    """Equal sequence ids with an unknown start raise TypeError."""
    return (span.sequence_id, span.start_time)


def _distinct_calls(spans: Sequence[Span]) -> list[ProxyCall]:
    """The first call of each response id, and every call that has none."""
    calls: list[ProxyCall] = []
    seen: set[str] = set()
    for span in spans:
        call = proxy_call(span)
        if call is None or call.response_id in seen:
            continue
        if call.response_id is not None:
            seen.add(call.response_id)
        calls.append(call)
    return calls


def _match(calls: Sequence[ProxyCall], spans: Sequence[Span]) -> dict[str, Any]:
    """Reward by span id. Both lists are in sequence order, so calls that wait form a stack."""
    rewards: dict[str, Any] = {}
    waiting: list[ProxyCall] = []
    upcoming = iter(calls)
    call = next(upcoming, None)
    for span in spans:
        value = reward_value(span)
        if value is None:
            continue
        while call is not None and call.span.sequence_id < span.sequence_id:
            waiting.append(call)
            call = next(upcoming, None)
        while waiting and waiting[-1].span.span_id in rewards:
            waiting.pop()
        if waiting:
            rewards[waiting.pop().span.span_id] = value
    return rewards


def _triplet(call: ProxyCall, reward: Any) -> Triplet:
    return Triplet(
        prompt={"token_ids": call.prompt_ids},
        response={"token_ids": call.response_ids},
        reward=None if reward is None else to_float(reward, "reward"),
        metadata={"response_id": call.response_id},
    )
