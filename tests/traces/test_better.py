"""Mode `better`: rules instead of luck, and an entry for every span."""

import json
from pathlib import Path

import pytest

from tests.traces.making import REWARD, agent, call, reward, session, span, triplets
from trainer_export.traces.better.conversion import Rules, ServedTokens, convert

VECTORS = sorted((Path(__file__).parent.parent / "vectors" / "triplets").glob("*.json"))


def outcome(spans, **options):
    return triplets(spans, mode="better", report=True, **options)


def uses(spans, **options):
    return {entry["span_id"]: entry["as"] for entry in outcome(spans, **options)["report"]}


def remarks(spans, **options):
    return {
        entry["span_id"]: entry["remarks"]
        for entry in outcome(spans, **options)["report"]
        if entry["remarks"]
    }


def found(spans, **options):
    return {
        item["metadata"]["response_id"]: (item["metadata"]["agent_name"], item["reward"])
        for item in outcome(spans, **options)["triplets"]
    }


def with_attributes(made, **attributes):
    made["attributes"] |= {key.replace("__", "."): value for key, value in attributes.items()}
    return made


def bare_call(span_id, parent, start, end, name, sequence=0, **attributes):
    return span(span_id, parent, start, end, name, sequence, **attributes)


def test_default_output_is_the_list_and_report_is_asked_for():
    spans = [session(), call("c", "s", 1, 2)]
    assert triplets(spans, mode="better") == outcome(spans)["triplets"]
    assert triplets(spans, mode="worse")["error"]["type"] == "ValueError"


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_agrees_with_the_reference_on_ids_of_ordinary_traces(path):
    vector = json.loads(path.read_text())
    options = {key: value for key, value in vector["options"].items() if key != "reward_match"}
    ours = triplets(vector["input_spans"], vector["adapter"], mode="better", **options)
    assert {item["metadata"]["response_id"] for item in ours} == {
        item["metadata"]["response_id"] for item in vector["expected"]
    }


def test_nothing_in_nothing_out():
    assert outcome([]) == {"triplets": [], "report": []}


def test_calls_are_known_by_meaning():
    tokens = {"prompt_token_ids": [1], "response_token_ids": [2]}
    spans = [
        session(),
        bare_call("a", "s", 1, 2, "openai.chat", **{"gen_ai.operation.name": "chat"} | tokens),
        bare_call("b", "s", 3, 4, "ChatCompletion", **{"openinference.span.kind": "LLM"} | tokens),
        bare_call("c", "s", 5, 6, "anything", **{"gen_ai.request.type": "chat"} | tokens),
        bare_call("d", "s", 7, 8, "embed", **{"gen_ai.operation.name": "embeddings"} | tokens),
        bare_call("e", "s", 9, 10, "my model", **tokens),
    ]
    assert [key for key, use in uses(spans).items() if use == "call"] == ["a", "b", "c"]
    assert uses(spans, llm_call_match="^my model$")["e"] == "call"


def test_proxy_and_tracer_spans_of_one_call_are_joined():
    spans = [
        session(),
        agent("a", "s", 0, 50, "writer"),
        bare_call(
            "t", "a", 1, 2, "openai.chat", 3, **{"gen_ai.operation.name": "chat", "gen_ai.response.id": "x"}
        ),
        bare_call(
            "p",
            None,
            900,
            901,
            "raw_gen_ai_request",
            2,
            **{
                "llm.hosted_vllm.id": "x",
                "llm.hosted_vllm.prompt_token_ids": "[1, 2]",
                "llm.hosted_vllm.choices": "[{'token_ids': [3], 'logprobs': {'token_logprobs': [-0.5]}}]",
            },
        ),
    ]
    made = outcome(spans)["triplets"][0]
    assert (made["prompt"]["token_ids"], made["response"]["token_ids"]) == ([1, 2], [3])
    assert made["response"]["logprobs"] == [-0.5]
    assert made["metadata"]["agent_name"] == "writer"
    assert uses(spans) == {"s": "structure", "a": "agent", "p": "call", "t": "joined"}


def test_records_that_disagree_are_remarked():
    spans = [
        session(),
        call("c1", "s", 1, 2),
        call("c2", "s", 1, 3, attributes={"gen_ai.response.id": "chatcmpl-c1"}),
    ]
    assert any("tokens_disagree" in found for found in remarks(spans).values())


def test_our_own_record_of_a_call_wins():
    spans = [
        session(),
        call("c", "s", 1, 2),
        bare_call("t", "s", 5, 6, "x", **{"gen_ai.response.id": "other"}),
    ]
    served = {"other": ServedTokens([7], [8], [-1.0]), "chatcmpl-c": ServedTokens([9], [9], None)}
    result = convert(spans, Rules(llm_call_match="x|openai", served=served.get))
    assert [item.prompt["token_ids"] for item in result.triplets] == [[9], [7]]
    assert result.triplets[1].response["logprobs"] == [-1.0]
    assert [entry.remarks for entry in result.report if entry.span_id == "c"] == [["tokens_disagree"]]


def test_openinference_body_gives_id_tokens_and_messages():
    body = {"id": "x", "prompt_token_ids": [1], "choices": [{"token_ids": [2], "message": {"content": "hi"}}]}
    kind = {"openinference.span.kind": "LLM", "output.value": json.dumps(body)}
    made = outcome([session(), bare_call("c", "s", 1, 2, "ChatCompletion", **kind)])["triplets"][0]
    assert made["metadata"]["response_id"] == "x"
    assert (made["prompt"]["token_ids"], made["response"]["token_ids"]) == ([1], [2])
    assert made["response"]["raw_content"] == body["choices"]


def test_new_messages_give_images_of_every_dialect():
    parts = [
        {"type": "uri", "modality": "image", "uri": "u1"},
        {"type": "image_url", "image_url": {"url": "u2"}},
        {"type": "text", "content": "no"},
    ]
    text = json.dumps([{"role": "user", "parts": parts}])
    spans = [
        session(),
        call("c", "s", 1, 2, attributes={"gen_ai.input.messages": text, "gen_ai.prompt.name": "t"}),
    ]
    assert outcome(spans)["triplets"][0]["prompt"]["image_urls"] == ["u1", "u2"]


def test_failed_and_tokenless_calls_take_no_reward():
    spans = [
        session(),
        call("c1", "s", 1, 2),
        call("c2", "s", 3, 4, status={"status_code": "ERROR"}),
        call("c3", "s", 5, 6, attributes={"response_token_ids": []}),
        reward("r", "s", 7, 1.0),
    ]
    assert found(spans) == {"chatcmpl-c1": ("*", 1.0)}
    assert uses(spans)["c2"] == "failed_call"
    assert uses(spans)["c3"] == "no_token_ids"


def test_a_link_beats_time():
    linked = with_attributes(
        reward("r", "s", 9, 1.0),
        agentlightning__link__0__key_match="gen_ai.response.id",
        agentlightning__link__0__value_match="chatcmpl-c1",
    )
    spans = [session(), call("c1", "s", 1, 2), call("c2", "s", 3, 4), linked]
    assert found(spans) == {"chatcmpl-c1": ("*", 1.0), "chatcmpl-c2": ("*", None)}
    assert remarks(spans)["r"] == ["matched_by_link"]


def test_a_link_to_nothing_is_not_guessed():
    linked = with_attributes(
        reward("r", "s", 9, 1.0),
        agentlightning__link__0__key_match="span_id",
        agentlightning__link__0__value_match="nobody",
    )
    assert uses([session(), call("c1", "s", 1, 2), linked])["r"] == "reward_without_call"


def test_evaluations_are_rewards():
    by_id = span("e", None, 50, name="eval") | {
        "attributes": {
            "gen_ai.evaluation.name": "exact",
            "gen_ai.evaluation.score.value": 0.5,
            "gen_ai.response.id": "chatcmpl-c1",
        }
    }
    event = {"name": "gen_ai.evaluation.result", "attributes": {"gen_ai.evaluation.score.value": 2}}
    spans = [session(), call("c1", "s", 1, 2), call("c2", "s", 3, 4, events=[event]), by_id]
    made = outcome(spans)["triplets"]
    assert [item["metadata"]["rewards"] for item in made] == [{"exact": 0.5}, {"primary": 2.0}]
    assert uses(spans)["c2"] == "call"


def test_all_dimensions_survive_and_a_later_one_of_the_same_name_supersedes():
    second = reward("r2", "s", 8, 2.0)
    other = reward("r3", "s", 9, 3.0)
    other["attributes"]["agentlightning.reward.0.name"] = "style"
    spans = [
        session(),
        call("c0", "s", 0.5, 0.75),
        call("c", "s", 1, 2),
        reward("r1", "s", 7, 1.0),
        second,
        other,
    ]
    made = outcome(spans)["triplets"][1]
    assert (made["reward"], made["metadata"]["rewards"]) == (2.0, {"primary": 2.0, "style": 3.0})
    assert {key: use for key, use in uses(spans).items() if key.startswith("r")} == {
        "r1": "superseded_reward",
        "r2": "reward",
        "r3": "reward",
    }


def test_final_reward_stands_beside_those_of_calls():
    spans = [session(), call("c1", "s", 1, 2), reward("r", "s", 2.5, 0.1), call("c2", "s", 3, 4)]
    made = outcome(spans, final_reward=1.0)["triplets"]
    assert [item["reward"] for item in made] == [0.1, 1.0]
    assert [item["metadata"]["final_reward"] for item in made] == [1.0, 1.0]


def test_bad_spans_and_rewards_are_reported_not_fatal():
    lookalike = span("n", "s", 9, name=REWARD) | {"attributes": {"agentlightning.reward_note": "x"}}
    broken = span("b", "s", 9, name=REWARD) | {"attributes": {"agentlightning.reward.0.value": 1}}
    bare = call("c", "s", 1, 2, attributes={"gen_ai.prompt": "[]", "logprobs.content": "cut off ["})
    result = uses([session(), bare, lookalike, broken, {"span_id": 5}, "no span"])
    assert result["c"] == "call"
    assert result["n"] == "structure"
    assert result["b"] == "malformed_reward"
    assert result[""] == "malformed_span"


def test_logprobs_of_another_length_are_dropped_and_remarked():
    spans = [session(), call("c", "s", 1, 2, attributes={"logprobs.content": "[-1.0, -2.0]"})]
    assert outcome(spans)["triplets"][0]["response"]["logprobs"] is None
    assert remarks(spans)["c"] == ["logprobs_misaligned"]


def test_repair_works_on_every_level_and_with_parentless_rewards():
    spans = [
        session(),
        agent("g", "s", 0, 90, "graph"),
        agent("w", "g", 1, 10, "writer"),
        call("c", "g", 2, 3),
        call("f", "s", 4, 5),
        reward("r", None, 95, 1.0),
    ]
    assert found(spans) == {"chatcmpl-c": ("writer", None), "chatcmpl-f": ("writer", 1.0)}
    assert set(remarks(spans)) == {"c", "f", "r"}


def test_parallel_agents_are_not_guessed():
    spans = [session(), agent("a", "s", 0, 10, "one"), agent("b", "s", 1, 9, "two"), call("c", "s", 2, 3)]
    assert found(spans) == {"chatcmpl-c": ("*", None)}
    assert remarks(spans)["c"] == ["parent_ambiguous"]
    talk = {"gen_ai.conversation.id": "t"}
    shared = [spans[0], spans[1], with_attributes(agent("b", "s", 1, 9, "two")) | {}, call("c", "s", 2, 3)]
    shared[2]["attributes"] |= talk
    shared[3]["attributes"] |= talk
    assert found(shared) == {"chatcmpl-c": ("two", None)}


def test_a_parent_is_never_moved_below_its_own_child():
    spans = [session(), call("c", "s", 2, 3), agent("a", "c", 1, 9, "inner")]
    assert found(spans) == {"chatcmpl-c": ("*", None)}


def test_outer_spans_that_repeat_a_call_are_left_out():
    outer = call("o", "s", 1, 9)
    del outer["attributes"]["gen_ai.response.id"]
    assert uses([session(), outer, call("i", "o", 2, 3)]) == {
        "s": "structure",
        "o": "repeats_inner_call",
        "i": "call",
    }


def test_cycles_missing_parents_and_odd_times():
    spans = [
        span("a", "b"),
        span("b", "a"),
        call("c", "gone", 9, 1),
        call("d", "", 1, 2) | {"end_time": None},
    ]
    assert remarks(spans) == {
        "a": ["cycle_broken"],
        "c": ["missing_parent", "ends_before_start"],
        "d": ["times_unknown"],
    }


def test_attempts_are_not_mixed():
    second = [
        item | {"attempt_id": "zz"} for item in (session(), call("c2", "s", 5, 6), reward("r", "s", 9, 1.0))
    ]
    assert found([session(), call("c1", "s", 1, 2), *second]) == {
        "chatcmpl-c1": ("*", None),
        "chatcmpl-c2": ("*", 1.0),
    }
