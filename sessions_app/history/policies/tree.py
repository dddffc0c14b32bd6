"""Policy `tree`: extend the deepest matching node, branch there when it was continued before. Never
refuses.
"""

from sessions_app.history.causes import AttachKind
from sessions_app.history.policies.base import Checkpoint, Position


def position_tree(found: Checkpoint | None, *, has_children: bool, forest_size: int) -> Position:
    """`found`: the deepest node that the request matches; `has_children`: whether it was continued before."""
    if found is None:
        return Position(None, AttachKind.ROOT if forest_size == 0 else AttachKind.FORK)
    return Position(found.seq, AttachKind.FORK if has_children else AttachKind.APPEND)
