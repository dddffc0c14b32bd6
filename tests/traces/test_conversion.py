"""One call -> one triplet."""

import json

import pytest

from trainer_export.traces.conversion.call import triplet_of

OUTPUT = "agentlightning.operation.output"


def converted(**attributes):
    return triplet_of({key.replace("__", "."): value for key, value in attributes.items()}, "*").to_json()


def test_a_call_without_anything():
    assert converted() == {
        "prompt": {"token_ids": [], "raw_content": None, "image_urls": []},
        "response": {"token_ids": [], "raw_content": None},
        "reward": None,
        "metadata": {"request": None, "response": None, "response_id": None, "agent_name": "*"},
    }


RESPONSE_CANDIDATES = [
    "response_token_ids",
    f"{OUTPUT}.response_token_ids.0",
    f"{OUTPUT}.choices.0.token_ids",
    f"{OUTPUT}.choices.0.provider_specific_fields.token_ids",
]


@pytest.mark.parametrize("position", range(4))
def test_response_ids_come_from_the_first_candidate(position):
    attributes = {name: [index] for index, name in enumerate(RESPONSE_CANDIDATES) if index >= position}
    assert triplet_of(attributes, "*").response["token_ids"] == [position]


@pytest.mark.parametrize("wrong", ["[1]", [1.0], ["1"], 7, "x"])
def test_ids_of_a_wrong_type_are_passed_over(wrong):
    assert triplet_of({"prompt_token_ids": wrong, f"{OUTPUT}.prompt_token_ids": [5]}, "*").prompt[
        "token_ids"
    ] == [5]


def test_an_empty_list_is_a_hit():
    assert (
        triplet_of({"prompt_token_ids": [], f"{OUTPUT}.prompt_token_ids": [5]}, "*").prompt["token_ids"] == []
    )


def test_lists_and_gaps():
    made = converted(
        gen_ai__prompt__0__role="user", gen_ai__prompt__2__role="tool", gen_ai__completion__0__role="a"
    )
    assert made["prompt"]["raw_content"] == {"0": {"role": "user"}, "2": {"role": "tool"}}
    assert made["response"]["raw_content"] == [{"role": "a"}]


def test_only_the_plain_digits_from_zero_make_a_list():
    made = converted(gen_ai__prompt__00__role="user", gen_ai__completion__1__role="a")
    assert made["prompt"]["raw_content"] == {"00": {"role": "user"}}
    assert made["response"]["raw_content"] == {"1": {"role": "a"}}


def test_metadata_is_taken_whole_from_the_first_prefix_that_has_anything():
    made = triplet_of(
        {
            "agentlightning.operation.input.messages.0.role": "user",
            "agentlightning.operation.input.model": "m",
            f"{OUTPUT}.choices.0.index": 0,
            f"{OUTPUT}.prompt_token_ids": [1],
            f"{OUTPUT}.id": "w",
            "gen_ai.response.model": "g",
        },
        "*",
    )
    assert made.metadata["request"] == {"model": "m"}
    assert made.metadata["response"] == {"model": "g"}
    assert made.prompt["raw_content"] == [{"role": "user"}]
    assert made.response["raw_content"] == [{"index": 0}]


def test_a_bare_prefix_aborts_only_when_it_is_reached():
    with pytest.raises(ValueError, match=r"prefix: gen_ai\.prompt$"):
        triplet_of({"gen_ai.prompt": "[]"}, "*")
    bare_second = {"gen_ai.prompt.0.role": "user", "agentlightning.operation.input.messages": "[]"}
    with pytest.raises(ValueError, match="prefix"):
        triplet_of({"agentlightning.operation.input.messages": "[]"}, "*")
    assert triplet_of(bare_second, "*").prompt["raw_content"] == [{"role": "user"}]


def test_the_later_of_scalar_and_branch_wins():
    assert triplet_of({"gen_ai.request.a": 1, "gen_ai.request.a.b": 2}, "*").metadata["request"] == {
        "a": {"b": 2}
    }
    assert triplet_of({"gen_ai.request.a.b": 2, "gen_ai.request.a": 1}, "*").metadata["request"] == {"a": 1}


def test_images_of_list_text_and_numbered_content():
    parts = [image("u1"), 3, {"type": "text"}, {"type": "image_url", "image_url": 4}]
    made = triplet_of(
        {
            "gen_ai.prompt.10.content": json.dumps([image("u2")]),
            "gen_ai.prompt.9.content": json.dumps(parts),
            "gen_ai.prompt.11.content": "plain text",
            "gen_ai.prompt.prompt_filter_results": "x",
        },
        "*",
    )
    assert made.prompt["image_urls"] == ["u1", "u2"]


def image(url):
    return {"type": "image_url", "image_url": {"url": url}}


def test_an_image_url_of_any_type_is_kept():
    content = '[{"type": "image_url", "image_url": {"url": null}}]'
    assert triplet_of({"gen_ai.prompt.content": content}, "*").prompt["image_urls"] == [None]


def test_logprobs_are_parsed_text_and_bad_text_aborts():
    assert triplet_of({"logprobs.content": '[{"logprob": -1}]'}, "*").response["logprobs"] == [
        {"logprob": -1}
    ]
    assert "logprobs" not in triplet_of({"logprobs.content": [-1.0]}, "*").response
    with pytest.raises(ValueError, match="Expecting value"):
        triplet_of({"logprobs.content": "nothing"}, "*")
