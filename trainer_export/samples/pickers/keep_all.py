"""`keep_all`: every leaf is a row, retries and abandoned branches included."""

from trainer_export.samples.pickers.base import picker
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject


@picker
def keep_all(leaves: list[Sample], session_metadata: JsonObject) -> list[Sample]:
    """All, in commit order."""
    return list(leaves)
