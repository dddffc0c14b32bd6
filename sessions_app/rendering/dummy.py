"""Dummy turns that stand for real ones in probes: short, of the same kind, and marked with a sentinel.

Invariant: a dummy turn has as many calls as the turn it stands for, with the same names and ids, so that tool
results appended to it find their call.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_app.rendering.protocol import Message, Tool

SENTINEL = "Xq7tito4Zprobe9Kend"
"""Marks where what a model generated ends. No white space, no markup: templates print it as it is."""
USER_SENTINEL = "Xq7tito4Zuser9Kend"

OPENINGS: tuple[tuple[Message, ...], ...] = (
    ({"role": "user", "content": USER_SENTINEL},),
    ({"role": "system", "content": "dummy system"}, {"role": "user", "content": USER_SENTINEL}),
)
"""Histories in front of a dummy turn; the first that a template takes is used."""

TOOL: Tool = {
    "type": "function",
    "function": {"name": "probe", "description": "probe", "parameters": {"type": "object", "properties": {}}},
}
TEXT_TURN: Message = {"role": "assistant", "content": SENTINEL}


def call_turn(names_and_ids: Sequence[tuple[str, Any]]) -> Message:
    """A turn with these calls; the last one's arguments end with the sentinel."""
    last = len(names_and_ids) - 1
    calls = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": {"probe": SENTINEL if index == last else "x"}},
        }
        for index, (name, call_id) in enumerate(names_and_ids)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


ONE_CALL = call_turn([("probe", "call00001")])


def standing_for(last_message: Message) -> Message:
    """The dummy of a generated turn."""
    calls = calls_of(last_message)
    return call_turn(calls) if calls else TEXT_TURN


def results_of(turn: Message) -> list[Message]:
    """A tool's answer to every call of a turn."""
    return [
        {"role": "tool", "content": "dummy result", "tool_call_id": call_id, "name": name}
        for name, call_id in calls_of(turn)
    ]


def calls_of(message: Message) -> list[tuple[str, Any]]:
    """Names and ids of a message's tool calls; what is no call is left out."""
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            name = function.get("name")
            found.append((name if isinstance(name, str) else "tool", call.get("id")))
    return found
