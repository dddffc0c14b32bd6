"""Histories as agents really spell them, and where the reference would attach them.

The oracle of test_rich_histories: the searches of the reference's sections 4.2 and 5.2 word for word, over
plain lists, with the matchers' predicates alone; no keys, no database.
"""

import copy
import json
import random
from dataclasses import dataclass, field
from typing import Any

from sessions_app.history.matchers.base import MessageMatcher

Message = dict[str, Any]

_ARGUMENTS: list[Any] = [
    '{"a":1,"b":[2]}', '{"a":1.0}', '{"a":NaN}', '{"a":1,"a":2}', "{}", "", "{broken", None,
    {"a": 1}, {"a": True},
]  # fmt: skip
_CONTENTS = ["", "a", "b", " a", "a ", "é", "<tool_call>", "q"]


def _call(chance: random.Random) -> dict[str, Any]:
    function = {"name": chance.choice("fg"), "arguments": copy.deepcopy(chance.choice(_ARGUMENTS))}
    index = {"index": chance.randrange(2)} if chance.random() < 0.3 else {}
    return {"id": chance.choice(["c1", "c1", "c2"]), "type": "function", "function": function, **index}


def reply(chance: random.Random) -> Message:
    """What an engine says: text, calls (parallel ones, malformed ones), reasoning; rarely an odd role."""
    message: Message = {"role": "assistant", "content": chance.choice(_CONTENTS)}
    if chance.random() < 0.5:
        message["tool_calls"] = [_call(chance) for _ in range(chance.randrange(3))]
    if chance.random() < 0.3:
        message["reasoning_content"] = chance.choice(["", "r", None])
    if chance.random() < 0.05:
        message["role"] = "user"
    return message


def new_message(chance: random.Random) -> Message:
    """What an agent adds."""
    role = chance.choice(["user", "user", "user", "tool", "system", "assistant"])
    if role == "assistant":
        return {**reply(chance), "role": role, "content": chance.choice([*_CONTENTS, None])}
    named = {"tool_call_id": chance.choice(["c1", "c2"])} if role == "tool" else {}
    return {"role": role, "content": chance.choice(_CONTENTS), **named}


def respelled(chance: random.Random, message: Message) -> Message:
    """A stored message in other words: the same to all matchers, to some, or to none."""
    message = copy.deepcopy(message)
    calls = message.get("tool_calls") or []
    match chance.randrange(11):
        case 0:
            message["content"] = message.get("content") or chance.choice([None, "", []])
        case 1:
            message.pop("reasoning_content", None)
        case 2:
            for call in calls:
                call["function"]["arguments"] = _other_arguments(chance, call["function"]["arguments"])
        case 3:
            for index, call in enumerate(calls):
                call["index"] = index
        case 4:
            message["tool_calls"] = calls[::-1] or chance.choice([None, [], ""])
        case 5:
            message |= {"name": "n", "unheard_of": [1]}
        case 6 if calls:
            calls[0]["id"] = "other"
        case 7:
            message["content"] = chance.choice(_CONTENTS)
        case 8 if isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    return message


def _other_arguments(chance: random.Random, arguments: Any) -> Any:
    if not arguments:
        return chance.choice(["", "{}", " {} ", None, {}])
    if not isinstance(arguments, str):
        return json.dumps(arguments)
    try:
        return json.dumps(json.loads(arguments), indent=1)
    except ValueError:
        return arguments + chance.choice(["", " "])


@dataclass
class Node:
    """A committed turn."""

    parent: int | None
    delta: list[Message]
    tokens: list[int]


@dataclass
class Reference:
    """A session as the reference keeps it."""

    policy: str
    matcher: MessageMatcher
    nodes: list[Node] = field(default_factory=list)

    @property
    def active(self) -> int | None:
        """The last node committed."""
        return len(self.nodes) - 1 if self.nodes else None

    def path(self, seq: int | None) -> list[int]:
        """Nodes from the root to one."""
        found: list[int] = []
        while seq is not None:
            found.append(seq)
            seq = self.nodes[seq].parent
        return found[::-1]

    def messages(self, seq: int | None) -> list[Message]:
        """The history of a node, stored spelling."""
        return [message for at in self.path(seq) for message in self.nodes[at].delta]

    def attach(self, request: list[Message]) -> int | str | None:
        """The node a request continues; None = a new root; a text = why it is refused."""
        return self._rollback(request) if self.policy == "rollback" else self._deepest(request)

    def _deepest(self, request: list[Message]) -> int | None:
        reached: dict[int | None, int] = {None: 0}
        for seq, node in enumerate(self.nodes):
            start = reached.get(node.parent)
            end = None if start is None else start + len(node.delta)
            pairs = zip(node.delta, request[start:end], strict=False)
            if end is not None and end <= len(request) and all(self.matcher.matches(*pair) for pair in pairs):
                reached[seq] = end
        return max(reached, key=lambda seq: (reached[seq], -1 if seq is None else seq))

    def _rollback(self, request: list[Message]) -> int | str | None:
        stored, path, matched = self.messages(self.active), self.path(self.active), 0
        while matched < min(len(stored), len(request)) and self.matcher.matches(
            stored[matched], request[matched]
        ):
            matched += 1
        if matched >= len(stored):
            return self.active
        kept = [seq for seq in path if len(self.messages(seq)) <= matched]
        if len(path) - len(kept) > 1:
            return (
                f"rollback failed: discard_count={len(path) - len(kept)} exceeds "
                f"max_assistant_rollback_steps=1 (stored has {len(stored)} messages, "
                f"request has {len(request)} messages)"
            )
        return kept[-1] if kept else None
