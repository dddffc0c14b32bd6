"""Microsoft Agent Framework executors."""

from trainer_export.traces.span import AttributeValue, Span


def agent_name(span: Span) -> AttributeValue | None:
    """`executor.id`."""
    return span.attributes.get("executor.id")
