"""`drop_retries`: the reference rule. Of the children of one node only the last committed may end a row.

It keeps retried first turns (roots have no parent) and loses parallel children; `drop_superseded` does
neither.
"""

from trainer_export.samples.pickers.base import picker
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject


@picker
def drop_retries(leaves: list[Sample], session_metadata: JsonObject) -> list[Sample]:
    """Leaves without a later sibling, and all root leaves; longest path first, then latest first."""
    kept = [sample for sample in leaves if sample.leaf.last.parent is None or not sample.leaf.later_siblings]
    return sorted(kept, key=lambda sample: (len(sample.leaf.turns), sample.leaf.last.seq), reverse=True)
