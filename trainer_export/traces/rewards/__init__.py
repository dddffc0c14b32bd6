"""The reward a span carries: three recorded forms, looked at in order. 0.0 is a reward.

The first form that applies decides, also when it says that there is no reward. Links and tags are not read.
"""

from typing import Any

from trainer_export.traces.names import OPERATION, OPERATION_NAME, REWARD
from trainer_export.traces.rewards import agentops_output, annotation, dimensions
from trainer_export.traces.rewards.form import NOT_THIS_FORM
from trainer_export.traces.span import Span

FORMS = (dimensions.value_of, agentops_output.value_of, annotation.value_of)


def reward_value(span: Span) -> Any:
    """The primary reward as recorded, or None. A malformed reward raises."""
    for form in FORMS:
        value = form(span)
        if value is not NOT_THIS_FORM:
            return value
    return None


def is_reward_span(span: Span) -> bool:
    """A span that carries a reward, or an operation that says it is one."""
    if reward_value(span) is not None:
        return True
    return span.name == OPERATION and span.attributes.get(OPERATION_NAME) == REWARD
