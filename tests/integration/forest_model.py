"""What the three policies promise, as plainly as it can be said: lists in memory, no keys, no database.

The oracle of test_forest_model. It shares no code with the product: matching is a loop over messages, ids are
written out by hand for the toy template.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]

CONTENT = {"ab": [100], "hello": [101], "ok": [102], "q": [1113], "z": [1122]}
"""Texts of the toy tokenizer and their canonical ids."""
_ROLES = {"user": 5, "assistant": 6, "tool": 7}
_CLOSE, _NEWLINE, _ASK = 2, 3, [1, 6, 3]


@dataclass
class Reply:
    """What the engine is told to say."""

    text: str
    ids: list[int]
    cut: bool = False

    @property
    def message(self) -> Message:
        return {"role": "assistant", "content": self.text}


@dataclass
class Node:
    """A committed turn."""

    parent: int | None
    raw: list[Message]
    """The request as the client spelled it."""
    delta: list[Message]
    prompt: list[int]
    reply: Reply

    @property
    def tokens(self) -> list[int]:
        return [*self.prompt, *self.reply.ids]


@dataclass
class Plan:
    """What must come of a request, as things stand when it arrives."""

    error: tuple[int, str] | None = None
    parent: int | None = None
    kind: str = ""
    cause: str | None = None
    """None: not predicted here, but there must be one unless the kind is `append`."""
    prompt: list[int] = field(default_factory=list)
    glue: int = 0
    version: int = 0


@dataclass
class Forest:
    """A session under one policy."""

    policy: str
    nodes: list[Node] = field(default_factory=list)
    active: int | None = None
    healed: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Turns, prefix tokens, non-linear events."""

    def path(self, seq: int | None) -> list[int]:
        """Nodes from the root to one."""
        found: list[int] = []
        while seq is not None:
            found.append(seq)
            seq = self.nodes[seq].parent
        return found[::-1]

    def messages(self, seq: int | None) -> list[Message]:
        """The history a node stands for, reply included."""
        return [message for at in self.path(seq) for message in self.nodes[at].delta]

    def children(self, seq: int | None) -> list[int]:
        return [at for at, node in enumerate(self.nodes) if node.parent == seq]

    def plan(self, request: Sequence[Message]) -> Plan:
        """Where a request attaches now, and what the engine must be fed."""
        plan = getattr(self, f"_{self.policy}")(request)
        if plan.error:
            return plan
        if plan.parent is None and not request:
            return Plan(error=(400, "invalid_messages"))
        served = [] if plan.parent is None else self.nodes[plan.parent].tokens
        new = request[len(self.messages(plan.parent)) :]
        glue = [] if plan.parent is None else [_NEWLINE] if served[-1] == _CLOSE else [_CLOSE, _NEWLINE]
        plan.prompt = [*served, *glue, *(number for message in new for number in _rendered(message)), *_ASK]
        plan.glue, plan.version = len(glue), len(self.nodes)
        return plan

    def commit(self, plan: Plan, request: list[Message], reply: Reply) -> tuple[int | None, str, str | None]:
        """Store a reply; its seq (None: kept beside the tree), kind and cause."""
        kind, cause = plan.kind, plan.cause
        if plan.version != len(self.nodes):
            if self.policy == "rollback":
                return None, kind, cause
            if kind in ("append", "root") and self.children(plan.parent):
                kind, cause = "fork", "concurrent"
        delta = [*request[len(self.messages(plan.parent)) :], reply.message]
        if plan.parent is not None:
            self.healed[0] += 1
            self.healed[1] += len(self.nodes[plan.parent].tokens) + plan.glue
        self.healed[2] += kind == "reset"
        self.nodes.append(Node(plan.parent, list(request), delta, plan.prompt, reply))
        self.active = len(self.nodes) - 1
        return self.active, kind, cause

    def _tree(self, request: Sequence[Message]) -> Plan:
        candidates = [
            (len(self.messages(seq)), seq)
            for seq in range(len(self.nodes))
            if _begins(request, self.messages(seq))
        ]
        parent = max(candidates)[1] if candidates else None
        if parent is not None and self.nodes[parent].reply.cut:
            return Plan(error=(409, "truncated_generation"))
        if not self.nodes:
            return Plan(kind="root", cause="first_turn")
        if parent is not None and not self.children(parent):
            return Plan(parent=parent, kind="append")
        again = [at for at in self.children(parent) if _same_all(self._request(at), request)]
        return Plan(parent=parent, kind="retry", cause="retry") if again else Plan(parent=parent, kind="fork")

    def _rollback(self, request: Sequence[Message]) -> Plan:
        stored, path = self.messages(self.active), self.path(self.active)
        if not path:
            return Plan(kind="root", cause="first_turn")
        matched = 0
        while matched < min(len(stored), len(request)) and _same(stored[matched], request[matched]):
            matched += 1
        if matched == len(stored):
            return Plan(parent=self.active, kind="append")
        kept = [seq for seq in path if len(self.messages(seq)) <= matched]
        if len(path) - len(kept) > 1:
            return Plan(error=(400, "rollback_too_deep"))
        return Plan(parent=kept[-1] if kept else None, kind="rollback", cause=self._asked_before(request))

    def _linear(self, request: Sequence[Message]) -> Plan:
        if self.active is None:
            return Plan(kind="root", cause="first_turn")
        if _begins(request, self.messages(self.active)):
            return Plan(parent=self.active, kind="append")
        return Plan(kind="reset", cause=self._asked_before(request))

    def _request(self, seq: int) -> list[Message]:
        return self.messages(seq)[:-1]

    def _asked_before(self, request: Sequence[Message]) -> str | None:
        again = any(_same_all(self._request(seq), request) for seq in range(len(self.nodes)))
        return "retry" if again else None


def _rendered(message: Message) -> list[int]:
    return [1, _ROLES[message["role"]], _NEWLINE, *CONTENT[message["content"]], _CLOSE, _NEWLINE]


def _same(stored: Message, replayed: Message) -> bool:
    return (stored["role"], stored["content"]) == (replayed["role"], replayed["content"])


def _same_all(stored: Sequence[Message], replayed: Sequence[Message]) -> bool:
    return len(stored) == len(replayed) and _begins(replayed, stored)


def _begins(request: Sequence[Message], path: Sequence[Message]) -> bool:
    return len(path) <= len(request) and all(map(_same, path, request))
