"""`drop_superseded`, the default: a leaf goes only if its request was answered again later."""

from trainer_export.samples.pickers.base import picker
from trainer_export.samples.sample import Sample
from trainer_export.samples.superseded import superseded_by
from trainer_export.samples.values import JsonObject


@picker
def drop_superseded(leaves: list[Sample], session_metadata: JsonObject) -> list[Sample]:
    """Leaves that no later sibling supersedes, in commit order."""
    return [sample for sample in leaves if superseded_by(sample.leaf) is None]
