"""A turn's result as a Response object."""

from collections.abc import Mapping
from typing import Any

from sessions_app.protocols.responses.identity import response_id
from sessions_app.protocols.responses.items import sealed
from sessions_app.protocols.responses.tools import Names, names_of
from sessions_app.turns.values import TurnResult

_SEALED_REASONING = "reasoning.encrypted_content"


def response_of(result: TurnResult, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The whole response. `asked`: what the request said."""
    cut = result.generation.finish_reason == "length"
    told = {
        "id": response_id(result),
        "object": "response",
        "created_at": result.reply.get("created") or 0,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "model": str(asked.get("model") or result.reply.get("model") or ""),
        "output": output_items(result, asked),
        "usage": _usage(result),
    }
    return {**told, **_echoed(asked)}


def output_items(result: TurnResult, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Reasoning, message, calls."""
    status = "incomplete" if result.generation.finish_reason == "length" else "completed"
    with_sealed = _SEALED_REASONING in (asked.get("include") or ())
    names = names_of(asked.get("tools"))
    return items_of(result.message, response_id(result), status, names, with_sealed=with_sealed)


def items_of(
    message: Mapping[str, Any], response: str, status: str, names: Names, *, with_sealed: bool
) -> list[dict[str, Any]]:
    """The items of a reply. `response`: the id of its response; `names`: of functions in namespaces."""
    name = response.removeprefix("resp_")
    reasoning, content = message.get("reasoning_content"), message.get("content")
    calls = [call for call in message.get("tool_calls") or [] if isinstance(call, Mapping)]
    items = []
    if reasoning:
        items.append(_reasoning(reasoning, f"rs_{name}", with_sealed))
    if content or not (reasoning or calls):
        items.append(_message(content or "", f"msg_{name}", status))
    return items + [_call(call, f"fc_{name}{index}", status, names) for index, call in enumerate(calls)]


def _message(text: str, item_id: str, status: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": [part]}


def _reasoning(text: str, item_id: str, with_sealed: bool) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}]
    copy = {"encrypted_content": sealed(text)} if with_sealed else {}
    return {"id": item_id, "type": "reasoning", "summary": [], "content": content, **copy}


def _call(call: Mapping[str, Any], item_id: str, status: str, names: Names) -> dict[str, Any]:
    function = call.get("function") or {}
    name = function.get("name") or ""
    namespace, own = names.get(name, ("", name))
    return {
        "id": item_id,
        "type": "function_call",
        "call_id": call.get("id") or item_id,
        "name": own,
        **({"namespace": namespace} if namespace else {}),
        "arguments": function.get("arguments") or "",
        "status": status,
    }


def _usage(result: TurnResult) -> dict[str, Any]:
    usage = result.reply.get("usage") or {}
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": result.generation.cached_tokens},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }


def _echoed(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, with the defaults that clients expect."""
    defaults: dict[str, Any] = {
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "user": None,
    }
    return {name: default if asked.get(name) is None else asked[name] for name, default in defaults.items()}
