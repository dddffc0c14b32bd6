"""A post-processor that takes its time, so that a worker can be killed in the middle."""

import time
from typing import Any

from trainer_export.samples.postprocessors import default_postprocess
from trainer_export.samples.sample import Sample


def slow(samples: list[Sample], session_metadata: dict[str, Any]) -> list[Sample]:
    time.sleep(0.2)
    return default_postprocess(samples, session_metadata)
