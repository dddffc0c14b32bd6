"""AutoGen teams."""

from trainer_export.traces.span import AttributeValue, Span


def agent_name(span: Span) -> AttributeValue | None:
    """`recipient_agent_type`."""
    return span.attributes.get("recipient_agent_type")
