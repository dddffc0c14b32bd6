"""AgentOps' form: the output of an operation, as JSON text `{"type": "reward", "value": …}`.

A null value says that there is no reward and ends the search; text that is no JSON is passed over.
"""

import json
from typing import Any

from trainer_export.traces.rewards.form import NOT_THIS_FORM
from trainer_export.traces.span import Span

_OUTPUTS = ("agentops.task.output", "agentops.entity.output")


def value_of(span: Span) -> Any:
    """The value as recorded, whatever its type."""
    for name in _OUTPUTS:
        output = _parsed(span.attributes.get(name))
        if output and output.get("type") == "reward":
            return output.get("value")
    return NOT_THIS_FORM


def _parsed(output: Any) -> Any:
    if not isinstance(output, str):
        return output if isinstance(output, dict) else None
    try:
        return json.loads(output)
    except json.JSONDecodeError:
        return None
