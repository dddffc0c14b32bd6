"""A forest in memory that grows request by request: what serving keeps in the database, as far as attaching
needs it.

Pure. Invariant: `deepest` finds the node that serving's lookup by chained keys, or its walk, would find.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_app.history.chain import EMPTY, chain
from sessions_app.history.harness.matcher import HarnessMatcher
from sessions_app.history.matchers.base import MessageMatcher
from sessions_app.history.passing import counted, steady
from sessions_app.history.policies import Checkpoint
from sessions_app.history.walk import PathNode, behind, match_length, walk
from sessions_app.insight.what_if.asked import Asked
from sessions_app.turns.positioning import NEVER_A_REPLY

Keys = Sequence[bytes | None]
"""Chained key of each prefix of a request."""


@dataclass(frozen=True, slots=True)
class Grown:
    """One node."""

    asked: Asked
    parent: int | None
    depth: int
    key: bytes | None
    request_key: bytes | None
    path: Sequence[Mapping[str, Any]]
    """Stored messages of the whole path, reply last."""
    start: int
    """Messages of the parent's path."""

    @property
    def checkpoint(self) -> Checkpoint:
        """As a policy sees it."""
        return Checkpoint(self.asked.seq, self.depth, len(self.path))

    @property
    def delta(self) -> Sequence[Mapping[str, Any]]:
        """What it added to its parent's path."""
        return self.path[self.start :]


class GrowingForest:
    """Nodes by seq, in commit order."""

    def __init__(self, matcher: MessageMatcher) -> None:
        self.matcher = matcher
        self.nodes: dict[int, Grown] = {}
        self.active: int | None = None
        self.passthrough = False
        self.children: defaultdict[int | None, list[int]] = defaultdict(list)
        self._ends: defaultdict[bytes, list[int]] = defaultdict(list)
        self._asked: defaultdict[bytes, list[int]] = defaultdict(list)
        self._keys: dict[int, bytes | None] = {}
        self._keyless = False

    @property
    def leaves(self) -> int:
        """Nodes without children."""
        return sum(seq not in self.children for seq in self.nodes)

    def keys_of(self, messages: Sequence[Mapping[str, Any]]) -> list[bytes | None]:
        """The keys of a request's prefixes; None from the first message without a key."""
        keys: list[bytes | None] = []
        path: bytes | None = EMPTY
        for message in messages:
            key = None if path is None else self._key(message)
            path = None if path is None or key is None else chain(path, key)
            keys.append(path)
        return keys

    def _key(self, message: Mapping[str, Any]) -> bytes | None:
        """By identity of the object: requests share the messages they repeat, and keep them alive."""
        if id(message) not in self._keys:
            self._keys[id(message)] = self.matcher.key(message)
        return self._keys[id(message)]

    def add(self, asked: Asked, parent: int | None, keys: Keys) -> None:
        """The node that an answered request becomes."""
        above = self.nodes[parent] if parent is not None else None
        start = len(above.path) if above else 0
        new = asked.messages[self.reached(above, asked.messages, keys) if above else 0 :]
        request_key = keys[-1] if keys else None
        reply_key = None if asked.reply.get("role") in NEVER_A_REPLY else self._key(asked.reply)
        key = None if request_key is None or reply_key is None else chain(request_key, reply_key)
        path = [*(above.path if above else ()), *new, asked.reply]
        self.nodes[asked.seq] = Grown(
            asked, parent, above.depth + 1 if above else 0, key, request_key, path, start
        )
        self.children[parent].append(asked.seq)
        self.active = asked.seq
        self._keyless = self._keyless or key is None
        if key is not None:
            self._ends[key].append(asked.seq)
        if request_key is not None:
            self._asked[request_key].append(asked.seq)

    def deepest(
        self, messages: Sequence[Mapping[str, Any]], keys: Keys, identity: bytes | None
    ) -> Grown | None:
        """The deepest node whose whole path a request repeats; of several one that was asked for in the same
        words, else the latest. `identity`: None = any."""
        if self._keyless or (keys and keys[-1] is None):
            return self._walked(messages, identity)
        for key in reversed(keys):
            ends = [self.nodes[seq] for seq in reversed(self._ends.get(key or b"", ()))]
            fitting = [node for node in ends if identity in (None, node.asked.identity)]
            if fitting:
                return self._as_spelled(fitting, messages, keys)
        return None

    def _as_spelled(self, found: Sequence[Grown], messages: Sequence[Mapping[str, Any]], keys: Keys) -> Grown:
        """Only a harness profile makes one of nodes that say something else."""
        if len(found) == 1 or not isinstance(self.matcher, HarnessMatcher):
            return found[0]
        told = list(messages[: self.reached(found[0], messages, keys) - 1])
        return next((node for node in found if list(node.asked.messages) == told), found[0])

    def _walked(self, messages: Sequence[Mapping[str, Any]], identity: bytes | None) -> Grown | None:
        forest = [
            PathNode(seq, node.parent, node.delta)
            for seq, node in self.nodes.items()
            if identity in (None, node.asked.identity)
        ]
        found = walk(forest, messages, self.matcher)
        return self.nodes[found.seq] if found.seq is not None else None

    def matched(self, node: Grown, messages: Sequence[Mapping[str, Any]], keys: Keys) -> int:
        """Leading messages of a node's path that a request repeats; by whole checkpoints where keys tell."""
        if self._keyless or (keys and keys[-1] is None):
            stored, replayed = counted(node.path, self.matcher), counted(messages, self.matcher)
            return behind(steady(node.path, self.matcher), match_length(stored, replayed, self.matcher))
        at: Grown | None = node
        while at is not None and (at.key is None or at.key not in keys):
            at = self.nodes[at.parent] if at.parent is not None else None
        return len(at.path) if at is not None else 0

    def reached(self, node: Grown, messages: Sequence[Mapping[str, Any]], keys: Keys) -> int:
        """Messages of a request that replay the path of the node that it continues."""
        if node.key is not None and node.key in keys:
            return keys.index(node.key) + 1
        return behind(steady(messages, self.matcher), len(steady(node.path, self.matcher)))

    def path(self, seq: int | None) -> list[Grown]:
        """The nodes from a root to a node."""
        path = []
        while seq is not None:
            path.append(self.nodes[seq])
            seq = path[-1].parent
        return path[::-1]

    def newest_leaf(self, seq: int) -> Grown:
        """The leaf reached by always taking the latest child."""
        while seq in self.children:
            seq = self.children[seq][-1]
        return self.nodes[seq]

    def latest_asked(self, key: bytes | None, identity: bytes) -> Grown | None:
        """The latest node that answers the same request under the same head."""
        for seq in reversed(self._asked.get(key or b"", ())):
            if self.nodes[seq].asked.identity == identity:
                return self.nodes[seq]
        return None
