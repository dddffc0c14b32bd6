"""OpenAI Agents SDK (and, by luck, OpenInference)."""

from trainer_export.traces.span import AttributeValue, Span


def agent_name(span: Span) -> AttributeValue | None:
    """`agent.name`."""
    return span.attributes.get("agent.name")
