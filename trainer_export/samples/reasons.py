"""Why a generated token is not trained: a closed list.

The order matters: where rows disagree about a token, the reason nearest to being trained is reported.
"""

from enum import StrEnum


class Reason(StrEnum):
    """One reason per generated token that no row trains; `TRAINED_ELSEWHERE` only inside a row."""

    TRAINED_ELSEWHERE = "trained_elsewhere"
    """Another row owns the completion."""
    LOGPROB = "logprob"
    """Its logprob is missing, not finite, or not the one the engine reported for it."""
    CONTEXT = "context"
    """What stands before it in the row cannot be proven to be what the engine was shown when it sampled
    it."""
    POSTPROCESSOR = "postprocessor"
    """The post-processor masked it."""
    BOUNDARY_TRIM = "boundary_trim"
    """The next prompt put another id in its place."""
    REALIGNED = "realigned"
    """The next, un-healed prompt put its own spelling in the place of the whole response."""
    MAX_SEQ_LEN = "max_seq_len"
    """The token budget ends the row before it."""
    AFTER_TRUNCATED = "after_truncated"
    """An earlier turn was cut by length and the row ends there."""
    AFTER_ABORTED = "after_aborted"
    """An earlier turn was aborted."""
    AFTER_PENDING = "after_pending"
    """An earlier turn ended with a finish reason that completes nothing."""
    REPLAY_MISSING = "replay_missing"
    """Its turn, or one before it, came without replay rows."""
    POSTPROCESSOR_DROPPED = "postprocessor_dropped"
    """The post-processor left out every row it stands in."""
    SUPERSEDED = "superseded"
    """The same request was answered again later."""
    ROLLED_BACK = "rolled_back"
    """It left the active path."""
    NOT_PICKED = "not_picked"
    """The picker kept no row it stands in."""


_STOPS = {
    "max_seq_len": Reason.MAX_SEQ_LEN,
    "truncated": Reason.AFTER_TRUNCATED,
    "aborted": Reason.AFTER_ABORTED,
    "pending": Reason.AFTER_PENDING,
    "replay_missing": Reason.REPLAY_MISSING,
}


def after_stop(stopped_reason: str) -> Reason:
    """Why tokens behind the end of a row are not trained."""
    return _STOPS[stopped_reason]


def nearest(one: Reason, other: Reason) -> Reason:
    """Of two reasons the one nearer to being trained."""
    return min(one, other, key=tuple(Reason).index)
