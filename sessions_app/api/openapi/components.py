"""Shapes named in the OpenAPI document. What is passed on as it came is left open."""

from typing import Any

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
COUNT: Shape = {"type": "integer", "minimum": 1, "maximum": 2147483647}
OPEN: Shape = {"type": "object", "additionalProperties": True}
NAME: Shape = {"type": "string", "minLength": 1, "maxLength": 200}
SESSION_ID: Shape = {"type": "string", "pattern": "^[0-9a-f]{32}$"}


def named(name: str) -> Shape:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def listed(shape: Shape, **limits: Any) -> Shape:
    """A list of a shape."""
    return {"type": "array", "items": shape, **limits}


def shaped(required: str = "", **properties: Shape) -> Shape:
    """An object; `required` names properties, separated by blanks. Others may be there."""
    return {
        "type": "object",
        "properties": properties,
        **({"required": required.split()} if required else {}),
    }


def one_of(*values: str) -> Shape:
    """A closed list."""
    return {"type": "string", "enum": list(values)}


_MESSAGE = shaped(
    "role",
    role={"type": "string", "minLength": 1},
    content={"oneOf": [TEXT, listed(OPEN), {"type": "null"}]},
    reasoning_content={"type": ["string", "null"]},
    tool_calls={"oneOf": [listed(OPEN), {"type": "null"}]},
    tool_call_id=TEXT,
)
_STREAM: Shape = {"type": "boolean", "description": "Server-sent events instead of one JSON body."}
_KWARGS: Shape = {"type": ["object", "null"], "description": "Template kwargs of this request."}

COMPONENTS: dict[str, Shape] = {
    "ReferenceError": shaped("error", error=TEXT),
    "PlainError": shaped("error code", error=TEXT, code=TEXT),
    "OtlpStatus": shaped("code message", code={"type": "integer"}, message=TEXT),
    "OpenAIError": shaped(
        "error",
        error=shaped(
            "message type param code",
            message=TEXT,
            type=TEXT,
            param={"type": ["string", "null"]},
            code={"type": ["string", "null"]},
        ),
    ),
    "AnthropicError": shaped(
        "type error", type=one_of("error"), error=shaped("type message", type=TEXT, message=TEXT)
    ),
    "ChatRequest": shaped(
        "messages",
        model=TEXT,
        messages=listed(_MESSAGE, minItems=1),
        tools=listed(OPEN),
        stream=_STREAM,
        max_completion_tokens=COUNT,
        max_tokens=COUNT,
        temperature={"type": "number", "minimum": 0},
        top_p={"type": "number", "minimum": 0, "maximum": 1},
        stop={"oneOf": [TEXT, listed(TEXT)]},
        chat_template_kwargs=_KWARGS,
    ),
    "ChatReply": shaped("id object choices", id=TEXT, object=TEXT, choices=listed(OPEN), usage=OPEN),
    "MessagesRequest": shaped(
        "messages",
        model=TEXT,
        max_tokens=COUNT,
        system={"oneOf": [TEXT, listed(OPEN)]},
        messages=listed(
            shaped(
                "role content",
                role=one_of("user", "assistant", "system"),
                content={"oneOf": [TEXT, listed(shaped("type", type=TEXT))]},
            ),
            minItems=1,
        ),
        tools=listed(shaped("name", name=TEXT, input_schema=OPEN)),
        stop_sequences=listed(TEXT),
        stream=_STREAM,
        temperature={"type": "number", "minimum": 0},
        chat_template_kwargs=_KWARGS,
    ),
    "MessagesReply": shaped(
        "id type role content", id=TEXT, type=TEXT, role=TEXT, content=listed(OPEN), usage=OPEN
    ),
    "TokenCount": shaped("input_tokens", input_tokens={"type": "integer", "minimum": 0}),
    "ResponsesRequest": shaped(
        "input",
        model=TEXT,
        instructions={"type": ["string", "null"]},
        input={"oneOf": [TEXT, listed(OPEN)]},
        previous_response_id={"type": ["string", "null"]},
        tools=listed(OPEN),
        max_output_tokens=COUNT,
        stream=_STREAM,
    ),
    "ResponsesReply": shaped(
        "id object status output", id=TEXT, object=TEXT, status=TEXT, output=listed(OPEN)
    ),
    "ResponseItems": shaped("object data", object=TEXT, data=listed(OPEN), has_more={"type": "boolean"}),
    "ModelList": shaped("data", object=TEXT, data=listed(shaped("id", id=TEXT))),
    "NewSession": shaped(
        profile=NAME,
        history_policy=one_of("rollback", "tree", "linear"),
        on_nonlinear=one_of("reset", "error", "passthrough"),
        on_truncated=one_of("refuse", "close", "join"),
        message_matcher=one_of("exact", "strict", "loose_tool_call", "role_content_only"),
        retry_policy=one_of("resample", "replay"),
        harness=NAME,
        rollout_id=NAME,
        attempt_id=NAME,
        group_id=NAME,
        group_size=COUNT,
        labels={"type": "object", "additionalProperties": TEXT},
        sampling=OPEN,
        healing={"type": "boolean"},
        max_context_tokens=COUNT,
        max_turns=COUNT,
        idle_timeout_s={"type": "number", "exclusiveMinimum": 0},
    ),
    "SessionCreated": shaped("session_id", session_id=SESSION_ID),
    "Session": shaped(
        "session_id records metadata", session_id=SESSION_ID, records=listed(OPEN), metadata=OPEN
    ),
    "SessionKey": shaped("session_id key", session_id=SESSION_ID, key=TEXT),
    "Health": shaped("status", status=TEXT, session_server_instance_id=TEXT),
    "Readiness": shaped(
        "ready parts draining", ready={"type": "boolean"}, parts=OPEN, draining={"type": "boolean"}
    ),
}
