"""Spans of the LLM proxy -> triplets: ordered by sequence id alone, because clocks of different machines
disagree.

A reward goes to the latest call of strictly smaller sequence id that has none yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer_export.traces.coercion import to_float
from trainer_export.traces.proxy_calls import ProxyCall, proxy_call
from trainer_export.traces.rewards import reward_value
from trainer_export.traces.rewards.given import Given
from trainer_export.traces.span import Span
from trainer_export.traces.triplet import Triplet


@dataclass(frozen=True, slots=True)
class Proxied:
    """The calls in sequence order, and the reward of each that has one."""

    calls: Sequence[ProxyCall]
    given: Mapping[str, Given]
    """By span id."""

    @property
    def triplets(self) -> list[Triplet]:
        """One a call."""
        return [_triplet(call, self.given.get(call.span.span_id)) for call in self.calls]


def proxied(source: Sequence[Span]) -> Proxied:
    """Equal sequence ids with an unknown start raise TypeError."""
    spans = sorted(source, key=_order)
    calls = _distinct_calls(spans)
    return Proxied(calls, _match(calls, spans))


def _order(span: Span) -> tuple[int, Any]:
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


def _match(calls: Sequence[ProxyCall], spans: Sequence[Span]) -> dict[str, Given]:
    """Both lists are in sequence order, so calls that wait form a stack."""
    rewards: dict[str, Given] = {}
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
            rewards[waiting.pop().span.span_id] = Given(value, span.span_id)
    return rewards


def _triplet(call: ProxyCall, given: Given | None) -> Triplet:
    return Triplet(
        prompt={"token_ids": call.prompt_ids},
        response={"token_ids": call.response_ids},
        reward=None if given is None else to_float(given.value, "reward"),
        metadata={"response_id": call.response_id},
    )
