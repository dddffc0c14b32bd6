"""An Anthropic request as a ChatRequest: messages, tools and sampling in OpenAI's words."""

from collections.abc import Iterator, Mapping
from typing import Any

from sessions_app.errors import BadRequest, InvalidArgument, InvalidSampling, InvalidTools
from sessions_app.json_text import loads
from sessions_app.protocols.anthropic.messages import canonical_messages
from sessions_app.protocols.anthropic.replying import content_blocks
from sessions_app.protocols.base import Incoming
from sessions_app.protocols.canonical import CanonicalTexts, OwnSpelling, Sidecars
from sessions_app.protocols.openai_chat import check_refused_fields, read_template_kwargs
from sessions_app.protocols.sampling import check_sampling
from sessions_app.store.values import PathMessage, SessionSettings
from sessions_app.turns.values import ChatRequest

_SAMPLING = (
    "model", "max_tokens", "temperature", "top_p", "top_k",
    "min_p", "seed", "stop_token_ids", "repetition_penalty", "presence_penalty", "frequency_penalty",
    "logit_bias", "min_tokens", "ignore_eos", "chat_template_kwargs", "lora_path",
)  # fmt: skip
"""Fields that mean the same to engines: Anthropic's own, and those that servers of open models add."""
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
_TOOL_FIELDS = ("name", "description", "input_schema")
_ELSEWHERE = ("web_search", "web_fetch", "code_execution", "tool_search", "mcp_toolset")
"""How types of tools begin that the service runs itself: they are not offered, and stay in the record."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def read_request(incoming: Incoming) -> ChatRequest:
    """The request of a parsed body. Raises the BadRequest of the first thing that is wrong."""
    value = read_object(incoming.value)
    check_refused_fields(value)
    check_sampling(value)
    said = canonical_messages(value, incoming.arrival.body, apart=blocks_apart(incoming.settings))
    messages = [each.message for each in said]
    tools = read_tools(value)
    return ChatRequest(
        arrival=incoming.arrival,
        body=_chat_body(value, messages, tools),
        messages=messages,
        texts=CanonicalTexts(messages),
        tools=tools,
        template_kwargs=read_template_kwargs(value),
        stream=incoming.wants_stream,
        sidecars=Sidecars(said),
        own_params=_own_params(value),
        own=OwnSpelling("messages", said, _told, _without_markers),
    )


def _told(reply: PathMessage) -> list[list[Any]]:
    return [[{"role": "assistant", "content": content_blocks(loads(reply.body.encode()))}]]


def _without_markers(value: Any) -> Any:
    """A message without its cache markers, which move; where they stand is told in the parameters."""
    name = "content" if "content" in value else "system"
    content = value.get(name)
    if not isinstance(content, list) or not any("cache_control" in block for block in content):
        return value
    return {**value, name: [_beside(block, ("cache_control",)) for block in content]}


def _own_params(value: Mapping[str, Any]) -> dict[str, Any]:
    """Everything but the conversation: of tools what OpenAI's form does not hold, of messages where cache
    markers stand in this request."""
    kept = {name: item for name, item in value.items() if name not in ("messages", "system", "tools")}
    tools = [
        tool if _runs_elsewhere(tool) else _beside(tool, _TOOL_FIELDS) for tool in value.get("tools") or []
    ]
    if any(tools):
        kept["tools"] = tools
    markers = list(_cache_markers(value))
    if markers:
        kept["cache_markers"] = markers
    return kept


def _cache_markers(value: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Message (null: the system prompt), block and marker of each marked block."""
    said = [(at, each["content"]) for at, each in enumerate(value["messages"])]
    for at, content in [(None, value.get("system")), *said]:
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if "cache_control" in block:
                yield [at, index, block["cache_control"]]


def _beside(tool: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    return {name: item for name, item in tool.items() if name not in known}


def blocks_apart(settings: SessionSettings) -> bool:
    """Whether each block of a user is a message of its own: where the reference gateway's forms bind."""
    return settings.history_policy == "linear" or not settings.healing


def read_object(value: Any) -> Mapping[str, Any]:
    """The body as an object with at least one message."""
    if not isinstance(value, dict):
        raise BadRequest("the body must be a JSON object")
    return value


def read_tools(value: Mapping[str, Any]) -> list[Any] | None:
    """`tools` as OpenAI's function definitions; None for an empty or missing list."""
    tools = value.get("tools")
    if not tools:
        return None
    if not isinstance(tools, list):
        raise InvalidTools("tools must be a list of objects")
    offered = [
        _tool(tool, f"tools[{index}]") for index, tool in enumerate(tools) if not _runs_elsewhere(tool)
    ]
    return offered or None


def _runs_elsewhere(tool: Any) -> bool:
    kind = tool.get("type") if isinstance(tool, dict) else None
    return isinstance(kind, str) and kind.startswith(_ELSEWHERE)


def _tool(tool: Any, where: str) -> dict[str, Any]:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise InvalidTools(f"{where} must be an object with a name")
    parameters = tool.get("input_schema") or tool.get("parameters") or _NO_PARAMETERS
    if not isinstance(parameters, dict):
        raise InvalidTools(f"{where}.input_schema must be an object")
    described = {"name": tool["name"], "description": tool.get("description") or "", "parameters": parameters}
    return {"type": "function", "function": described}


def _chat_body(
    value: Mapping[str, Any], messages: list[dict[str, Any]], tools: list[Any] | None
) -> dict[str, Any]:
    body = {name: value[name] for name in _SAMPLING if value.get(name) is not None}
    stop = value.get("stop_sequences")
    if stop is not None:
        if not isinstance(stop, list) or not all(isinstance(each, str) for each in stop):
            raise InvalidSampling("stop_sequences must be a list of texts")
        if stop:
            body["stop"] = stop
    if tools is not None:
        body["tools"] = tools
        body |= _tool_choice(value.get("tool_choice"))
    return {"messages": messages, **body, **_response_format(value.get("output_config"))}


def _response_format(output: Any) -> dict[str, Any]:
    """Structured output, in OpenAI's words."""
    wanted = output.get("format") if isinstance(output, dict) else None
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return {}
    if not isinstance(wanted.get("schema"), dict):
        raise InvalidArgument("output_config.format.schema must be an object")
    schema = {"name": "output", "schema": wanted["schema"]}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _tool_choice(choice: Any) -> dict[str, Any]:
    if choice is None:
        return {}
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "tool":
        chosen: Any = {"type": "function", "function": {"name": choice.get("name")}}
    elif isinstance(kind, str) and kind in _CHOICES:
        chosen = _CHOICES[kind]
    else:
        raise InvalidTools("tool_choice.type must be one of auto, any, tool, none")
    parallel = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
    return {"tool_choice": chosen, **parallel}
