"""The built-in post-processors, one per file; importing this package registers them."""

from trainer_export.samples.postprocessors.agent_match import AgentMatch
from trainer_export.samples.postprocessors.base import PATTERNED, POSTPROCESSORS, Postprocessor
from trainer_export.samples.postprocessors.default import default_postprocess

__all__ = ["PATTERNED", "POSTPROCESSORS", "AgentMatch", "Postprocessor", "default_postprocess"]
