"""Clients are recognised by their headers; a client that uses an SDK is not taken for the SDK."""

import json
from pathlib import Path

import pytest

from sessions_app.history.harness.detection import detect_harness

RECORDINGS = Path(__file__).parents[2] / "vectors" / "harness-wire"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"user-agent": "claude-cli/2.1.197 (external, cli)"}, "claude-code"),
        ({"x-claude-code-session-id": "s", "user-agent": "Anthropic/JS 0.60"}, "claude-code"),
        ({"x-session-id": "s", "x-session-affinity": "s"}, "opencode"),
        ({"user-agent": "opencode/1.18.33 ai-sdk"}, "opencode"),
        ({"user-agent": "Agents/Python 0.24.0"}, "openai-agents"),
        ({"user-agent": "Anthropic/Python 2.14.0"}, "anthropic"),
        ({"user-agent": "AsyncOpenAI/Python 3.57.0"}, "openai-sdk"),
        ({"user-agent": "codex_cli_rs/0.99"}, "codex"),
        ({"user-agent": "QwenCode/0.1 (linux)"}, "qwen-code"),
        ({"user-agent": "curl/8"}, None),
        ({}, None),
    ],
)
def test_headers_name_the_harness(headers, expected):
    assert detect_harness(headers) == expected


@pytest.mark.parametrize(
    ("recording", "expected"), [("openai-agents", "openai-agents"), ("openai-sdk", "openai-sdk")]
)
def test_recorded_headers_name_the_harness(recording, expected):
    turns = json.loads((RECORDINGS / f"{recording}.json").read_text())["requests"]
    found = {
        detect_harness({name.lower(): value for name, value in turn["headers"].items()}) for turn in turns
    }
    assert found == {expected}
