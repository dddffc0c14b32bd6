"""Random events and rollouts come out as the plain statement of version 1's rules has them."""

import json
from random import Random
from typing import Any

import pytest

from tests.traces.oracle import version_1
from trainer_export.traces.answers import answer

SEEDS = range(0, 2000, 200)
Json = dict[str, Any]


def ids(random: Random) -> list[int]:
    return [random.randrange(3) for _ in range(random.randrange(4))]


def log_probs(random: Random, count: int) -> list[float] | None:
    return random.choice([[-0.5] * count, [-0.5] * count, [-0.5] * count, None, [-1.0] * (count + 1)])


def rollout(random: Random, index: int) -> Json:
    triplets: list[Json] = []
    context: list[int] = []
    for _ in range(random.randrange(6)):
        prompt = context + ids(random) if random.random() < 0.7 else ids(random)
        response = ids(random)
        triplets.append(
            {
                "prompt": {"token_ids": prompt},
                "response": {"token_ids": response, "log_probs": log_probs(random, len(response))},
            }
        )
        context = random.choice([prompt + response, context])
    order = {"step": random.randrange(2), "sample_idx_in_step": index}
    return {**order, "triplets": triplets, "final_reward": random.choice([None, 0.0, 1.5])}


def event(random: Random) -> Json:
    made: Json = {"event_type": random.choice(["model_request"] * 4 + ["reward", "note"]), "timestamp": 1.0}
    if random.random() < 0.5:
        made["attempt_id"] = random.choice(["0", "1"])
    value = random.choice([0, 1.5, True, "1", None])
    rewards: list[Json] = [{"value": value}, {"value": value, "source": "s", "message": "m"}, {"reason": "r"}]
    data = {"model_request": request(random), "reward": random.choice(rewards), "note": {"x": 1}}
    return made | {"data": data[made["event_type"]]}


def request(random: Random) -> Json:
    made: Json = {"model": "m", "latency_ms": 3, "response": response(random)}
    if random.random() < 0.6:
        made["server"] = random.choice([{}, {"model": "m"}, {"model": "m", "version": 2, "url": "u"}])
    if random.random() < 0.4:
        made["status"] = random.choice(["ok", "ok", "error"])
    if random.random() < 0.4:
        made["http_status"] = random.choice([200, 200, 400, 500])
    return made


def response(random: Random) -> Any:
    if random.random() < 0.2:
        chunks: list[Json] = [{"prompt_token_ids": ids(random)}, {"choices": []}]
        return [*chunks, *({"choices": [{"token_ids": ids(random)}]} for _ in range(random.randrange(3)))]
    number = random.choice([-0.5, -0.5, -0.5, None, "x", float("nan")])
    choice: Json = {
        "token_ids": ids(random),
        "logprobs": random.choice(
            [None, {}, {"content": [{"logprob": -0.25}, {"logprob": number}]}, {"token_logprobs": [number]},
             {"content": []}, {"content": [{}]}]
        ),
    }  # fmt: skip
    if random.random() < 0.3:
        del choice["token_ids"]
    if random.random() < 0.3:
        choice["prompt_token_ids"] = ids(random)
    bodies: list[Any] = [
        {"prompt_token_ids": ids(random), "choices": [choice]},
        {"choices": [choice, {"token_ids": [9]}]},
        {"error": {"message": "no"}},
        {"prompt_token_ids": ids(random), "choices": []},
        None,
    ]
    return random.choice([bodies[0], bodies[0], *bodies])


def plain_rows(source: list[Json], options: Json) -> Json:
    """As the command prints it."""
    try:
        return version_1.rows(source, options)
    except RuntimeError as error:
        return {"error": {"type": "RuntimeError", "message": str(error)}}


@pytest.mark.parametrize("first", SEEDS)
def test_rows(first: int) -> None:
    for seed in range(first, first + 200):
        random = Random(seed)
        source = [rollout(random, index) for index in range(random.randrange(1, 4))]
        random.shuffle(source)
        options = {
            "level": random.choice(["transition", "trajectory", "trajectory"]),
            "max_prompt_length": random.choice([2, 5, 2048]),
            "max_response_length": random.choice([1, 3, 8192]),
        }
        found = answer("v1.rollout_rows", options, source)
        assert found == plain_rows(source, options), (seed, source)


@pytest.mark.parametrize("first", SEEDS)
def test_events(first: int) -> None:
    for seed in range(first, first + 200):
        random = Random(seed)
        source = [event(random) for _ in range(random.randrange(7))]
        found = json.dumps(answer("v1.events_to_triplets", {}, source), sort_keys=True)
        assert found == json.dumps(version_1.events(source), sort_keys=True), (seed, source)
