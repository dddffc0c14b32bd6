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
    id: str | None = None
    """The id the model gave it, in the formats that carry one."""

    def __post_init__(self) -> None:
        """Raises MalformedCalls for a name that is no text: half a surrogate pair, escaped."""
        try:
            self.name.encode()
        except UnicodeEncodeError:
            raise MalformedCalls("the name of a tool call is no text") from None


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
    ends: frozenset[int] = frozenset()
    """Ids that end a turn's text by the grammar itself, whatever the template says."""

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
        text = decode(before_stop(completion, stop_token_ids | self.ends))
        reasoning, rest = self.reasoning.split(text, opened=opened)
        try:
            content, calls = self.tools.extract(rest, tools)
        except (MalformedCalls, RecursionError):
            return ill_formed(text)
        return well_formed(content, reasoning, calls, self.call_id)


def well_formed(
    content: str, reasoning: str | None, calls: Sequence[ToolCall], call_id: Callable[[], str] = new_call_id
) -> ParsedReply:
    """The assistant message of these parts."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id or call_id(),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    return ParsedReply(message, ill_formed=False)


def ill_formed(text: str) -> ParsedReply:
    """A turn that broke the grammar: all its text, no calls, no reasoning."""
    return ParsedReply({"role": "assistant", "content": text}, ill_formed=True)


def before_stop(completion: Ids, stop_token_ids: frozenset[int]) -> Ids:
    """The ids up to the first stop token."""
    for index, number in enumerate(completion.tolist()):
        if number in stop_token_ids:
            return completion[:index]
    return completion
