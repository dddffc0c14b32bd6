"""Which agent a call belongs to, and whether it sits inside a reward: one walk, everything handed down."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from trainer_export.traces.better.adoption import adopt_calls
from trainer_export.traces.better.calls import Call
from trainer_export.traces.better.forest import Forest
from trainer_export.traces.better.report import Report
from trainer_export.traces.dialects.agents import agent_name

ANY_AGENT = "*"


@dataclass(frozen=True, slots=True)
class Label:
    """What holds at a span because of the spans above it."""

    agent: str | None
    """The nearest agent above; None outside of any agent."""
    agent_span: str | None
    in_reward: bool

    def is_wanted(self, pattern: str | None) -> bool:
        """The nearest agent alone decides; without a pattern every call is wanted."""
        return pattern is None or (self.agent is not None and re.search(pattern, self.agent) is not None)


def labels(forest: Forest, reward_spans: Collection[str]) -> dict[str, Label]:
    """A label for every span; a span's own name counts for what is below it."""
    outside = Label(None, None, False)
    found: dict[str, Label] = {}
    below: dict[str, Label] = {}
    for span_id, entering in forest.walk():
        if not entering:
            continue
        parent = forest.parent(span_id)
        found[span_id] = outside if parent is None else below[parent]
        below[span_id] = _below(forest, span_id, found[span_id], span_id in reward_spans)
    return found


def _below(forest: Forest, span_id: str, label: Label, is_reward: bool) -> Label:
    name = agent_name(forest.by_id[span_id])
    agent, agent_span = (label.agent, label.agent_span) if name is None else (name, span_id)
    return Label(agent, agent_span, label.in_reward or is_reward)


def adopt(forest: Forest, call_ids: Collection[str], report: Report) -> None:
    """Move calls that float beside their agent below it."""
    agents = [
        span.span_id for span in forest.spans if span.span_id not in call_ids and agent_name(span) is not None
    ]
    adopt_calls(forest, [span.span_id for span in forest.spans if span.span_id in call_ids], agents, report)


def label_of(call: Call, where: Mapping[str, Label]) -> Label:
    """Of the records of a call those below an agent know more; inside a reward is inside a reward."""
    found = [where[record.span.span_id] for record in call.records]
    named = next((label for label in found if label.agent is not None), found[0])
    return Label(named.agent, named.agent_span, any(label.in_reward for label in found))
