"""Paths of a forest: from the turns of a session to its leaves. Linear in what it returns."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sessions_app.errors import SamplesFailed
from sessions_app.packing import Ids
from trainer_export.samples.values import Leaf, SessionForest, Turn


def path_ids(turns: Sequence[Turn]) -> Ids:
    """All ids of a path, int32, read-only."""
    buffer = np.empty(sum(turn.prompt_delta.size + turn.completion.size for turn in turns), dtype=np.int32)
    length = 0
    for turn in turns:
        length = _append(buffer, length - turn.trim, turn)
    held = buffer[:length]
    held.setflags(write=False)
    return held


def _append(buffer: Ids, at: int, turn: Turn) -> int:
    if at < 0:
        raise SamplesFailed(f"node {turn.seq} trims {turn.trim} ids of a path that holds {at + turn.trim}")
    fed = at + turn.prompt_delta.size
    end = fed + turn.completion.size
    buffer[at:fed] = turn.prompt_delta
    buffer[fed:end] = turn.completion
    return end


def path_of(by_seq: Mapping[int, Turn], seq: int) -> tuple[Turn, ...]:
    """The turns from a root to `seq`."""
    path: list[Turn] = []
    at: int | None = seq
    while at is not None:
        path.append(by_seq[at])
        at = path[-1].parent
    return tuple(reversed(path))


def leaves_of(forest: SessionForest) -> list[Leaf]:
    """Every leaf in commit order; under `rollback` only the end of the active path."""
    by_seq = {turn.seq: turn for turn in forest.turns}
    children = _children(forest.turns)
    if forest.policy == "rollback":
        return [] if forest.active is None else [_leaf(by_seq, children, by_seq[forest.active])]
    return [_leaf(by_seq, children, turn) for turn in forest.turns if turn.seq not in children]


def _children(turns: Iterable[Turn]) -> dict[int | None, list[Turn]]:
    children: dict[int | None, list[Turn]] = {}
    for turn in turns:
        children.setdefault(turn.parent, []).append(turn)
    return children


def _leaf(by_seq: Mapping[int, Turn], children: Mapping[int | None, list[Turn]], turn: Turn) -> Leaf:
    turns = path_of(by_seq, turn.seq)
    later = tuple(sibling for sibling in children[turn.parent] if sibling.seq > turn.seq)
    return Leaf(turns=turns, accumulated_ids=path_ids(turns), later_siblings=later)
