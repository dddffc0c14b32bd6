"""OpenAI Responses: the protocol as the views use it.

reading    a body as a ChatRequest
items      items as canonical messages
tools      tools as chat's functions, namespaces included
identity   ids of responses
replying   a result as a Response object
events     a Response as events
stored     a Response and its items, read back
"""

from collections.abc import Iterator
from typing import Any

from sessions_app.errors import TitoError
from sessions_app.json_text import dumps, loads
from sessions_app.protocols import sse
from sessions_app.protocols.base import Incoming
from sessions_app.protocols.errors import openai_error
from sessions_app.protocols.openai_chat import body_session_name
from sessions_app.protocols.responses import events, reading, replying
from sessions_app.turns.values import ChatRequest, TurnResult


class OpenAIResponses:
    """See WireProtocol."""

    name = "responses"
    path = "/v1/responses"
    keep_alive = sse.KEEP_ALIVE

    def read(self, incoming: Incoming) -> ChatRequest:
        """See WireProtocol."""
        return reading.read_request(incoming)

    def reply(self, result: TurnResult, request: ChatRequest) -> bytes:
        """See WireProtocol."""
        return dumps(replying.response_of(result, loads(request.arrival.body)))

    def events(self, result: TurnResult, request: ChatRequest) -> Iterator[bytes]:
        """See WireProtocol."""
        return events.stream_events(replying.response_of(result, loads(request.arrival.body)))

    def error_body(self, error: TitoError) -> dict[str, Any]:
        """See WireProtocol."""
        return openai_error(error)

    def error_events(self, error: TitoError) -> Iterator[bytes]:
        """Both the event of this protocol and the `error` that clients of all OpenAI streams look for."""
        told = openai_error(error)["error"]
        fields = {"code": told["code"], "message": told["message"], "param": None, "sequence_number": 0}
        yield events.event("error", {**fields, "error": told})

    def session_name(self, value: Any) -> str:
        """See WireProtocol."""
        return body_session_name(value)


RESPONSES = OpenAIResponses()
