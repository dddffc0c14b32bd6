"""What GET and samples say about a session besides its records: tree, healer counters, drift."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sessions_app.packing import Ids
from sessions_app.rendering.protocol import Renderer
from sessions_app.store.read import Healer, TreeNode


def drift_of(
    renderer: Renderer, messages: list[Any], tools: Any, tokens: Ids, began: datetime
) -> list[dict[str, Any]]:
    """Served ids against a fresh render of the stored messages, as of the path's first request. Slow: renders
    the whole path."""
    found = renderer.mismatches(messages, tools or None, tokens, began)
    return [mismatch.as_json() for mismatch in found]


def tree_json(nodes: Sequence[TreeNode]) -> dict[str, Any]:
    """All nodes and all leaves in commit order."""
    parents = {node.seq: node.parent_seq for node in nodes}
    inner = set(parents.values())
    return {
        "nodes": [_node_json(node) for node in nodes],
        "leaves": [
            {"node_id": node.seq, "path_node_ids": _path_ids(node.seq, parents)}
            for node in nodes
            if node.seq not in inner
        ],
    }


def _node_json(node: TreeNode) -> dict[str, Any]:
    return {
        "id": node.seq,
        "parent": node.parent_seq,
        "seq": node.seq,
        "truncated": node.finish_reason == "length",
        "committed_at": epoch(node.committed_at),
        "completion_span": [node.prompt_tokens, node.total_tokens],
        "num_tokens": node.total_tokens,
        "response_id": node.response_id,
    }


def _path_ids(seq: int, parents: dict[int, int | None]) -> list[int]:
    path: list[int] = []
    at: int | None = seq
    while at is not None:
        path.append(at)
        at = parents[at]
    return path[::-1]


def healer_json(healer: Healer) -> dict[str, int]:
    """The four healer counters, zeros included."""
    return {
        "healed_turns": healer.healed_turns,
        "healed_prefix_tokens": healer.healed_prefix_tokens,
        "nonlinear": healer.nonlinear,
        "close_unresolved": healer.close_unresolved,
    }


def epoch(at: datetime) -> float:
    """Seconds since 1970."""
    return at.timestamp()
