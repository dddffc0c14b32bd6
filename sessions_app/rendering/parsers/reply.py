"""From sampled ids to an assistant message, for engines that return ids only.

Text up to the first stop token, reasoning split off, then tool calls. Invariants: nothing that a model can
produce raises; a call that breaks the grammar makes the whole turn plain text and marks it, so no sampled
word is lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from sessions_app.rendering.protocol import Ids, ParsedReply, Tool

Decode = Callable[[Ids], str]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One well-formed call."""

    name: str
    arguments: str
    """JSON text of an object."""


class MalformedCalls(Exception):
    """The text has the marks of tool calls and breaks their grammar."""


class ToolParser(Protocol):
    """One grammar of tool calls."""

    def extract(self, text: str, tools: Sequence[Tool] | None) -> tuple[str, list[ToolCall]]:
        """The text beside the calls, and the calls in order. Raises MalformedCalls."""
        ...


class ReasoningParser(Protocol):
    """One grammar of reasoning."""

    def split(self, text: str, *, opened: bool) -> tuple[str | None, str]:
        """Reasoning (None = none) and the rest. `opened`: the generation prompt already opened the
        reasoning."""
        ...


def new_call_id() -> str:
    """An id no other call has."""
    return f"call_{uuid4().hex[:24]}"


@dataclass(frozen=True, slots=True)
class ReplyParser:
    """A reasoning grammar and a tool-call grammar, applied in that order."""

    reasoning: ReasoningParser
    tools: ToolParser
    call_id: Callable[[], str] = new_call_id

    def parse(
        self,
        completion: Ids,
        tools: Sequence[Tool] | None,
        stop_token_ids: frozenset[int],
        decode: Decode,
        *,
        opened: bool = False,
    ) -> ParsedReply:
        """The message that the ids spell."""
        text = decode(_before_stop(completion, stop_token_ids))
        reasoning, rest = self.reasoning.split(text, opened=opened)
        try:
            content, calls = self.tools.extract(rest, tools)
        except (MalformedCalls, RecursionError):
            return ParsedReply({"role": "assistant", "content": text}, ill_formed=True)
        return ParsedReply(self._message(content, reasoning, calls), ill_formed=False)

    def _message(self, content: str, reasoning: str | None, calls: list[ToolCall]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if reasoning is not None:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [self._as_json(call) for call in calls]
        return message

    def _as_json(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": self.call_id(), "type": "function", "function": function}


def _before_stop(completion: Ids, stop_token_ids: frozenset[int]) -> Ids:
    for index, number in enumerate(completion.tolist()):
        if number in stop_token_ids:
            return completion[:index]
    return completion
