"""Columns that say whose row it is and what it counts; in every shape but the native one, which has them
already.
"""

from trainer_export.samples.rows import SampleRow
from trainer_export.shapes.base import Row
from trainer_export.shapes.columns import Column, Kind

IDENTITY = (
    Column("sample_id", Kind.TEXT, "`session:leaf`, the same at every export"),
    Column("session_id", Kind.TEXT, "32 hex digits"),
    Column("group_id", Kind.TEXT, "rollouts of one prompt", optional=True),
    Column("leaf_index", Kind.INTEGER, "place among the rows of the rollout"),
    Column("leaf_count", Kind.INTEGER, "rows of the rollout"),
    Column("rollout_weight", Kind.NUMBER, "1 / leaf_count: weigh by it, and each rollout counts once"),
)


def identity(row: SampleRow) -> Row:
    """Their values."""
    return {column.name: getattr(row, column.name) for column in IDENTITY}
