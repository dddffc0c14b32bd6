"""LangChain chains seen by Weave."""

from trainer_export.traces.span import AttributeValue, Span


def agent_name(span: Span) -> AttributeValue | None:
    """`lc_name` of a span named `langchain.Chain.…`."""
    if not span.name.startswith("langchain.Chain."):
        return None
    return span.attributes.get("lc_name")
