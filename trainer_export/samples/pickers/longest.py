"""`longest`: one row per session, the one that trains most."""

import numpy as np

from trainer_export.samples.pickers.base import picker
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject


@picker
def longest(leaves: list[Sample], session_metadata: JsonObject) -> list[Sample]:
    """The leaf with the most trained tokens; of equals the latest."""
    if not leaves:
        return []
    return [max(leaves, key=lambda sample: (np.count_nonzero(sample.loss_mask), sample.leaf.last.seq))]
