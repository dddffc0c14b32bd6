"""Large traces: whole conversions in seconds, chains of any depth."""

import json
import time

import pytest

from tests.traces.making import agent, call, reward, session, span, triplets


def conversation(count):
    """Agents one after another; each thinks, calls and is rewarded, the calls float under the session."""
    spans = [session(count * 10.0)]
    for index in range(count // 4):
        start = index * 10.0
        spans += [
            agent(f"a{index}", "s", start, start + 9, "writer"),
            span(f"w{index}", f"a{index}", start + 1, start + 2),
            call(f"c{index}", "s", start + 3, start + 4),
            reward(f"r{index}", "s", start + 8, 1.0),
        ]
    return spans


def chain(count):
    """Each span below the one before; calls all the way down."""
    spans = [session(1e6)]
    for index in range(count):
        parent = "s" if index == 0 else f"c{index - 1}"
        spans.append(call(f"c{index}", parent, float(index), 1e6 - index))
    return spans


def overlapping(count):
    """Calls that all end late and rewards that all come early: every reward looks at every call."""
    calls = [call(f"c{index}", "s", float(index), 1e6 + index) for index in range(count // 2)]
    return [session(1e7), *calls, *(reward(f"r{index}", "s", 5e5, 1.0) for index in range(count // 2))]


def parallel(count):
    """Spans of one duration that all enclose the same calls, none more tightly than the others."""
    half = count // 2
    agents = [agent(f"a{index}", "s", index * 0.001, index * 0.001 + 10, "writer") for index in range(half)]
    calls = [call(f"c{index}", "s", 5 + index * 0.001, 5 + index * 0.001 + 0.001) for index in range(half)]
    return [session(1e6), *agents, *calls]


def nested(count):
    """Floating calls, each around the next: all of them are moved, one below the other."""
    return [session(1e7), *(call(f"c{index}", "s", float(index), 1e6 - index) for index in range(count))]


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (parallel, {}),
        (nested, {}),
        (conversation, {"agent_match": "writer"}),
        (conversation, {"mode": "better"}),
        (chain, {}),
        (chain, {"mode": "better"}),
        (overlapping, {"reward_match": "first_sibling"}),
    ],
)
def test_20000_spans_take_seconds(shape, options):
    spans = shape(20_000)
    started = time.process_time()
    json.dumps(triplets(spans, **options))
    assert time.process_time() - started < 20


@pytest.mark.parametrize("adapter", ["LlmProxyTraceToTriplet", "TraceToMessages"])
def test_the_other_adapters_too(adapter):
    spans = [
        item | {"sequence_id": index, "name": "litellm_request" if index % 2 else item["name"]}
        for index, item in enumerate(conversation(20_000))
    ]
    started = time.process_time()
    assert isinstance(triplets(spans, adapter), list)
    assert time.process_time() - started < 20
