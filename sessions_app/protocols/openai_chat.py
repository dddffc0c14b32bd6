"""OpenAI Chat Completions: request to ChatRequest, result to reply or to the two events of a stream.

Messages stay as the client sent them. Checked here: the shape of the body and of its messages; whether
they can be continued or rendered is the turn's business, on the reference's path their roles too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sessions_app import errors
from sessions_app.json_text import MessageTexts, dumps, exact, may_hold_non_finite, text_of
from sessions_app.protocols import sse
from sessions_app.protocols.base import Incoming
from sessions_app.protocols.errors import openai_error
from sessions_app.turns.values import Arrival, ChatRequest, Texts, TurnResult

NAME = "chat"
PATH = "/v1/chat/completions"
_NO_NAME = "default"
_DEVELOPER = "developer"
_TOLD_AS_SENT = ("length", "content_filter")


class OpenAIChat:
    """See WireProtocol."""

    name = NAME
    path = PATH
    keep_alive = sse.KEEP_ALIVE

    def read(self, incoming: Incoming) -> ChatRequest:
        """See WireProtocol."""
        request = read_request(incoming.arrival, incoming.value)
        if incoming.arrival.reference:
            return request
        if any(message["role"] == _DEVELOPER for message in request.messages):
            request = _with_known_roles(request, as_sent=incoming.settings.history_policy == "linear")
        return replace(request, stream=incoming.wants_stream)

    def reply(self, result: TurnResult, request: ChatRequest) -> bytes:
        """See WireProtocol."""
        return _written(_told(result, request), result)

    def events(self, result: TurnResult, request: ChatRequest) -> Iterator[bytes]:
        """The two events of a stream: one chunk with everything, then the end."""
        yield b"data: " + _written(chunk_of(_told(result, request)), result) + b"\n\n"
        yield b"data: [DONE]\n\n"

    def error_body(self, error: errors.TitoError) -> dict[str, Any]:
        """See WireProtocol."""
        return openai_error(error)

    def error_events(self, error: errors.TitoError) -> Iterator[bytes]:
        """See WireProtocol."""
        yield b"data: " + dumps(openai_error(error)) + b"\n\n"
        yield b"data: [DONE]\n\n"

    def session_name(self, value: Any) -> str:
        """`metadata.session_id`, then `user`."""
        return body_session_name(value)


CHAT = OpenAIChat()


def _told(result: TurnResult, request: ChatRequest) -> Mapping[str, Any]:
    """The reply with a finish reason that clients know (reference gateway 2.1): a turn with calls ends for
    them, cut behind them or not. On the reference's path it is as it came."""
    if request.arrival.reference:
        return result.reply
    first, *others = result.reply["choices"]
    sent = first.get("finish_reason")
    told = "tool_calls" if result.message.get("tool_calls") else sent if sent in _TOLD_AS_SENT else "stop"
    return {**result.reply, "choices": [{**first, "finish_reason": told}, *others]}


def _written(reply: Mapping[str, Any], result: TurnResult) -> bytes:
    """As the engine sent it, literals that are no numbers included."""
    return exact(reply) if may_hold_non_finite(result.generation.reply_text) else dumps(reply)


def _with_known_roles(request: ChatRequest, *, as_sent: bool) -> ChatRequest:
    """`developer` is fed as `system`, which templates know (reference gateway 2.1).

    `as_sent`: it is stored as it came, for a policy that compares the two as one; else the client's own
    message is the sidecar.
    """
    messages = [
        {**message, "role": "system"} if message["role"] == _DEVELOPER else message
        for message in request.messages
    ]
    known = replace(request, messages=messages, body={**request.body, "messages": messages})
    if as_sent:
        return known
    changed = {index for index, sent in enumerate(request.messages) if sent["role"] == _DEVELOPER}
    sidecars = {index: f"[{request.texts.text(index)}]" for index in sorted(changed)}
    texts = _KnownTexts(request.texts, messages, changed)
    return replace(known, texts=texts, sidecars=sidecars)


class _KnownTexts:
    """See Texts: as sent, but for the messages that had another role."""

    def __init__(self, sent: Texts, messages: list[dict[str, Any]], changed: set[int]) -> None:
        self._sent, self._messages, self._changed = sent, messages, changed

    def text(self, index: int) -> str:
        """JSON text of one message."""
        return text_of(self._messages[index]) if index in self._changed else self._sent.text(index)


def body_session_name(value: Any) -> str:
    """The session that an OpenAI body names; one name for all bodies that name none."""
    if not isinstance(value, dict):
        return _NO_NAME
    metadata = value.get("metadata")
    named = metadata.get("session_id") if isinstance(metadata, dict) else None
    candidates = (named, value.get("user"))
    return next((name for name in candidates if isinstance(name, str) and name), _NO_NAME)


def read_request(arrival: Arrival, value: Any) -> ChatRequest:
    """The request of a parsed body. Raises the BadRequest of the first thing that is wrong."""
    if not isinstance(value, dict):
        raise errors.BadRequest(f"the body must be a JSON object, got {_kind(value)}")
    body = {name: item for name, item in value.items() if name not in ("stream", "stream_options")}
    messages = read_messages(body)
    if not arrival.reference:
        _check_roles(messages)
    check_refused_fields(body)
    return ChatRequest(
        arrival=arrival,
        body=body,
        messages=messages,
        texts=MessageTexts(arrival.body, messages),
        tools=read_tools(body),
        template_kwargs=read_template_kwargs(body),
        stream=bool(value.get("stream")),
    )


def read_messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`messages` as a list of objects; it may be empty here."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise errors.InvalidMessages("messages must be a list")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise errors.InvalidMessages(f"messages[{index}] must be an object, got {_kind(message)}")
    return messages


def _check_roles(messages: list[dict[str, Any]]) -> None:
    """On the reference's path a message may lack its role: the template decides, or the check of appended
    roles.
    """
    for index, message in enumerate(messages):
        if not isinstance(message.get("role"), str) or not message["role"]:
            raise errors.InvalidMessages(f"messages[{index}] has no role")


def check_refused_fields(body: Mapping[str, Any]) -> None:
    """Fields that would be half handled if they were let through."""
    n = body.get("n")
    if n is not None and (isinstance(n, bool) or n != 1):
        raise errors.NNotSupported("n must be 1: one request is one generation")
    if body.get("input_ids") is not None:
        raise errors.InputIdsNotAllowed("input_ids is not allowed: the server decides what the engine is fed")


def read_tools(body: Mapping[str, Any]) -> list[Any] | None:
    """`tools`, None for an empty or missing list."""
    tools = body.get("tools")
    if not tools:
        return None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise errors.InvalidTools("tools must be a list of objects")
    return tools


def read_template_kwargs(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """`chat_template_kwargs`; null means no override."""
    kwargs = body.get("chat_template_kwargs")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise errors.InvalidTemplateKwargs("chat_template_kwargs must be an object")
    return kwargs


def chunk_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A whole reply as one chunk (reference session server 3.7)."""
    choice = reply["choices"][0]
    chunk: dict[str, Any] = {
        "id": reply.get("id"),
        "object": "chat.completion.chunk",
        "created": reply.get("created"),
        "model": reply.get("model"),
        "choices": [
            {"index": 0, "delta": _delta(choice["message"]), "finish_reason": choice.get("finish_reason")}
        ],
    }
    if reply.get("usage") is not None:
        chunk["usage"] = reply["usage"]
    return chunk


def _delta(message: Mapping[str, Any]) -> dict[str, Any]:
    delta: dict[str, Any] = {"role": message.get("role", "assistant"), "content": message.get("content")}
    if message.get("reasoning_content") is not None:
        delta["reasoning_content"] = message["reasoning_content"]
    if message.get("tool_calls"):
        delta["tool_calls"] = [_indexed(call, at) for at, call in enumerate(message["tool_calls"])]
    return delta


def _indexed(call: Any, at: int) -> Any:
    return {**call, "index": at} if isinstance(call, dict) else call


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
