"""Which agent a call belongs to, and whether it sits inside a reward: one walk, everything handed down."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from trainer_export.traces.better.forest import Forest
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
