"""Which spans are the calls to train on.

A depth-first walk hands four things down: the agent's label, whether a reward span or a selected call is
above, and the response ids selected so far. A node's own agent name changes the label for its children, not
for itself. Invariant: the result is in tree order, not in time order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainer_export.traces.agents import agent_name
from trainer_export.traces.attributes import first_text
from trainer_export.traces.names import RESPONSE_ID
from trainer_export.traces.rewards import is_reward_span
from trainer_export.traces.tree import Node

ANY_AGENT = "*"
DEFAULT_CALL_PATTERN = r"openai\.chat\.completion"


@dataclass(frozen=True, slots=True)
class SelectedCall:
    """A call to train on."""

    node: Node
    agent: Any
    """Name of the nearest enclosing agent that passes the filter; `*` outside of any agent."""


@dataclass(frozen=True, slots=True)
class SelectionRules:
    """What to select."""

    llm_call_match: str = DEFAULT_CALL_PATTERN
    """Searched in the span's name."""
    agent_match: str | None = None
    """Searched in the agent's name; None takes every call, also outside of agents."""
    exclude_llm_call_in_reward: bool = True
    dedup_llm_call: bool = True
    """Drop a call without response id below a selected call. Repeated response ids are dropped always."""


@dataclass(frozen=True, slots=True)
class _Above:
    """What holds at a node because of the nodes above it."""

    agent: Any
    """None: no call is wanted here."""
    in_reward: bool = False
    in_call: bool = False


class Verdict(StrEnum):
    """Why a span is, or is not, a call to train on."""

    WANTED = "wanted"
    OTHER_NAME = "other_name"
    NO_WANTED_AGENT = "no_wanted_agent"
    IN_REWARD = "in_reward"
    IN_CALL = "in_call"
    """Without a response id, below a selected call."""
    REPEATED = "repeated"
    """A call with its response id was selected before."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A node with what became of it."""

    node: Node
    agent: Any
    """What a call here would be labelled with; None where no call is wanted."""
    verdict: Verdict


def select_calls(root: Node, rules: SelectionRules) -> list[SelectedCall]:
    """The wanted calls in tree order. Reading a malformed reward on the way raises."""
    return [SelectedCall(one.node, one.agent) for one in judged(root, rules) if one.verdict is Verdict.WANTED]


def judged(root: Node, rules: SelectionRules) -> Iterator[Judged]:
    """Every node of the tree, in tree order."""
    seen: set[str] = set()
    stack = [(root, _Above(ANY_AGENT if rules.agent_match is None else None))]
    while stack:
        node, above = stack.pop()
        verdict = _verdict(node, above, seen, rules)
        yield Judged(node, above.agent, verdict)
        below = _below(node, above, verdict is Verdict.WANTED, rules)
        stack.extend((child, below) for child in reversed(node.children))


def _verdict(node: Node, above: _Above, seen: set[str], rules: SelectionRules) -> Verdict:
    """Also remembers the response id of a wanted call."""
    if re.search(rules.llm_call_match, node.span.name) is None:
        return Verdict.OTHER_NAME
    if above.agent is None:
        return Verdict.NO_WANTED_AGENT
    if above.in_reward:
        return Verdict.IN_REWARD
    response_id = first_text(node.span.attributes, RESPONSE_ID)
    if response_id is None:
        return Verdict.IN_CALL if above.in_call else Verdict.WANTED
    if response_id in seen:
        return Verdict.REPEATED
    seen.add(response_id)
    return Verdict.WANTED


def _below(node: Node, above: _Above, is_call: bool, rules: SelectionRules) -> _Above:
    agent = above.agent
    name = agent_name(node.span)
    if name is not None:
        passes = rules.agent_match is None or re.search(rules.agent_match, name) is not None  # type: ignore[arg-type]
        agent = name if passes else None
    in_reward = (rules.exclude_llm_call_in_reward and is_reward_span(node.span)) or above.in_reward
    return _Above(agent, in_reward, above.in_call or (rules.dedup_llm_call and is_call))
