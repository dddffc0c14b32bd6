"""Mode `better` behind the names of the reference's triplet adapters: `"mode": "better"` among the options.

One conversion serves them all, because it reads spans of tracers and of proxies alike. `"report": true`
answers an object with the triplets and what became of every span.
"""

from collections.abc import Mapping
from typing import Any

from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.better.conversion import Rules, convert
from trainer_export.traces.coercion import to_float
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.selection import DEFAULT_CALL_PATTERN

BETTER = "better"
COMPAT = "compat"

_DEFAULTS = {
    "mode": BETTER,
    "report": False,
    "repair_hierarchy": True,
    "llm_call_match": DEFAULT_CALL_PATTERN,
    "agent_match": None,
    "exclude_llm_call_in_reward": True,
    "final_reward": None,
}


def is_better(options: Mapping[str, Any]) -> bool:
    """Which mode was asked for; an unknown one is an error."""
    mode = options.get("mode", COMPAT)
    if mode not in (BETTER, COMPAT):
        raise ValueError(f"Unknown mode: {mode}. Known: {BETTER}, {COMPAT}")
    return bool(mode == BETTER)


def convert_better(name: str, source: Any, options: Mapping[str, Any]) -> Any:
    """Triplets as a list, or `{"triplets", "report"}`."""
    chosen = read_options(name, options, _DEFAULTS)
    if not isinstance(source, list):
        raise ValidationError(f"spans: Input should be a valid list, got {type(source).__name__}")
    final = chosen["final_reward"]
    rules = Rules(
        llm_call_match=chosen["llm_call_match"],
        agent_match=chosen["agent_match"],
        exclude_llm_call_in_reward=bool(chosen["exclude_llm_call_in_reward"]),
        repair_hierarchy=bool(chosen["repair_hierarchy"]),
        final_reward=None if final is None else to_float(final, "final_reward"),
    )
    outcome = convert(source, rules)
    triplets = [triplet.to_json() for triplet in outcome.triplets]
    if not chosen["report"]:
        return triplets
    return {"triplets": triplets, "report": [entry.to_json() for entry in outcome.report]}
