"""Random traces come out as the plain statement of the rules has them, errors included."""

import json
from random import Random
from typing import Any

import pytest

from tests.traces import random_traces
from tests.traces.oracle import triplets as plainly
from trainer_export.traces.answers import answer

SEEDS = range(0, 1200, 40)
TREE = "TraceTree.to_trajectory"
TRACER = "TracerTraceToTriplet"
PROXY = "LlmProxyTraceToTriplet"


def options(random: Random, adapter: str) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "agent_match": random.choice([None, None, "solver", "^c", ""]),
        "llm_call_match": random.choice([r"openai\.chat\.completion", r"openai\.chat\.completion", "chat"]),
        "exclude_llm_call_in_reward": random.random() < 0.7,
        "reward_match": random.choice(["first_occurrence", "first_occurrence", "first_sibling", "other"]),
        "_skip_empty_token_spans": random.random() < 0.3,
    }
    if adapter == TRACER:
        return chosen | {"repair_hierarchy": random.random() < 0.8}
    return chosen | {
        "dedup_llm_call": random.random() < 0.7,
        "final_reward": random.choice([None, None, 0.0, 2.5]),
    }


def plain(adapter: str, spans: list[dict[str, Any]], chosen: dict[str, Any]) -> Any:
    """`error` for whatever raises: which of several faults is met first is not described."""
    try:
        return plainly.proxy(spans) if adapter == PROXY else plainly.tracer(spans, chosen)
    except Exception:
        return "error"


def ours(adapter: str, spans: list[dict[str, Any]], chosen: dict[str, Any]) -> Any:
    found = answer(adapter, {} if adapter == PROXY else chosen, spans)
    return "error" if isinstance(found, dict) else found


@pytest.mark.parametrize("first", SEEDS)
@pytest.mark.parametrize("adapter", [TRACER, TREE, PROXY])
def test_random_traces(adapter, first):
    for seed in range(first, first + 40):
        random = Random(f"{adapter}{seed}")
        spans = random_traces.spans(random)
        chosen = options(random, adapter)
        found = json.dumps(ours(adapter, spans, chosen), sort_keys=True)
        assert found == json.dumps(plain(adapter, spans, chosen), sort_keys=True), (seed, chosen, spans)
