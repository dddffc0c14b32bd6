"""Policy `rollback`: one active path, at most a few generated checkpoints back, never a branch.

Wire-compatible with the linear session server (reference 4.2). A checkpoint exists only for replies
generated through this session; assistant messages that the client supplied are prompt.
"""

from collections.abc import Sequence

from sessions_app.errors import RollbackTooDeep
from sessions_app.history.causes import AttachKind
from sessions_app.history.policies.base import Checkpoint, Position


def position_rollback(
    path: Sequence[Checkpoint], *, matched: int, requested: int, max_discard: int
) -> Position:
    """`path`: the active path, root first. `matched`: leading messages that the request shares with it.
    `requested`: messages of the request.

    Raises RollbackTooDeep when more than `max_discard` checkpoints would go.
    """
    if not path:
        return Position(None, AttachKind.ROOT)
    leaf = path[-1]
    if matched >= leaf.message_count:
        return Position(leaf.seq, AttachKind.APPEND)
    kept = [checkpoint for checkpoint in path if checkpoint.message_count <= matched]
    discarded = len(path) - len(kept)
    if discarded > max_discard:
        raise RollbackTooDeep(
            f"rollback failed: discard_count={discarded} exceeds max_assistant_rollback_steps={max_discard} "
            f"(stored has {leaf.message_count} messages, request has {requested} messages)"
        )
    return Position(kept[-1].seq if kept else None, AttachKind.ROLLBACK, discarded)
