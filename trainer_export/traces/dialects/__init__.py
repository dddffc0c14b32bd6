"""The attribute dialects of today (OpenTelemetry GenAI old and new, OpenInference, OpenLLMetry, AgentOps,
Weave, LiteLLM).

One file per question asked of a span; each is a table of attribute names, tried in order. Nothing here
raises on a value of an unexpected shape: it is passed over.
"""
