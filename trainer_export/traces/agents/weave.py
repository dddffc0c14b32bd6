"""Weave agents."""

from trainer_export.traces.span import AttributeValue, Span


def agent_name(span: Span) -> AttributeValue | None:
    """The input `name` of a span of type `agent`."""
    if span.attributes.get("type") != "agent":
        return None
    return span.attributes.get("agentlightning.operation.input.name")
