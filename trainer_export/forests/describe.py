"""`metadata` of GET /sessions/{id}, and the drift of each leaf: what takes a renderer.

Drift renders whole paths: it is done where somebody reads it, in a thread or a worker.
"""

from dataclasses import replace

from sessions_app.packing import EMPTY_IDS
from sessions_app.rendering.protocol import Renderer
from sessions_app.store.read import TreeNode
from sessions_app.turns.describing import healer_json, tree_json
from trainer_export.forests.build import healer_of
from trainer_export.forests.drift import Drift, DriftCache, PathDrift
from trainer_export.forests.rows import NodeRow, StoredSession
from trainer_export.samples.forest import leaves_of, path_ids, path_of
from trainer_export.samples.values import JsonObject, SessionForest


def described(
    stored: StoredSession, forest: SessionForest, renderer: Renderer, cache: DriftCache | None
) -> SessionForest:
    """The forest with `metadata` and `mismatches`. No cache: drift is neither computed nor said."""
    mismatches = _mismatches(forest, PathDrift(stored, renderer, cache)) if cache else {}
    metadata = _metadata(stored, forest, renderer, mismatches)
    told = {seq: drift for seq, drift in mismatches.items() if drift is not None}
    return replace(forest, metadata=metadata, mismatches=told)


def _mismatches(forest: SessionForest, drift: PathDrift) -> dict[int, Drift | None]:
    """By the last node of the path; the active path is among them."""
    found = {
        leaf.last.seq: drift.of([turn.seq for turn in leaf.turns], leaf.accumulated_ids)
        for leaf in leaves_of(forest)
    }
    if forest.active is not None and forest.active not in found:
        path = path_of({turn.seq: turn for turn in forest.turns}, forest.active)
        found[forest.active] = drift.of([turn.seq for turn in path], path_ids(path))
    return found


def _metadata(
    stored: StoredSession, forest: SessionForest, renderer: Renderer, mismatches: dict[int, Drift | None]
) -> JsonObject:
    """Keys in the reference's order."""
    metadata: JsonObject = {}
    tokens = EMPTY_IDS
    if forest.active is not None:
        tokens = path_ids(path_of({turn.seq: turn for turn in forest.turns}, forest.active))
        drift = mismatches.get(forest.active)
        if drift is not None:
            metadata["tito_session_mismatch"] = drift
    metadata["accumulated_token_ids"] = tokens
    metadata["max_trim_tokens"] = renderer.max_trim_tokens
    if forest.policy != "rollback":
        metadata["tree"] = tree_json([_tree_node(node) for node in stored.nodes])
    if forest.policy == "linear":
        metadata["linear_healer"] = healer_json(healer_of(stored.session))
    return metadata


def _tree_node(node: NodeRow) -> TreeNode:
    return TreeNode(
        node.seq,
        node.parent_seq,
        node.finish_reason,
        node.committed_at,
        node.prompt_tokens,
        node.total_tokens,
        node.response_id,
    )
