"""Spans joined with what we served: exact ids for traces that hold only text."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.errors import InvalidArgument
from tests.traces.making import agent, call, reward, session, span
from trainer_export.arguments import Arguments
from trainer_export.forests.rows import RewardRow
from trainer_export.spans.arranging import Added, arranged
from trainer_export.spans.converting import TracedSession, converted
from trainer_export.spans.loading import StoredSpan
from trainer_export.spans.own_calls import OwnCall, span_of
from trainer_export.spans.rules import TraceRules
from trainer_export.spans.waterfall import waterfall
from trainer_export.traces.compat import PROXY, TRACER
from trainer_export.traces.parsing import parse_span

OURS = UUID(int=5)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BETTER = TraceRules(mode="better")


def own(seq, prompt, completion, *, response=None, agent=None, at=None, of=OURS):
    moment = NOON + timedelta(seconds=10 * seq if at is None else at)
    return OwnCall(
        session_id=of.hex,
        seq=seq,
        response_id=response or f"chatcmpl-{seq}",
        prompt=np.array(prompt, np.int32),
        completion=np.array(completion, np.int32),
        logprobs=np.array([-0.5] * len(completion)),
        agent=agent,
        finish_reason="stop",
        arrived_at=moment,
        committed_at=moment + timedelta(seconds=1),
        messages=({"role": "user", "content": f"q{seq}"}, {"role": "assistant", "content": f"a{seq}"}),
    )


def stored(item, at=0.0, given=False):
    return StoredSpan(parse_span(item, 0), given, NOON + timedelta(seconds=at))


def text_call(span_id, parent, start, end, response, name="openai.chat.completion"):
    """A call as an instrumentation without ids records it."""
    made = span(span_id, parent, start, end, name)
    made["attributes"] = {"gen_ai.operation.name": "chat", "gen_ai.response.id": response}
    return made


def traced(spans=(), calls=(), served=None, rewards=()):
    served = {one.response_id: one for one in calls} if served is None else served
    return TracedSession(OURS.hex, "ro", "at", [stored(one) for one in spans], list(calls), served, rewards)


def ids(triplets):
    return [(one.prompt["token_ids"], one.response["token_ids"]) for one in triplets]


def uses(result):
    return {entry.span_id: str(entry.use) for entry in result.report}


def node_reward(seq, value, name="reward"):
    return RewardRow(OURS, seq, name, value, 1.0, "api")


CALLS = [own(0, [1, 2], [3]), own(1, [1, 2, 3, 4], [5, 6])]
TRACE = [
    session(),
    agent("a", "s", 1, 90, "solver"),
    text_call("c0", "a", 2, 3, "chatcmpl-0"),
    text_call("c1", "a", 5, 6, "chatcmpl-1"),
]


@pytest.mark.parametrize("rules", [TraceRules(), BETTER], ids=["compat", "better"])
def test_a_trace_of_text_yields_the_ids_of_our_checkpoints(rules):
    result = converted(traced(TRACE, CALLS), rules)
    assert result.error is None
    assert ids(result.triplets) == [([1, 2], [3]), ([1, 2, 3, 4], [5, 6])]
    assert [one.metadata["agent_name"] for one in result.triplets] == ["solver", "solver"]
    assert uses(result) == {"s": "structure", "a": "agent", "c0": "call", "c1": "call"}


@pytest.mark.parametrize("rules", [TraceRules(), BETTER], ids=["compat", "better"])
def test_the_agent_filter_selects_exact_ids(rules):
    spans = [*TRACE, agent("b", "s", 91, 95, "judge"), text_call("c2", "b", 92, 93, "chatcmpl-2")]
    calls = [*CALLS, own(2, [9], [8])]
    wanted = replace(rules, options={"agent_match": "judge"})
    assert ids(converted(traced(spans, calls), wanted).triplets) == [([9], [8])]


@pytest.mark.parametrize("rules", [TraceRules(), BETTER], ids=["compat", "better"])
def test_ids_that_a_span_says_otherwise_are_ours_and_reported(rules):
    wrong = text_call("c0", "a", 2, 3, "chatcmpl-0")
    wrong["attributes"] |= {"prompt_token_ids": [1, 99], "response_token_ids": [3]}
    result = converted(traced([session(), agent("a", "s", 1, 9, "x"), wrong], CALLS[:1]), rules)
    assert ids(result.triplets) == [([1, 2], [3])]
    assert {entry.span_id for entry in result.report if "tokens_disagree" in entry.remarks} == {"c0"}


def test_the_agent_of_our_own_record_counts_where_the_trace_names_none():
    calls = [own(0, [1], [2], agent="by prompt")]
    spans = [session(), text_call("c0", "s", 2, 3, "chatcmpl-0")]
    (only,) = converted(traced(spans, calls), BETTER).triplets
    assert only.metadata["agent_name"] == "by prompt"


def test_agents_that_disagree_are_reported_and_the_trace_counts():
    calls = [own(0, [1], [2], agent="by header")]
    result = converted(traced(TRACE[:3], calls), BETTER)
    assert result.triplets[0].metadata["agent_name"] == "solver"
    assert [e.span_id for e in result.report if "agents_disagree" in e.remarks] == ["c0"]


def test_what_a_node_was_called_before_a_trace_named_it_is_still_reported():
    calls = [own(0, [1], [2], agent="solver")]
    session = traced(TRACE[:3], calls)
    received = [replace(one, agent_before="by header") if one.span.span_id == "c0" else one
                for one in session.received]  # fmt: skip
    result = converted(replace(session, received=received), BETTER)
    assert [e.span_id for e in result.report if "agents_disagree" in e.remarks] == ["c0"]


@pytest.mark.parametrize("rules", [TraceRules(), BETTER], ids=["compat", "better"])
def test_a_session_without_spans_is_converted_from_its_own_calls(rules):
    result = converted(traced((), CALLS), rules)
    assert ids(result.triplets) == [([1, 2], [3]), ([1, 2, 3, 4], [5, 6])]
    assert {str(entry.use) for entry in result.report} == {"call"}


def test_own_calls_have_content_logprobs_and_agents_in_better():
    calls = [own(0, [1], [2], agent="solver")]
    (only,) = converted(traced((), calls), BETTER).triplets
    assert only.prompt["raw_content"] == [{"role": "user", "content": "q0"}]
    assert only.response["raw_content"] == [{"role": "assistant", "content": "a0"}]
    assert only.response["logprobs"] == [-0.5]
    assert only.metadata["agent_name"] == "solver"


def test_a_call_that_no_span_records_still_counts_in_better_and_for_the_proxy():
    partly = TRACE[:3]
    assert len(converted(traced(partly, CALLS), BETTER).triplets) == 2
    assert len(converted(traced(partly, CALLS), TraceRules(adapter=PROXY)).triplets) == 2
    assert len(converted(traced(partly, CALLS), TraceRules(adapter=TRACER)).triplets) == 1


def test_ids_of_another_session_serve_as_well():
    foreign = own(0, [7], [8], response="chatcmpl-f", of=UUID(int=6))
    spans = [session(), text_call("c", "s", 1, 2, "msg_f")]
    result = converted(traced(spans, CALLS[:1], {"msg_f": foreign}), BETTER)
    assert ([7], [8]) in ids(result.triplets)


@pytest.mark.parametrize("rules", [TraceRules(), BETTER], ids=["compat", "better"])
@pytest.mark.parametrize("spans", [TRACE, ()], ids=["traced", "untraced"])
def test_rewards_of_the_api_reach_the_calls_of_their_nodes(rules, spans):
    rewards = (node_reward(0, 0.25), node_reward(1, 0.75))
    result = converted(traced(spans, CALLS, rewards=rewards), rules)
    assert [one.reward for one in result.triplets] == [0.25, 0.75]


def test_several_named_rewards_of_a_node_are_kept_in_better():
    rewards = (node_reward(0, 0.25, "style"), node_reward(0, 1.0, "right"))
    (only,) = converted(traced((), CALLS[:1], rewards=rewards), BETTER).triplets
    assert only.metadata["rewards"] == {"style": 0.25, "right": 1.0}


def test_a_reward_of_the_session_is_the_final_reward():
    rewards = (node_reward(None, 1.0), node_reward(0, 0.5))
    compat = converted(traced(TRACE, CALLS, rewards=rewards), TraceRules())
    assert ([one.reward for one in compat.triplets], compat.final_reward) == ([0.5, 1.0], 1.0)
    better = converted(traced(TRACE, CALLS, rewards=rewards), BETTER)
    assert [one.metadata["final_reward"] for one in better.triplets] == [1.0, 1.0]
    assert [one.reward for one in better.triplets] == [0.5, 1.0]


def test_rewards_among_own_calls_go_by_arrival():
    spans = [stored(reward("r", None, 50_000.0, 1.0), at=15)]
    session_of = replace(traced((), CALLS), received=spans)
    for rules in (BETTER, TraceRules(adapter=PROXY)):
        assert [one.reward for one in converted(session_of, rules).triplets] == [None, 1.0]
    late = replace(session_of, received=[replace(spans[0], received_at=NOON + timedelta(seconds=5))])
    for rules in (BETTER, TraceRules(adapter=PROXY)):
        assert [one.reward for one in converted(late, rules).triplets] == [1.0, None]


def test_what_the_reference_runs_into_is_told_and_costs_only_the_session():
    broken = call("c", "s", 1, 2, attributes={"gen_ai.prompt": "[]"})
    result = converted(traced([session(), broken]), TraceRules())
    assert result.error is not None
    assert result.error.startswith("ValueError: Cannot unflatten")
    assert set(uses(result).values()) == {"conversion_failed"}
    assert converted(traced([session(), broken]), BETTER).error is None


def test_numbers_that_senders_gave_keep_their_order_and_are_shared():
    numbered = [
        stored(span(name, sequence=number), at, given=True)
        for name, number, at in [("b", 7, 1), ("a", 3, 2), ("c", 7, 3)]
    ]
    added = Added(span_of(own(0, [1], [2], at=2.5), "", ""), NOON + timedelta(seconds=2.5))
    order = {one.span_id: one.sequence_id for one in arranged(numbered, [added], {})}
    assert (order["a"], order["b"], order["c"]) == (1, 2, 4)
    assert order[added.span.span_id] == 3


@given(st.permutations(range(6)), st.booleans())
def test_order_of_arrival_changes_nothing_where_numbers_are_given(order, better):
    trace = [*TRACE, reward("r1", "a", 4, 0.5), reward("r2", "a", 7, 0.25)]
    numbered = [stored(one | {"sequence_id": number}, given=True) for number, one in enumerate(trace)]
    moments = {number: NOON + timedelta(seconds=position) for position, number in enumerate(order)}
    shuffled = [replace(numbered[number], received_at=moments[number]) for number in order]
    rules = BETTER if better else TraceRules()
    plain = converted(replace(traced((), CALLS), received=numbered), rules)
    again = converted(replace(traced((), CALLS), received=shuffled), rules)
    assert [one.to_json() for one in plain.triplets] == [one.to_json() for one in again.triplets]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "best"},
        {"adapter": "TraceToMessages"},
        {"agent_match": "("},
        {"llm_call_match": 5},
        {"repair_hierarchy": "yes"},
        {"max_prompt_length": 0},
        {"equal_prompts": "first"},
        {"what": 1},
    ],
)
def test_rules_of_the_wrong_kind_are_refused(options):
    with pytest.raises(InvalidArgument):
        TraceRules.of(Arguments(options, "traces."))


def test_rules_know_which_options_an_adapter_takes():
    rules = TraceRules.of(Arguments({"agent_match": "x", "dedup_llm_call": False, "mode": "better"}))
    assert rules.better == {"agent_match": "x"}
    assert rules.compat(TRACER) == {"agent_match": "x"}
    assert rules.compat(PROXY) == {}


@pytest.mark.parametrize("rules", [TraceRules(), BETTER])
def test_a_reply_beside_the_tree_is_joined_and_labelled(rules):
    late = replace(own(-7, [1, 2, 9], [8], response="chatcmpl-late"), late="concurrent")
    trace = [*TRACE, text_call("c2", "a", 7, 8, "chatcmpl-late")]
    served = {one.response_id: one for one in (*CALLS, late)}
    result = converted(traced(trace, CALLS, served), rules)
    assert ids(result.triplets)[-1] == ([1, 2, 9], [8])
    drawn = waterfall(traced(trace, CALLS, served), result, "t" * 32)
    assert [line.node for line in drawn.lines] == [None, None, 0, 1, None]
    remarks = {entry.span_id: entry.remarks for entry in result.report}
    assert [span_id for span_id, found in remarks.items() if "late_reply" in found] == ["c2"]
    if rules is BETTER:
        assert result.triplets[-1].metadata["late_reply"] == "concurrent"
        assert "late_reply" not in result.triplets[0].metadata
