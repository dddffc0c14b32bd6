"""The demo engine's own parser, as engines have one: from sampled text to an OpenAI message.

A call that is no JSON stays text, as does one that was cut off: engines do the same.
"""

import json
import re
from typing import Any

_CALL = re.compile(r"\n?<tool_call>\n?(.*?)\n?</tool_call>", re.DOTALL)


def parse(text: str, identity: str, *, thinking_open: bool) -> dict[str, Any]:
    """The assistant message; `thinking_open`: the prompt had opened the reasoning block."""
    reasoning, rest = _split_reasoning(text, thinking_open)
    calls = [_as_call(match.group(1)) for match in _CALL.finditer(rest)]
    if not calls or None in calls:
        return {"role": "assistant", "content": rest, "reasoning_content": reasoning, "tool_calls": None}
    return {
        "role": "assistant",
        "content": _CALL.sub("", rest).strip(),
        "reasoning_content": reasoning,
        "tool_calls": [
            {"id": f"call_{identity}_{index}", "index": index, "type": "function", "function": call}
            for index, call in enumerate(calls)
        ],
    }


def _split_reasoning(text: str, thinking_open: bool) -> tuple[str | None, str]:
    opened = thinking_open or text.startswith("<think>")
    body = text.removeprefix("<think>")
    if not opened or "</think>" not in body:
        return None, text
    thought, _, rest = body.partition("</think>")
    return thought.strip() or None, rest.lstrip()


def _as_call(body: str) -> dict[str, str] | None:
    try:
        call = json.loads(body)
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    return {"name": call["name"], "arguments": json.dumps(call.get("arguments", {}), ensure_ascii=False)}
