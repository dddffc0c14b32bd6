"""Spans of the LLM proxy, ordered by sequence id."""

import pytest

from tests.traces.making import reward, span, triplets

P = "llm.hosted_vllm."
ADAPTER = "LlmProxyTraceToTriplet"


def raw(span_id, sequence, prompt="[1, 2]", response="[[3]]", **attributes):
    found = {f"{P}prompt_token_ids": prompt, f"{P}response_token_ids": response, f"{P}id": f"id-{span_id}"}
    return span(span_id, None, 1.0, 2.0, "raw_gen_ai_request", sequence) | {"attributes": found | attributes}


def graded(span_id, sequence, value):
    return reward(span_id, None, 1.0, value) | {"sequence_id": sequence}


def result(*spans):
    return triplets(list(spans), ADAPTER)


def test_nothing_in_nothing_out():
    assert result() == []


def test_layout():
    assert result(raw("a", 1)) == [
        {
            "prompt": {"token_ids": [1, 2]},
            "response": {"token_ids": [3]},
            "reward": None,
            "metadata": {"response_id": "id-a"},
        }
    ]


def test_real_lists_and_the_other_span_name():
    plain = span("b", None, 1.0, 2.0, "litellm_request", 2, prompt_token_ids=[4], response_token_ids="[5]")
    assert [item["prompt"]["token_ids"] for item in result(plain, raw("a", 1, prompt=[9]))] == [[9], [4]]


def test_response_ids_from_choices():
    choices = "[{'token_ids': [7, 8], 'text': 'x'}]"
    assert result(raw("a", 1, response="[]", **{f"{P}choices": choices}))[0]["response"] == {
        "token_ids": [7, 8]
    }


@pytest.mark.parametrize("prompt", ["(1, 2)", "[1, nan]", "[1, 2", "[1.5]", "[]", "__import__('os')"])
def test_what_is_no_list_of_ids_skips_the_span(prompt):
    assert result(raw("a", 1, prompt=prompt)) == []


def test_a_repeated_id_is_one_call_and_calls_without_id_are_all_kept():
    same = {f"{P}id": "x"}
    none = {f"{P}id": ""}
    found = result(raw("a", 1, **same), raw("b", 2, **same), raw("c", 3, **none), raw("d", 4, **none))
    assert [item["metadata"]["response_id"] for item in found] == ["x", None, None]


def test_rewards_need_a_smaller_sequence_and_backfill():
    spans = [raw("a", 1), raw("b", 2), graded("r", 2, 0.5), graded("q", 3, 1.0), graded("p", 4, 2.0)]
    assert [item["reward"] for item in result(*spans)] == [0.5, 1.0]


def test_equal_sequence_with_an_unknown_start_raises():
    answer = result(raw("a", 1), raw("b", 1) | {"start_time": None})
    assert answer["error"]["type"] == "TypeError"


def test_order_of_arrival_does_not_matter():
    spans = [raw(f"s{index}", index) for index in range(6)] + [graded("r", 3, 1.0)]
    assert result(*reversed(spans)) == result(*spans)
