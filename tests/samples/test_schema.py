"""The native schema: real rows fit it, broken ones are named, and our validator agrees with the published
one."""

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sessions_app.json_text import dumps
from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import session_rows
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.schema import SAMPLE_SCHEMA
from trainer_export.samples.validate import problems
from trainer_export.samples.values import Reward, SessionForest, Speculative

jsonschema = pytest.importorskip("jsonschema")

HOOKS = resolve_hooks("keep_all", "default")
ONE_LAYER = replace(RULES, r3_layers=1)


def a_session() -> SessionForest:
    payload = np.arange(3 * 2, dtype="<i4").tobytes()
    return forest_of(
        turn(0, None, [1, 2], [3, 4], routed_experts=payload, speculative=Speculative(1, 2, 3, 4)),
        turn(1, 0, [5], [6], routed_experts=np.arange(5 * 2, dtype="<i4").tobytes(), weight_version="7"),
        turn(2, 0, [7], [8, 9], finish_reason="length", rewards=(Reward("r", 1.0),), agent="a"),
        turn(3, 2, [10], [11]),
        rewards=(Reward("session", 0.5),),
        labels={"task": "x"},
        group_id="g",
        healer={"healed_turns": 1, "healed_prefix_tokens": 2, "nonlinear": 0, "close_unresolved": 0},
        causes={"fork": {"message_edited": 1}},
        finish_metadata={"odd": [None, "\ud800", 2**70]},
    )


def rows() -> list[SampleRow]:
    return session_rows(a_session(), HOOKS, ONE_LAYER, SamplesArguments()).rows


def documents() -> list[dict[str, Any]]:
    return [json.loads(dumps(row.to_json())) for row in rows()]


def test_the_schema_itself_is_valid():
    jsonschema.Draft202012Validator.check_schema(SAMPLE_SCHEMA)


def test_real_rows_fit_as_arrays_and_as_json():
    assert len(rows()) == 2
    for row, document in zip(rows(), documents(), strict=True):
        assert problems(row.to_json()) == []
        assert problems(document) == []
        jsonschema.Draft202012Validator(SAMPLE_SCHEMA).validate(document)


def test_every_field_of_the_schema_is_filled_by_a_row_and_none_else():
    assert set(SAMPLE_SCHEMA["properties"]) == set(documents()[0])


def test_what_a_row_says():
    first, second = documents()
    assert first["sample_id"] == "f" * 32 + ":1"
    assert first["rollout_id"] == "f" * 32
    assert (second["stopped_at"], second["stopped_reason"]) == (2, "replay_missing")
    assert second["masked"] == {"trained_elsewhere": 2, "replay_missing": 3}
    assert second["metadata"]["linear_healer"]["healed_turns"] == 1
    assert second["metadata"]["history_causes"] == {"fork": {"message_edited": 1}}
    assert second["metadata"]["odd"] == [None, "\ud800", 2**70]
    assert "accumulated_token_ids" not in second["metadata"]
    assert second["reward"] == 0.5
    rows_of_experts = first["routed_experts"]
    assert rows_of_experts["shape"] == [5, 1, 2]
    assert np.frombuffer(base64.b64decode(rows_of_experts["base64"]), "<i4").tolist() == list(range(10))
    assert first["speculative"] == {
        "accepted": 1,
        "drafted": 2,
        "verifications": 3,
        "completion_tokens": 4,
    }


def setting(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = to

    return change


def dropping(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.pop(key)


SHAPES = [
    dropping("tokens"),
    dropping("leaf_count"),
    setting("extra", to=1),
    setting("schema", to="tito.sample/2"),
    setting("session_id", to="nope"),
    setting("tokens", to=[]),
    setting("tokens", 0, to=-1),
    setting("tokens", 0, to=1.5),
    setting("tokens", 0, to="1"),
    setting("tokens", to="1234567"),
    setting("loss_mask", 0, to=2),
    setting("loss_mask", 0, to=None),
    setting("logprobs", 0, to=None),
    setting("status", to="failed"),
    setting("stopped_reason", to="bored"),
    setting("leaf", to=None),
    setting("leaf", to=True),
    setting("path", to=[]),
    setting("reward_weight", to=1),
    setting("rewards", 0, "value", to="1"),
    setting("turns", 0, "kept", to=-1),
    setting("turns", 0, to={}),
    setting("masked", to={"mood": 1}),
    setting("masked", to={"context": 0}),
    setting("labels", to={"a": 1}),
    setting("metadata", to=[]),
    setting("routed_experts", "shape", to=[1, 2]),
    setting("routed_experts", "dtype", to="int64"),
    setting("speculative", to=[]),
    setting("rollout_weight", to=0),
    setting("rollout_weight", to=2),
    setting("leaf_count", to=0),
]


@pytest.mark.parametrize("change", SHAPES, ids=range(len(SHAPES)))
def test_a_document_of_another_shape_is_refused_by_both_validators(change: Any):
    document = documents()[0]
    change(document)
    assert problems(document)
    assert not jsonschema.Draft202012Validator(SAMPLE_SCHEMA).is_valid(document)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (setting("response_length", to=100), "response_length 100 exceeds the 6 tokens"),
        (setting("loss_mask", to=[1]), "loss_mask has 1 values, response_length is 4"),
        (setting("logprobs", to=[0.0]), "logprobs has 1 values, response_length is 4"),
        (setting("logprobs", 0, to=float("nan")), "logprobs are not all finite"),
        (setting("routed_experts", "shape", to=[4, 1, 2]), "routed_experts has 4 rows for 6 tokens"),
        (setting("trained", to=2), "trained is 2, the mask trains 3"),
        (setting("generated", to=9), "generated is not trained plus masked"),
        (setting("turns", 0, "completion_length", to=9), "generated is not the sum over the turns"),
        (setting("loss_mask", to=[1, 1, 1, 1]), "the mask trains tokens that nothing sampled"),
        (setting("loss_mask", to=[1, 0, 0, 1]), "turn 0 does not train what it says"),
        (setting("turns", 0, "kept", to=3), "turn 0 keeps more than it sampled"),
        (setting("turns", 1, "prompt_length", to=1), "turn 1 lies outside of the response"),
        (setting("path", to=[0, 2]), "path, turns and leaf disagree"),
        (setting("leaf", to=0), "path, turns and leaf disagree"),
        (setting("stopped_at", to=0), "stopped_at and stopped_reason belong together"),
        (setting("leaf_index", to=1), "leaf_index is not below leaf_count"),
        (setting("leaf_count", to=3), "rollout_weight is not 1 / leaf_count"),
    ],
)
def test_a_document_that_contradicts_itself_is_refused(change: Any, text: str):
    document = documents()[0]
    change(document)
    assert text in problems(document)


@pytest.mark.parametrize("document", [None, [], "x", 1])
def test_what_is_no_object_is_refused(document: Any):
    assert problems(document)


def test_a_long_row_is_checked_in_milliseconds():
    forest = forest_of(turn(0, None, [1] * 50_000, [2] * 50_000))
    (row,) = session_rows(forest, HOOKS, RULES).rows
    document = row.to_json()
    start = time.perf_counter()
    assert problems(document) == []
    assert time.perf_counter() - start < 0.1
