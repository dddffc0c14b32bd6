"""An in-memory forest for the properties: paths as plain lists, searched by brute force and by keys."""

from dataclasses import dataclass

from sessions_app.history.chain import prefix_keys
from sessions_app.history.walk import PathNode


@dataclass(frozen=True)
class Found:
    seq: int | None
    matched: int


class ForestModel:
    """Nodes with their full paths, and each path's chained key as a store would keep it."""

    def __init__(self, matcher):
        self.matcher = matcher
        self.nodes = []
        self.paths = []
        self.prefix_keys = []

    def add(self, parent, delta):
        path = (self.paths[parent] if parent is not None else []) + list(delta)
        self.nodes.append(PathNode(len(self.nodes), parent, list(delta)))
        self.paths.append(path)
        self.prefix_keys.append(prefix_keys(self.matcher, path)[-1])

    def by_brute_force(self, request):
        """Every path against the request, message by message; most messages, then the highest seq."""
        matching = [
            (len(path), seq)
            for seq, path in enumerate(self.paths)
            if len(path) <= len(request)
            and all(self.matcher.matches(one, other) for one, other in zip(path, request, strict=False))
        ]
        return Found(*reversed(max(matching))) if matching else Found(None, 0)

    def by_key(self, request):
        """What one indexed query over the request's prefix keys finds; only for keys without a gap."""
        keys = prefix_keys(self.matcher, request)
        if None in keys or None in self.prefix_keys:
            return None
        matching = [(len(self.paths[seq]), seq) for seq, key in enumerate(self.prefix_keys) if key in keys]
        return Found(*reversed(max(matching))) if matching else Found(None, 0)
