"""Events of a version 1 gateway."""

import pytest

from trainer_export.traces.answers import answer


def asked(prompt=(1,), response=(2,), log_probs=None, **data):
    choice = {"token_ids": list(response)}
    if log_probs is not None:
        choice["logprobs"] = log_probs
    body = {"prompt_token_ids": list(prompt), "choices": [choice]}
    return event("model_request", {"response": body} | data)


def event(kind, data):
    return {"event_type": kind, "rollout_id": "ro", "attempt_id": "1", "timestamp": 1.0, "data": data}


def converted(*events):
    return answer("v1.events_to_triplets", {}, list(events))


def test_layout():
    result = converted(asked(), event("reward", {"value": 1, "message": "dropped", "source": "agent"}))
    data = {
        "prompt_token_ids": [1],
        "response_token_ids": [2],
        "response_log_probs": None,
        "server": {"model": None, "version": None},
    }
    assert result == {
        "triplet_events": [
            event("model_request", data),
            event("reward", {"value": 1, "source": "agent"}),
        ],
        "triplets": [
            {
                "prompt": {"token_ids": [1]},
                "response": {"token_ids": [2], "log_probs": None},
                "reward": 1.0,
                "metadata": {"server": {"model": None, "version": None}},
            }
        ],
        "final_reward": 1.0,
    }


def test_missing_attempt_is_attempt_0():
    bare = {"event_type": "note", "data": {"x": 1}}
    assert converted(bare)["triplet_events"] == [bare | {"attempt_id": "0"}]


def test_of_equal_prompts_the_last_is_kept_even_when_it_failed():
    result = converted(asked(response=(2,)), asked(response=(3,)), asked(prompt=(9,)))
    assert [item["response"]["token_ids"] for item in result["triplets"]] == [[3], [2]]
    assert converted(asked(), asked(response=(3,), status="error"))["triplets"] == []


def test_calls_without_prompt_ids_share_one_key():
    assert len(converted(asked(prompt=(), response=(1,)), asked(prompt=(), response=(2,)))["triplets"]) == 1


@pytest.mark.parametrize(
    "failed", [{"status": "error"}, {"http_status": 400}, {"http_status": 503, "status": "ok"}]
)
def test_failed_calls_are_no_triplets(failed):
    result = converted(asked(**failed))
    assert result["triplets"] == []
    assert {key: result["triplet_events"][0]["data"][key] for key in failed} == failed


def test_error_of_the_body_is_kept():
    body = event("model_request", {"response": {"error": {"message": "no"}}, "http_status": 500})
    data = converted(body)["triplet_events"][0]["data"]
    assert data["error"] == {"message": "no"}
    assert (data["prompt_token_ids"], data["response_token_ids"]) == ([], [])


def test_prompt_ids_may_stand_in_the_first_choice():
    body = {"choices": [{"prompt_token_ids": [4], "token_ids": [5]}]}
    assert converted(event("model_request", {"response": body}))["triplets"][0]["prompt"] == {
        "token_ids": [4]
    }


def test_chunks_of_a_stream():
    chunks = [
        {"prompt_token_ids": [1], "choices": [{"token_ids": [2]}]},
        {"prompt_token_ids": [9], "choices": [{"token_ids": [3]}]},
        {"choices": []},
    ]
    triplet = converted(event("model_request", {"response": chunks}))["triplets"][0]
    assert (triplet["prompt"], triplet["response"]) == (
        {"token_ids": [1]},
        {"token_ids": [2, 3], "log_probs": None},
    )


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ({"content": [{"logprob": -1}, {"logprob": -0.5}]}, [-1.0, -0.5]),
        ({"token_logprobs": [-1, -2.0]}, [-1.0, -2.0]),
        ({"content": [{"logprob": -1}, {}]}, None),
        ({"content": [{"logprob": float("-inf")}]}, None),
        ({"content": [{"logprob": "much"}]}, None),
        ({"token_logprobs": [None, -1.0]}, None),
        ({"content": []}, []),
        ([], None),
    ],
)
def test_log_probabilities_are_all_or_none(recorded, expected):
    assert converted(asked(log_probs=recorded))["triplets"][0]["response"]["log_probs"] == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(2, 2.0), (0.0, 0.0), (True, None), ("1", None), (None, None)]
)
def test_the_last_reward_event_wins(value, expected):
    result = converted(asked(), event("reward", {"value": 7}), event("reward", {"value": value}))
    assert result["final_reward"] == expected
    assert result["triplets"][0]["reward"] == expected


def test_bad_input():
    assert answer("v1.events_to_triplets", {}, "events")["error"]["type"] == "ValidationError"
    assert (
        converted(event("model_request", {"response": {"choices": [5]}}))["error"]["type"] == "AttributeError"
    )


def test_one_attempt_can_be_named():
    first, second = asked(), asked(prompt=(9,)) | {"attempt_id": "2"}
    named = answer("v1.events_to_triplets", {}, {"events": [first, second], "last_attempt_id": "2"})
    assert [item["prompt"]["token_ids"] for item in named["triplets"]] == [[9]]
    assert answer("v1.events_to_triplets", {"attempt_id": "2"}, [first, second]) == named
    assert len(converted(first, second)["triplets"]) == 2
