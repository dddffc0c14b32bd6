"""LangGraph nodes."""

from trainer_export.traces.span import AttributeValue, Span


def agent_name(span: Span) -> AttributeValue | None:
    """`langchain.chain.type`."""
    return span.attributes.get("langchain.chain.type")
