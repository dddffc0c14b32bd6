"""Is a span a model call? By meaning first, by name only where the caller says so."""

import re

from trainer_export.traces.proxy_calls import LITELLM_REQUEST, RAW_REQUEST
from trainer_export.traces.span import Span

_INFERENCE = frozenset({"chat", "text_completion", "generate_content", "completion", "acompletion"})
_NO_INFERENCE = frozenset({"embeddings", "invoke_agent", "execute_tool", "create_agent", "invoke_workflow"})
_KIND_ATTRIBUTES = ("gen_ai.request.type", "llm.request.type")
_KINDS = frozenset({"chat", "completion"})
_PROXY_NAMES = frozenset({RAW_REQUEST, LITELLM_REQUEST})


def is_call(span: Span, name_pattern: str) -> bool:
    """First hit of: operation, OpenInference kind, request type, the proxy's names, the name pattern."""
    operation = span.attributes.get("gen_ai.operation.name")
    operation = operation if isinstance(operation, str) else None
    if operation in _NO_INFERENCE:
        return False
    if operation in _INFERENCE:
        return True
    kind = span.attributes.get("openinference.span.kind")
    if isinstance(kind, str):
        return kind.upper() == "LLM"
    if any(str(span.attributes.get(name)) in _KINDS for name in _KIND_ATTRIBUTES):
        return True
    return span.name in _PROXY_NAMES or re.search(name_pattern, span.name) is not None


def is_failed(span: Span) -> bool:
    """The call ended in an error."""
    return span.status_code.upper().removeprefix("STATUS_CODE_") == "ERROR" or "error.type" in span.attributes
