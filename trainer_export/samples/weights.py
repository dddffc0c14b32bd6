"""What each row counts, so that a rollout counts once however many rows it became.

Rows of a rollout may come from several sessions (attempts). The result depends on the rows only, never on
the order in which they come; it has to see all rows of a rollout at once.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from trainer_export.samples.rows import SampleRow


def weigh(rows: Sequence[SampleRow]) -> list[SampleRow]:
    """The rows in the order given, with `leaf_index`, `leaf_count` and `rollout_weight` of their rollout."""
    places = _places(rows)
    counts = {rollout: len(members) for rollout, members in places.items()}
    return [
        replace(
            row,
            leaf_index=places[row.rollout_id][row.sample_id],
            leaf_count=counts[row.rollout_id],
            rollout_weight=1.0 / counts[row.rollout_id],
        )
        for row in rows
    ]


def _places(rows: Sequence[SampleRow]) -> dict[str, dict[str, int]]:
    members: dict[str, list[SampleRow]] = defaultdict(list)
    for row in rows:
        members[row.rollout_id].append(row)
    return {rollout: _ranked(group) for rollout, group in members.items()}


def _ranked(group: list[SampleRow]) -> dict[str, int]:
    ordered = sorted(group, key=lambda row: (row.session_id, row.leaf, row.sample_id))
    return {row.sample_id: place for place, row in enumerate(ordered)}
