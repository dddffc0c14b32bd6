"""`agent_match:PATTERN`: train only the turns of agents whose label the pattern finds, then as `default`.

The pattern is a regular expression searched in the label, as in the triplet adapters. Rows on whose path no
such turn stands are left out.
"""

import re
from dataclasses import dataclass

from trainer_export.samples.ownership import mask_spans
from trainer_export.samples.postprocessors.base import PATTERNED
from trainer_export.samples.postprocessors.default import default_postprocess
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import JsonObject


@dataclass(frozen=True, slots=True)
class AgentMatch:
    """The post-processor for one pattern."""

    pattern: re.Pattern[str]

    @classmethod
    def of(cls, pattern: str) -> "AgentMatch":
        """Raises ValueError for what is no regular expression."""
        try:
            return cls(re.compile(pattern))
        except re.error as error:
            raise ValueError(f"agent_match pattern {pattern!r}: {error}") from None

    def __call__(self, samples: list[Sample], session_metadata: JsonObject) -> list[Sample]:
        """Masks the turns of other agents."""
        return default_postprocess([sample for sample in samples if self._train(sample)], session_metadata)

    def _train(self, sample: Sample) -> bool:
        ours = {turn.seq for turn in sample.leaf.turns if self.pattern.search(turn.agent)}
        mask_spans(sample, [span for span in sample.spans if span.seq not in ours])
        return bool(ours)


PATTERNED["agent_match"] = AgentMatch.of
