"""Which spans are calls, and under which agent's name."""

import pytest

from tests.traces.making import agent, call, response_ids, reward, session, span, triplets


def selected(spans, **options):
    return [
        (item["metadata"]["response_id"], item["metadata"]["agent_name"])
        for item in triplets(spans, **options)
    ]


def test_name_pattern_is_searched():
    spans = [session()] + [
        call(name, "s", 1, 2, name=name)
        for name in (
            "openai.chat.completion.create",
            "x.openai.chat.completions",
            "OpenAI.chat.completion",
            "chat",
        )
    ]
    assert response_ids(spans) == [
        "chatcmpl-openai.chat.completion.create",
        "chatcmpl-x.openai.chat.completions",
    ]
    assert response_ids(spans, llm_call_match="^chat$") == ["chatcmpl-chat"]


def test_label_is_the_nearest_agent_above():
    spans = [
        session(),
        call("c0", "s", 1, 2),
        agent("a", "s", 0, 50, "outer"),
        agent("b", "a", 0, 40, "inner"),
        call("c1", "b", 3, 4),
        call("c2", "a", 45, 46),
    ]
    assert selected(spans, repair_hierarchy=False) == [
        ("chatcmpl-c0", "*"),
        ("chatcmpl-c1", "inner"),
        ("chatcmpl-c2", "outer"),
    ]


def test_failing_inner_agent_takes_its_calls_out():
    spans = [
        session(),
        agent("a", "s", 0, 50, "write"),
        agent("b", "a", 0, 40, "check"),
        call("c", "b", 1, 2),
    ]
    assert response_ids(spans, agent_match="write", repair_hierarchy=False) == []
    assert response_ids(spans, agent_match="check", repair_hierarchy=False) == ["chatcmpl-c"]


def test_agent_name_on_the_call_itself_does_not_count_for_it():
    spans = [session(), call("c", "s", 1, 2, attributes={"agent.name": "write"})]
    assert selected(spans) == [("chatcmpl-c", "*")]
    assert selected(spans, agent_match="write") == []


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("x", {"agent.name": "a"}, "a"),
        ("x", {"agent.name": ""}, ""),
        ("x", {"agent.name": "a", "executor.id": "e"}, "a"),
        ("x", {"agentops.span.kind": "agent", "operation.name": "o"}, "o"),
        ("x", {"operation.name": "o"}, "*"),
        ("x", {"agentops.span.kind": "agent", "executor.id": "e"}, "e"),
        ("x", {"recipient_agent_type": "r", "langchain.chain.type": "l"}, "r"),
        ("x", {"langchain.chain.type": "l"}, "l"),
        ("x", {"executor.id": "e"}, "e"),
        ("x", {"type": "agent", "agentlightning.operation.input.name": "w"}, "w"),
        ("x", {"type": "tool", "agentlightning.operation.input.name": "w"}, "*"),
        ("langchain.Chain.run", {"lc_name": "c"}, "c"),
        ("x", {"lc_name": "c"}, "*"),
        ("x", {"gen_ai.agent.name": "g", "graph.node.name": "n", "traceloop.entity.name": "t"}, "*"),
    ],
)
def test_frameworks(name, attributes, expected):
    spans = [session(), span("a", "s", 0, 50, name) | {"attributes": attributes}, call("c", "a", 1, 2)]
    assert selected(spans) == [("chatcmpl-c", expected)]


def test_same_response_id_is_one_call():
    spans = [
        session(),
        call("c1", "s", 1, 2),
        call("c2", "s", 3, 4, attributes={"gen_ai.response.id": "chatcmpl-c1"}),
    ]
    assert response_ids(spans, repair_hierarchy=False) == ["chatcmpl-c1"]
    assert response_ids(spans, adapter="TraceTree.to_trajectory", dedup_llm_call=False) == ["chatcmpl-c1"]


def test_copy_under_an_unwanted_agent_does_not_shadow():
    copy = {"gen_ai.response.id": "chatcmpl-c1"}
    spans = [
        session(),
        agent("a", "s", 0, 10, "check"),
        call("c0", "a", 1, 2, attributes=copy),
        agent("b", "s", 20, 30, "write"),
        call("c1", "b", 21, 22),
    ]
    assert selected(spans, agent_match="write") == [("chatcmpl-c1", "write")]


def without_id(span_id, parent, start, end):
    made = call(span_id, parent, start, end)
    del made["attributes"]["gen_ai.response.id"]
    return made


def test_calls_without_id_count_once_when_nested():
    spans = [
        session(),
        call("c", "s", 1, 9),
        span("m", "c", 2, 8),
        without_id("n", "m", 3, 4),
        without_id("o", "s", 20, 21),
    ]
    assert response_ids(spans) == ["chatcmpl-c", None]
    assert response_ids(spans, adapter="TraceTree.to_trajectory", dedup_llm_call=False) == [
        "chatcmpl-c",
        None,
        None,
    ]


def test_response_id_that_is_no_text_is_passed_over():
    attributes = {"gen_ai.response.id": 7, "agentlightning.operation.output.id": "w"}
    assert response_ids([session(), call("c", "s", 1, 2, attributes=attributes)]) == ["w"]


def test_calls_of_a_judge_inside_a_reward_are_left_out():
    spans = [session(), call("c", "s", 1, 2), reward("r", "s", 5, 1.0, 9), call("judge", "r", 6, 7)]
    assert response_ids(spans) == ["chatcmpl-c"]
    assert response_ids(spans, exclude_llm_call_in_reward=False) == ["chatcmpl-c", "chatcmpl-judge"]


def test_an_operation_called_reward_is_a_reward_span():
    grading = span("g", "s", 5, 9, "agentlightning.operation") | {
        "attributes": {"agentlightning.operation.name": "agentlightning.reward"}
    }
    assert response_ids([session(), call("c", "s", 1, 2), grading, call("judge", "g", 6, 7)]) == [
        "chatcmpl-c"
    ]


def test_order_is_tree_order():
    spans = [session(), span("w", "s", 50, 60), call("late", "w", 51, 52), call("early", "s", 1, 2)]
    assert response_ids(spans) == ["chatcmpl-late", "chatcmpl-early"]
