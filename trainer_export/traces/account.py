"""What became of each span in mode `compat`, in the words of the report of mode `better`.

The reference drops silently; this says what it dropped. Invariant: one entry for every span that was listed,
and the same calls and rewards as the conversion itself finds.
"""

from collections.abc import Callable, Sequence

from trainer_export.traces.agents import agent_name
from trainer_export.traces.better.report import Entry, Use
from trainer_export.traces.conversion.call import triplet_of
from trainer_export.traces.dialects.recognition import is_call
from trainer_export.traces.proxy_calls import proxy_call
from trainer_export.traces.rewards import is_reward_span
from trainer_export.traces.rewards.matching import given_rewards
from trainer_export.traces.selection import DEFAULT_CALL_PATTERN, Judged, Verdict, judged
from trainer_export.traces.span import Span
from trainer_export.traces.trajectory import TrajectoryRules
from trainer_export.traces.tree import Node

_REFUSALS = {
    Verdict.NO_WANTED_AGENT: Use.AGENT_NOT_WANTED,
    Verdict.IN_REWARD: Use.INSIDE_A_REWARD,
    Verdict.IN_CALL: Use.INSIDE_A_CALL,
    Verdict.REPEATED: Use.JOINED,
}


def account_of_tree(root: Node, spans: Sequence[Span], rules: TrajectoryRules) -> list[Entry]:
    """Of the tracer's adapters. `root`: repaired, where the conversion repairs it."""
    found = {one.node.id: one for one in judged(root, rules.selection)}
    calls = {
        span_id
        for span_id, one in found.items()
        if one.verdict is Verdict.WANTED and (not rules.skip_empty_token_spans or _has_tokens(one.node.span))
    }
    givers = {given.by: call_id for call_id, given in given_rewards(rules.reward_match, root, calls).items()}
    return [_entry(span, found.get(span.span_id), calls, givers) for span in _distinct(spans)]


def account_of_proxy(spans: Sequence[Span], calls: Sequence[str], givers: dict[str, str]) -> list[Entry]:
    """Of the proxy's adapter. `calls`: spans that became triplets; `givers`: call by the span that gave it a
    reward.
    """
    wanted = set(calls)

    def refusal(span: Span) -> Use | None:
        if proxy_call(span) is not None:
            return Use.JOINED
        return Use.NO_TOKEN_IDS if is_call(span, DEFAULT_CALL_PATTERN) else None

    return [_described(span, wanted, givers, refusal) for span in _distinct(spans)]


def _entry(span: Span, found: Judged | None, calls: set[str], givers: dict[str, str]) -> Entry:
    if found is None:
        return Entry(span.span_id, span.name, Use.OUTSIDE_THE_TREE)

    def refusal(span: Span) -> Use | None:
        if found.verdict is Verdict.WANTED:
            return Use.NO_TOKEN_IDS
        if found.verdict is Verdict.OTHER_NAME:
            return Use.OTHER_NAME if is_call(span, DEFAULT_CALL_PATTERN) else None
        return _REFUSALS[found.verdict]

    return _described(span, calls, givers, refusal)


def _described(
    span: Span, calls: set[str], givers: dict[str, str], refusal: Callable[[Span], Use | None]
) -> Entry:
    """A call first, then a reward, then an agent; everything else is structure."""
    entry = Entry(span.span_id, span.name)
    refused = refusal(span)
    if span.span_id in calls:
        entry.use = Use.CALL
    elif span.span_id in givers:
        entry.use, entry.detail = Use.REWARD, givers[span.span_id]
    elif refused is not None:
        entry.use = refused
    elif is_reward_span(span):
        entry.use = Use.REWARD_WITHOUT_CALL
    elif agent_name(span) is not None:
        entry.use = Use.AGENT
    return entry


def _has_tokens(span: Span) -> bool:
    step = triplet_of(span.attributes, None)
    return bool(step.prompt["token_ids"]) and bool(step.response["token_ids"])


def _distinct(spans: Sequence[Span]) -> list[Span]:
    """Of a span that is listed twice the last record counts, as in the tree."""
    return list({span.span_id: span for span in spans}.values())
