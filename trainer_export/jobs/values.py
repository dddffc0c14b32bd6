"""Closed lists of exports."""

from enum import StrEnum

FORMATS = ("parquet", "jsonl", "safetensors")
SHAPES = ("native", "miles", "verl", "trl", "triplets", "transition", "trajectory")


class JobState(StrEnum):
    """The life of an export."""

    PENDING = "pending"
    """Asked for; its input is not frozen yet."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """Nothing was published; `resume` tries again what is missing."""
    CANCELLED = "cancelled"


class ShardState(StrEnum):
    """The life of one file."""

    PENDING = "pending"
    RUNNING = "running"
    """Leased; anybody's again when the lease has run out."""
    DONE = "done"


class HandoutState(StrEnum):
    """The life of a streamed group."""

    OPEN = "open"
    """Waits, or is leased."""
    ACKED = "acked"
    DROPPED = "dropped"
    """Its tokens were too old for the trainer, or it has no rows."""
