"""The small conversations that a renderer is checked on."""

from dataclasses import dataclass
from typing import Any

from sessions_app.rendering.protocol import Message, Tool

USER: Message = {"role": "user", "content": "What is in the folder?"}
SYSTEM: Message = {"role": "system", "content": "You are helpful."}
NEXT: Message = {"role": "user", "content": "And now?"}
TEXT: Message = {"role": "assistant", "content": "Nothing much."}
WHY = "The folder was listed."
TOOL: Tool = {
    "type": "function",
    "function": {
        "name": "list_files",
        "description": "Lists a folder.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


@dataclass(frozen=True, slots=True)
class Case:
    """A generated turn and what follows it."""

    name: str
    turn: Message
    new: tuple[Message, ...] = ()
    tools: list[Tool] | None = None
    stop_served: bool = True
    """False: the engine left the stop token out, or the turn was cut."""
    printed: tuple[str, ...] = ()
    """What a template that knows this kind of turn prints; one that does not has nothing to check."""
    essential: bool = True
    """Whether sessions shatter where this does not hold; else it is worth a warning."""
    history: tuple[Message, ...] = (USER,)
    """What stands before the turn."""


def calls(*paths: str, **fields: Any) -> Message:
    """A turn that calls the tool once for each path."""
    made = [
        {
            "id": f"call{index:05d}",
            "type": "function",
            "function": {"name": "list_files", "arguments": f'{{"path": "{path}"}}'},
        }
        for index, path in enumerate(paths)
    ]
    return {"role": "assistant", "content": "", "tool_calls": made, **fields}


def with_model_ids(turn: Message) -> Message:
    """The same calls under ids in the form of models that spell the function's name there."""
    made = [
        {**call, "id": f"functions.{call['function']['name']}:{index}"}
        for index, call in enumerate(turn["tool_calls"])
    ]
    return {**turn, "tool_calls": made}


def results(count: int) -> tuple[Message, ...]:
    """Answers to that many calls."""
    return tuple(
        {
            "role": "tool",
            "content": f"result {index}",
            "tool_call_id": f"call{index:05d}",
            "name": "list_files",
        }
        for index in range(count)
    )


REASONED: Message = {**TEXT, "reasoning_content": WHY}
ONE, TWO = calls("/a"), calls("/a", "/b")

SEAMS = (
    Case("text, then user", TEXT, (NEXT,)),
    Case("text, then user, with tools", TEXT, (NEXT,), [TOOL]),
    Case("text, then user, late in a session", TEXT, (NEXT,), history=(USER, TEXT, NEXT, TEXT, NEXT)),
    Case("text without stop token, then user", TEXT, (NEXT,), stop_served=False),
    Case("call, then result", ONE, results(1), [TOOL], printed=("/a",)),
    Case("call without stop token, then result", ONE, results(1), [TOOL], stop_served=False, printed=("/a",)),
    Case("call, then result and user", ONE, (*results(1), NEXT), [TOOL], printed=("/a",), essential=False),
    Case("parallel calls, then results", TWO, results(2), [TOOL], printed=("/a", "/b")),
    Case("reasoning, then user", REASONED, (NEXT,), printed=(WHY,), essential=False),
    Case("reasoning and call, then result", calls("/a", reasoning_content=WHY), results(1), [TOOL],
         printed=(WHY, "/a"), essential=False),
    Case("text, then nothing new", TEXT, essential=False),
)  # fmt: skip

TURNS = (
    Case("text", TEXT),
    Case("reasoning and text", REASONED, printed=(WHY,)),
    Case("call", ONE, tools=[TOOL], printed=("/a",)),
    Case("parallel calls", TWO, tools=[TOOL], printed=("/a", "/b")),
)
