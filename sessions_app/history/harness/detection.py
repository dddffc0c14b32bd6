"""Which harness sent a request, by its headers. A label for people; by itself it changes nothing."""

from collections.abc import Mapping

_MARKS = (
    ("x-claude-code-session-id", "", "claude-code"),
    ("user-agent", "claude-cli/", "claude-code"),
    ("user-agent", "opencode/", "opencode"),
    ("x-session-affinity", "", "opencode"),
    ("user-agent", "qwencode/", "qwen-code"),
    ("user-agent", "codex", "codex"),
    ("originator", "codex", "codex"),
    ("user-agent", "agents/python", "openai-agents"),
    ("user-agent", "agents/javascript", "openai-agents"),
    ("user-agent", "pydantic-ai/", "pydantic-ai"),
    ("user-agent", "anthropic/", "anthropic"),
    ("user-agent", "asyncanthropic/", "anthropic"),
    ("user-agent", "openai/", "openai-sdk"),
    ("user-agent", "asyncopenai/", "openai-sdk"),
)
"""Header, how its value starts, harness. The first that fits decides: clients stand before their SDKs."""


def detect_harness(headers: Mapping[str, str]) -> str | None:
    """The name of the harness, None for an unknown client. Header names in lower case."""
    for header, start, harness in _MARKS:
        value = headers.get(header)
        if value is not None and value.lower().startswith(start):
            return harness
    return None
