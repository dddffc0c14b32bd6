"""Spans, our own calls and reported rewards of one session in one order, as an attempt's list of spans. Pure.

The order is that of arrival at this server, whose clock saw all of them; what senders numbered themselves
keeps its order. Sequence ids are given anew, so that they say nothing but this order.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from trainer_export.spans.loading import StoredSpan
from trainer_export.traces.span import Span


@dataclass(frozen=True, slots=True)
class Added:
    """A span that nobody sent."""

    span: Span
    arrived_at: datetime


def arranged(
    received: Sequence[StoredSpan], added: Iterable[Added], after: Mapping[str, Sequence[Span]]
) -> list[Span]:
    """Spans with sequence ids from 1. `after`: spans that belong right behind another one, by its id."""
    ordered = _ordered(received)
    arrivals = list(accumulate((one.received_at for one in ordered), max))
    before: dict[int, list[Span]] = {}
    for one in sorted(added, key=lambda one: (one.arrived_at, one.span.span_id)):
        before.setdefault(bisect_right(arrivals, one.arrived_at), []).append(one.span)
    spans: list[Span] = []
    last: StoredSpan | None = None
    sequence = 0
    for position, stored in enumerate([*ordered, None]):
        for span in before.get(position, ()):
            sequence = _append(spans, span, sequence + 1, after)
        if stored is not None:
            sequence += 0 if _shares_number(last, stored) and not before.get(position) else 1
            sequence = _append(spans, stored.span, sequence, after)
            last = stored
    return spans


def _append(spans: list[Span], span: Span, sequence: int, after: Mapping[str, Sequence[Span]]) -> int:
    """The number of the last span appended."""
    spans.append(replace(span, sequence_id=sequence))
    for follower in after.get(span.span_id, ()):
        sequence += 1
        spans.append(replace(follower, sequence_id=sequence))
    return sequence


def _ordered(received: Sequence[StoredSpan]) -> list[StoredSpan]:
    """By number where senders gave some, else by arrival: a span may have been numbered late."""
    if any(one.sequence_given for one in received):
        return sorted(received, key=lambda one: one.span.sequence_id)
    return sorted(received, key=lambda one: one.received_at)


def _shares_number(last: StoredSpan | None, stored: StoredSpan) -> bool:
    """All spans of one proxied request have one number."""
    if last is None or not (last.sequence_given and stored.sequence_given):
        return False
    return last.span.sequence_id == stored.span.sequence_id
