"""What a history policy is told and what it answers. Deciding changes nothing: a Position takes effect at
commit.
"""

from dataclasses import dataclass

from sessions_app.history.causes import AttachKind


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A stored checkpoint as a policy sees it."""

    seq: int
    depth: int
    """Checkpoints above it on its path."""
    message_count: int
    """Messages of its path, its own reply included."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a request attaches."""

    attach: int | None
    """Seq of the node it continues; None = a new root."""
    kind: AttachKind
    """APPEND, ROOT, FORK, ROLLBACK, RESET or PASSTHROUGH. RETRY is told apart later, by what was asked
    before.
    """
    discarded: int = 0
    """Generated checkpoints that leave the active path."""
