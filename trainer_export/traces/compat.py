"""Mode `compat` with an account of every span: what the adapters answer, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_export.traces.account import account_of_proxy, account_of_tree
from trainer_export.traces.adapters import llm_proxy
from trainer_export.traces.adapters.trees import TRACER, TRAJECTORY, prepared
from trainer_export.traces.better.conversion import Outcome
from trainer_export.traces.proxied import proxied
from trainer_export.traces.span import Span
from trainer_export.traces.trajectory import to_trajectory

PROXY = llm_proxy.NAME
ADAPTERS = (TRACER, TRAJECTORY, PROXY)


def convert_compat(adapter: str, spans: Sequence[Span], options: Mapping[str, Any]) -> Outcome:
    """Raises what the adapter raises."""
    if adapter == PROXY:
        found = proxied(spans)
        givers = {given.by: call_id for call_id, given in found.given.items()}
        calls = [call.span.span_id for call in found.calls]
        return Outcome(found.triplets, account_of_proxy(spans, calls, givers))
    root, rules = prepared(adapter, spans, options)
    return Outcome(to_trajectory(root, rules), account_of_tree(root, spans, rules))
