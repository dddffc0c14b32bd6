"""A Responses request as a ChatRequest. `previous_response_id` stands for the stored messages of its node."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from sessions_app.errors import BadRequest, InvalidArgument, InvalidTools
from sessions_app.json_text import loads, text_of
from sessions_app.protocols.base import Incoming
from sessions_app.protocols.canonical import Canonical, Own, OwnSpelling, Sidecars
from sessions_app.protocols.openai_chat import check_refused_fields, read_template_kwargs
from sessions_app.protocols.responses.identity import id_of_node
from sessions_app.protocols.responses.items import canonical_messages
from sessions_app.protocols.responses.replying import items_of
from sessions_app.protocols.responses.tools import Names, joined_name, kept_beside, names_of, read_tools
from sessions_app.protocols.sampling import check_sampling
from sessions_app.store.values import PathMessage
from sessions_app.turns.values import ChatRequest

_SAMPLING = (
    "model", "temperature", "top_p", "user", "parallel_tool_calls",
    "top_k", "min_p", "seed", "stop", "stop_token_ids", "repetition_penalty", "presence_penalty",
    "frequency_penalty", "logit_bias", "min_tokens", "ignore_eos", "chat_template_kwargs", "lora_path",
)  # fmt: skip
_KINDS: dict[str, type] = {"include": list, "text": dict, "reasoning": dict, "metadata": dict, "model": str}
_SAID: dict[Any, str] = {list: "a list", dict: "an object", str: "text"}
_UNSUPPORTED = {
    "conversation": "send previous_response_id or the items themselves",
    "prompt": "send the input itself",
    "background": "the reply is sent when it is there",
}


class _Texts:
    """Stored messages as they are stored, new ones in the canonical spelling."""

    def __init__(self, stored: list[str], messages: list[dict[str, Any]]) -> None:
        self._stored = stored
        self._messages = messages

    def text(self, index: int) -> str:
        """JSON text of one message."""
        return self._stored[index] if index < len(self._stored) else text_of(self._messages[index])


def read_request(incoming: Incoming) -> ChatRequest:
    """The request of a parsed body. Raises the BadRequest of the first thing that is wrong."""
    value = incoming.value
    if not isinstance(value, dict):
        raise BadRequest("the body must be a JSON object")
    check_refused_fields(value)
    check_sampling(value)
    _check_parameters(value)
    begun = _begun(value, incoming.previous)
    said = [*begun, *canonical_messages(value.get("input", []), incoming.arrival.body)]
    messages = [each.message for each in said]
    tools = read_tools(value)
    unchanged = _unchanged(incoming.previous, messages)
    told = partial(_told, incoming.settings.id, names_of(value.get("tools")))
    return ChatRequest(
        arrival=incoming.arrival,
        body=_chat_body(value, messages, tools),
        messages=messages,
        texts=_Texts(unchanged, messages),
        tools=tools,
        template_kwargs=read_template_kwargs(value),
        stream=incoming.wants_stream,
        sidecars=Sidecars(said),
        own_params=_own_params(value),
        own=OwnSpelling("responses", said, told),
    )


def _check_parameters(value: Mapping[str, Any]) -> None:
    """What would make no response, or be half handled."""
    for name, instead in _UNSUPPORTED.items():
        if value.get(name):
            raise InvalidArgument(f"{name} is not supported: {instead}")
    for name, kind in _KINDS.items():
        if value.get(name) is not None and not isinstance(value[name], kind):
            raise InvalidArgument(f"{name} must be {_SAID[kind]}")


def _told(session_id: UUID, names: Names, reply: PathMessage) -> list[list[Any]]:
    message, response = loads(reply.body.encode()), id_of_node(session_id, reply.node_seq)
    return [items_of(message, response, "completed", names, with_sealed=sealed) for sealed in (False, True)]


def _own_params(value: Mapping[str, Any]) -> dict[str, Any]:
    """Everything but the conversation; of tools those that the model is not offered, and what chat's form
    of the others does not hold, each at its place.
    """
    kept = {name: item for name, item in value.items() if name not in ("input", "instructions", "tools")}
    tools = kept_beside(value.get("tools") or [])
    return {**kept, "tools": tools} if any(tools) else kept


def _begun(value: Mapping[str, Any], previous: Any) -> list[Canonical]:
    """What stands before the input: instructions, and the stored messages that are continued.

    Instructions of an earlier response stay in force until others are given, so that its tokens can be
    continued.
    """
    stored = [Canonical(json.loads(text)) for text in previous]
    instructions = value.get("instructions")
    if instructions is None:
        return stored
    if not isinstance(instructions, str):
        raise BadRequest("instructions must be text")
    said = {"instructions": instructions}
    own = Own(said, partial(text_of, said))
    head = Canonical({"role": "system", "content": instructions}, (own,))
    if stored and stored[0].message.get("role") == "system":
        return stored if stored[0].message.get("content") == instructions else [head, *stored[1:]]
    return [head, *stored]


def _unchanged(previous: Any, messages: list[dict[str, Any]]) -> list[str]:
    """The stored texts, if new instructions did not move or change the messages."""
    same = len(previous) <= len(messages) and bool(previous) and json.loads(previous[0]) == messages[0]
    return list(previous) if same else []


def _chat_body(
    value: Mapping[str, Any], messages: list[dict[str, Any]], tools: list[Any] | None
) -> dict[str, Any]:
    body = {name: value[name] for name in _SAMPLING if value.get(name) is not None}
    if value.get("max_output_tokens") is not None:
        body["max_completion_tokens"] = value["max_output_tokens"]
    if tools is not None:
        body["tools"] = tools
        body |= _tool_choice(value.get("tool_choice"))
    text, reasoning = value.get("text"), value.get("reasoning")
    if isinstance(text, dict) and isinstance(text.get("format"), dict):
        body |= _response_format(text["format"])
    if isinstance(reasoning, dict) and reasoning.get("effort"):
        body["reasoning_effort"] = reasoning["effort"]
    return {"messages": messages, **body}


def _tool_choice(choice: Any) -> dict[str, Any]:
    """A choice among tools that run elsewhere leaves the model free."""
    if choice is None:
        return {}
    if isinstance(choice, str):
        return {"tool_choice": choice}
    if not isinstance(choice, dict):
        raise InvalidTools("tool_choice must be text or an object")
    if choice.get("type") == "function":
        name = choice.get("name")
        name = joined_name(choice.get("namespace"), name) if isinstance(name, str) else name
        return {"tool_choice": {"type": "function", "function": {"name": name}}}
    mode = choice.get("mode") if choice.get("type") == "allowed_tools" else None
    return {"tool_choice": mode} if isinstance(mode, str) else {}


def _response_format(wanted: dict[str, Any]) -> dict[str, Any]:
    if wanted.get("type") == "json_schema":
        schema = {name: item for name, item in wanted.items() if name != "type"}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {"response_format": wanted} if wanted.get("type") == "json_object" else {}
