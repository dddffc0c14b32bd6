"""Log records that are rewards -> spans, so that adapters read them like any other reward.

Evaluators report scores as events `gen_ai.evaluation.result`. The span of such a record is a child of the
span it was logged in, and its id is made from its content, so that a record that comes twice is one span.
Other records are ignored.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from trainer_export.traces.better.reward_facts import EVALUATION_EVENT
from trainer_export.traces.otlp.received import ReceivedSpan, Resource, Scope

_EVENT_NAME = "event.name"


def reward_span(
    event_name: str,
    trace_id: str,
    parent_id: str | None,
    time_ns: int | None,
    attributes: Mapping[str, Any],
    resource: Resource,
    scope: Scope,
) -> ReceivedSpan | None:
    """None for a record that is no reward."""
    if EVALUATION_EVENT not in (event_name, attributes.get(_EVENT_NAME)):
        return None
    identity = json.dumps([trace_id, parent_id, time_ns, attributes], sort_keys=True, default=str)
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return ReceivedSpan(
        trace_id=trace_id or digest[32:],
        span_id=digest[:16],
        parent_id=parent_id,
        name=EVALUATION_EVENT,
        start_ns=time_ns,
        end_ns=time_ns,
        attributes=attributes,
        resource=resource,
        scope=scope,
    )
