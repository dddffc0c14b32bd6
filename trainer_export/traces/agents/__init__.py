"""Agent name of a span: one rule per framework, first hit wins. A present name counts even if it is empty."""

from trainer_export.traces.agents import (
    agent_framework,
    agentops,
    autogen,
    langgraph,
    openai_agents,
    weave,
    weave_langchain,
)
from trainer_export.traces.span import AttributeValue, Span

FRAMEWORKS = (
    openai_agents.agent_name,
    agentops.agent_name,
    autogen.agent_name,
    langgraph.agent_name,
    agent_framework.agent_name,
    weave.agent_name,
    weave_langchain.agent_name,
)


def agent_name(span: Span) -> AttributeValue | None:
    """The name under the first framework that knows the span; names are expected to be text."""
    for rule in FRAMEWORKS:
        name = rule(span)
        if name is not None:
            return name
    return None
