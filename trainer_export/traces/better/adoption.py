"""Calls that hang beside their agent instead of below it: moved to the agent that encloses them, on every
level.

The agents that enclose a call in time and hang below the call's parent must be nested in one another; where
they are not (parallel agents), a link or a shared conversation decides, and without either the call stays
where it is.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from trainer_export.traces.better.forest import Forest
from trainer_export.traces.better.report import Remark, Report
from trainer_export.traces.dialects.conversation import conversation_id
from trainer_export.traces.enclosing import Interval, IntervalIndex
from trainer_export.traces.span import Span

_MANY = 64
"""So many agents around one call are parallel, not nested."""


@dataclass(frozen=True, slots=True)
class _Numbering:
    """Position of each span on the way through the forest: everything below a span lies within its bounds."""

    entered: Mapping[str, int]
    left: Mapping[str, int]

    def is_below(self, span_id: str, ancestor: str | None) -> bool:
        """A span is not below itself; everything is below None."""
        if ancestor is None:
            return True
        return self.entered[ancestor] < self.entered[span_id] and self.left[span_id] < self.left[ancestor]

    def innermost(self, span_ids: Iterable[str]) -> list[str]:
        """Those that have none of the others below them."""
        ordered = sorted(set(span_ids), key=self.entered.__getitem__)
        return [
            span_id
            for span_id, following in zip_longest(ordered, ordered[1:])
            if following is None or not self.is_below(following, span_id)
        ]


def adopt_calls(forest: Forest, calls: Iterable[str], agents: Iterable[str], report: Report) -> None:
    """Decide for all calls first, then move: the order of calls does not matter."""
    numbering = _numbered(forest)
    timed = [(interval, span_id) for span_id in agents if (interval := interval_of(forest.by_id[span_id]))]
    index = IntervalIndex(timed)
    moves = {call: _agent_for(forest, call, index, numbering, report) for call in calls}
    for call, agent in moves.items():
        if agent is not None:
            forest.move(call, agent)
            report.remark(call, Remark.PARENT_REPAIRED)


def interval_of(span: Span) -> Interval | None:
    """None when a time is unknown, or the end lies before the start."""
    start, end = span.start_time, span.end_time
    if start is None or end is None or not math.isfinite(start) or not math.isfinite(end) or end < start:
        return None
    return Interval(start, end)


def _agent_for(
    forest: Forest, call: str, index: IntervalIndex[str], numbering: _Numbering, report: Report
) -> str | None:
    span, parent = forest.by_id[call], forest.parent(call)
    inner = interval_of(span)
    if inner is None:
        return None
    around = index.around(inner, _MANY)
    if len(around) >= _MANY:
        report.remark(call, Remark.PARENT_AMBIGUOUS)
        return None
    innermost = numbering.innermost(
        agent
        for agent in around
        if agent != call and numbering.is_below(agent, parent) and not numbering.is_below(agent, call)
    )
    if len(innermost) > 1:
        innermost = _related(forest, span, innermost)
        if len(innermost) != 1:
            report.remark(call, Remark.PARENT_AMBIGUOUS)
    return innermost[0] if len(innermost) == 1 else None


def _related(forest: Forest, call: Span, agents: list[str]) -> list[str]:
    """Agents the call links to, else those of its conversation."""
    linked = {link.get("span_id") or (link.get("context") or {}).get("span_id") for link in call.links}
    by_link = [agent for agent in agents if agent in linked]
    if by_link:
        return by_link
    conversation = conversation_id(call.attributes)
    if conversation is None:
        return []
    return [agent for agent in agents if conversation_id(forest.by_id[agent].attributes) == conversation]


def _numbered(forest: Forest) -> _Numbering:
    entered: dict[str, int] = {}
    left: dict[str, int] = {}
    for position, (span_id, entering) in enumerate(forest.walk()):
        (entered if entering else left)[span_id] = position
    return _Numbering(entered, left)
