"""Policy `linear`: extend the active path; what does not is a non-linear event with a declared
consequence.
"""

from sessions_app.errors import NonlinearHistory
from sessions_app.history.causes import AttachKind
from sessions_app.history.policies.base import Checkpoint, Position


def position_linear(
    active: Checkpoint | None, *, extends: bool, on_nonlinear: str, session_id: str
) -> Position:
    """`extends`: the request continues the active path's last checkpoint, under the same head.

    Raises NonlinearHistory where `on_nonlinear` is `error`.
    """
    if active is None:
        return Position(None, AttachKind.ROOT)
    if extends:
        return Position(active.seq, AttachKind.APPEND)
    return nonlinear(on_nonlinear, session_id)


def nonlinear(on_nonlinear: str, session_id: str) -> Position:
    """The consequence of a request that does not continue the active path."""
    if on_nonlinear == "error":
        raise NonlinearHistory(
            f"linear history mode: sid {session_id!r} broke the append-only assumption "
            "(stored history is not a message-level prefix of the incoming history)"
        )
    kind = AttachKind.RESET if on_nonlinear == "reset" else AttachKind.PASSTHROUGH
    return Position(None, kind)
