"""`main_only`: the agent's own conversation; sub-agents, side calls and compactions stay out."""

from trainer_export.samples.pickers.base import picker
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject


@picker
def main_only(leaves: list[Sample], session_metadata: JsonObject) -> list[Sample]:
    """Leaves whose root is classed `main`, in commit order."""
    return [sample for sample in leaves if sample.leaf.turns[0].root_class == "main"]
