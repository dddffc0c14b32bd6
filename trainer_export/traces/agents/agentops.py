"""AgentOps' agent decorator."""

from trainer_export.traces.span import AttributeValue, Span


def agent_name(span: Span) -> AttributeValue | None:
    """`operation.name` of a span of kind `agent`."""
    if span.attributes.get("agentops.span.kind") != "agent":
        return None
    return span.attributes.get("operation.name")
