"""Log probabilities of a call: `logprobs.content` as JSON text, handed on as recorded. Bad JSON raises."""

import json
from typing import Any

from trainer_export.traces.span import Attributes


def logprobs_part(attributes: Attributes) -> dict[str, Any]:
    """`{"logprobs": …}`, or {} when none are recorded as text."""
    recorded = attributes.get("logprobs.content")
    return {"logprobs": json.loads(recorded)} if isinstance(recorded, str) else {}
