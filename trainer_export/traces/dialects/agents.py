"""Agent names beyond the reference's table: OpenTelemetry GenAI, OpenInference graphs, OpenLLMetry."""

from trainer_export.traces.agents import agent_name as reference_agent_name
from trainer_export.traces.span import Span

_AGENT_OPERATIONS = frozenset({"invoke_agent", "create_agent"})
_TRACELOOP_KINDS = frozenset({"agent", "workflow"})


def agent_name(span: Span) -> str | None:
    """The reference's rules first; None when the name is no text."""
    known = reference_agent_name(span)
    if isinstance(known, str):
        return known
    for rule in (_gen_ai, _open_inference, _traceloop):
        name = rule(span)
        if isinstance(name, str) and name:
            return name
    return None


def _gen_ai(span: Span) -> object:
    """`gen_ai.agent.name` of an agent's own span; a call span may repeat it without being one."""
    if str(span.attributes.get("gen_ai.operation.name")) not in _AGENT_OPERATIONS:
        return None
    return span.attributes.get("gen_ai.agent.name")


def _open_inference(span: Span) -> object:
    node = span.attributes.get("graph.node.name")
    if node is not None:
        return node
    return span.name if span.attributes.get("openinference.span.kind") == "AGENT" else None


def _traceloop(span: Span) -> object:
    if str(span.attributes.get("traceloop.span.kind")) not in _TRACELOOP_KINDS:
        return None
    return span.attributes.get("traceloop.entity.name")
