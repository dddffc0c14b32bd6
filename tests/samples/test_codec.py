"""The wire format: byte-equal to recorded payloads, loud about what does not fit it."""

import base64
import json
from typing import Any

import numpy as np
import orjson
import pytest
from safetensors.numpy import load, save

from sessions_app.errors import SamplesFailed
from tests.samples.builders import payload_of_samples, sample_of, turn
from tests.samples.vector_sessions import VECTORS
from trainer_export.samples.codec import decode_samples, encode_json, encode_samples
from trainer_export.samples.codec.safetensors import read, write

CASES = [
    pytest.param(json.loads(line), id=json.loads(line)["case"])
    for line in (VECTORS / "codec_payloads.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("case", CASES)
def test_recorded_payload_decodes_to_its_recorded_content(case: dict[str, Any]):
    decoded = decode_samples(base64.b64decode(case["payload_base64"]))
    meta, tensors = case["decoded"]["meta"], case["decoded"]["tensors"]
    assert decoded.session_metadata == meta["session_metadata"]
    assert decoded.empty_reason == meta["empty_reason"]
    assert len(decoded.samples) == len(meta["samples"])
    for index, (sample, entry) in enumerate(zip(decoded.samples, meta["samples"], strict=True)):
        assert {key: sample[key] for key in entry if key != "nulls"} == {
            key: value for key, value in entry.items() if key != "nulls"
        }
        assert all(sample[name] is None for name in entry["nulls"])
        for name in ("tokens", "loss_mask", "rollout_log_probs"):
            assert sample[name].tolist() == tensors[f"{name}.{index}"]["data"]


@pytest.mark.parametrize("case", CASES)
def test_recorded_payload_is_written_again_byte_by_byte(case: dict[str, Any]):
    blob = base64.b64decode(case["payload_base64"])
    arrays = read(blob)
    assert sorted(arrays) == case["tensor_names"]
    assert write(arrays) == blob
    assert orjson.dumps(orjson.loads(arrays["_samples_meta"].tobytes())) == arrays["_samples_meta"].tobytes()


def test_layout_is_the_one_of_the_formats_own_library():
    rows = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    arrays = {
        "tokens.10": np.arange(4),
        "tokens.2": np.arange(3),
        "rollout_routed_experts.0": rows,
        "rollout_log_probs.0": np.array([-0.5]),
        "loss_mask.0": np.array([1], dtype=np.uint8),
        "empty.0": np.zeros((0, 2, 0), dtype=np.int32),
    }
    assert write(arrays) == save(arrays)
    assert {name: array.tolist() for name, array in load(write(arrays)).items()} == {
        name: array.tolist() for name, array in arrays.items()
    }


def test_round_trip_keeps_replay_rows_and_null_fields():
    sample = sample_of(turn(0, None, [1, 2], [3, 4]))
    sample.rollout_routed_experts = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    sample.loss_mask = None
    (decoded,) = decode_samples(encode_samples(payload_of_samples(sample))).samples
    assert decoded["rollout_routed_experts"].tolist() == sample.rollout_routed_experts.tolist()
    assert decoded["loss_mask"] is None
    assert decoded["rollout_indexer_topk"] is None
    assert decoded["tokens"].dtype == np.int64
    assert decoded["tokens"].tolist() == [1, 2, 3, 4]


def test_reward_stands_between_metadata_and_nulls_only_where_hooks_ran():
    sample = sample_of(turn(0, None, [1], [2]))
    sample.reward = {"a": 1}
    fields = []
    for with_reward in (True, False):
        blob = encode_samples(payload_of_samples(sample, with_reward=with_reward))
        fields.append(list(orjson.loads(read(blob)["_samples_meta"].tobytes())["samples"][0]))
    common = ["response", "response_length", "status", "weight_versions", "prefix_cache_info", "metadata"]
    assert fields == [[*common, "reward", "nulls"], [*common, "nulls"]]


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("loss_mask", [-1], "loss_mask values do not fit wire dtype uint8"),
        ("loss_mask", [256], "loss_mask values do not fit wire dtype uint8"),
        ("loss_mask", [0.5], "loss_mask values do not fit wire dtype uint8"),
        ("loss_mask", [None], "loss_mask values do not fit wire dtype uint8"),
        ("loss_mask", ["1"], "loss_mask values do not fit wire dtype uint8"),
        ("loss_mask", [[1]], "loss_mask values do not fit wire dtype uint8"),
        ("tokens", [2**63], "tokens values do not fit wire dtype int64"),
        ("tokens", [2**70], "tokens values do not fit wire dtype int64"),
        ("tokens", [1.5], "tokens values do not fit wire dtype int64"),
        ("rollout_log_probs", [None], "rollout_log_probs values do not fit wire dtype float64"),
        ("rollout_log_probs", [1j], "rollout_log_probs values do not fit wire dtype float64"),
        (
            "rollout_routed_experts",
            np.zeros((1, 1, 1), dtype=np.int64),
            "rollout_routed_experts must have dtype int32, got int64",
        ),
        (
            "rollout_indexer_topk",
            np.zeros((1, 1, 1), dtype=np.float32),
            "rollout_indexer_topk must have dtype int32, got float32",
        ),
        (
            "rollout_indexer_topk",
            np.zeros(1, dtype=np.int32),
            "rollout_indexer_topk must have 3 dimensions, got 1",
        ),
    ],
)
def test_value_that_does_not_fit_the_wire_is_refused(field: str, value: Any, text: str):
    sample = sample_of(turn(0, None, [1], [2]))
    setattr(sample, field, value)
    for encode in (encode_samples, encode_json):
        with pytest.raises(SamplesFailed) as refusal:
            encode(payload_of_samples(sample))
        assert str(refusal.value) == text


@pytest.mark.parametrize("value", [[1], [True], [1.0], np.array([1], dtype=np.int64), []])
def test_equal_number_types_fit(value: Any):
    sample = sample_of(turn(0, None, [1], [2]))
    sample.loss_mask = value
    (decoded,) = decode_samples(encode_samples(payload_of_samples(sample))).samples
    assert decoded["loss_mask"].tolist() == [int(item) for item in value]


def test_metadata_that_is_no_json_is_refused_and_odd_json_survives():
    sample = sample_of(turn(0, None, [1], [2]))
    sample.metadata = {"big": 2**80, "half": "\ud800", "ids": np.array([1, 2], dtype=np.int32)}
    (decoded,) = decode_samples(encode_samples(payload_of_samples(sample))).samples
    assert decoded["metadata"]["ids"] == [1, 2]
    sample.metadata = {"what": object()}
    with pytest.raises(SamplesFailed):
        encode_samples(payload_of_samples(sample))


def blob_of(meta: Any, **tensors: Any) -> bytes:
    text = meta if isinstance(meta, bytes) else json.dumps(meta).encode()
    return write({"_samples_meta": np.frombuffer(text, dtype=np.uint8), **tensors})


ENTRY = {
    "response": "",
    "response_length": 0,
    "status": "completed",
    "weight_versions": [],
    "prefix_cache_info": {},
    "metadata": {},
    "nulls": ["tokens", "loss_mask", "rollout_log_probs", "rollout_routed_experts", "rollout_indexer_topk"],
}


def reply(*samples: Any) -> dict[str, Any]:
    return {"samples": list(samples), "session_metadata": {}, "empty_reason": None}


IDS = np.arange(2)


@pytest.mark.parametrize(
    "blob",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff" * 20, id="no header"),
        pytest.param(write({}), id="no meta tensor"),
        pytest.param(write({"_samples_meta": np.zeros((1, 1), np.uint8)}), id="meta of rank two"),
        pytest.param(write({"_samples_meta": np.zeros(1, np.int32)}), id="meta of another dtype"),
        pytest.param(blob_of(b"{"), id="meta is no JSON"),
        pytest.param(blob_of([]), id="meta is a list"),
        pytest.param(blob_of({"session_metadata": {}, "empty_reason": None}), id="no samples"),
        pytest.param(blob_of({"samples": [], "session_metadata": []}), id="session metadata is a list"),
        pytest.param(blob_of(reply(1)), id="sample is a number"),
        pytest.param(blob_of(reply({**ENTRY, "metadata": None})), id="metadata is null"),
        pytest.param(blob_of(reply({**ENTRY, "metadata": [1]})), id="metadata is a list"),
        pytest.param(blob_of(reply({k: v for k, v in ENTRY.items() if k != "nulls"})), id="no nulls"),
        pytest.param(blob_of(reply({k: v for k, v in ENTRY.items() if k != "status"})), id="no status"),
        pytest.param(blob_of(reply({**ENTRY, "nulls": ["response"]})), id="null marker of no tensor"),
        pytest.param(blob_of(reply({**ENTRY, "nulls": ENTRY["nulls"][1:]})), id="promised tensor missing"),
        pytest.param(blob_of(reply(ENTRY), **{"tokens.0": IDS}), id="tensor of a null field"),
        pytest.param(blob_of(reply(), **{"tokens.0": IDS}), id="tensor of no sample"),
        pytest.param(blob_of(reply(), other=IDS), id="foreign tensor"),
        pytest.param(
            blob_of(reply({**ENTRY, "nulls": ENTRY["nulls"][1:]}), **{"tokens.0": IDS.astype(np.int32)}),
            id="wrong dtype",
        ),
        pytest.param(
            blob_of(reply({**ENTRY, "nulls": ENTRY["nulls"][1:]}), **{"tokens.0": IDS.reshape(1, 2)}),
            id="wrong rank",
        ),
        pytest.param(blob_of(reply(ENTRY))[:-1], id="cut short"),
        pytest.param(blob_of(reply(ENTRY)) + b"x", id="too long"),
    ],
)
def test_decoder_refuses_what_is_not_the_format(blob: bytes):
    with pytest.raises(SamplesFailed):
        decode_samples(blob)


def test_decoder_ignores_unknown_keys():
    (sample,) = decode_samples(blob_of(reply({**ENTRY, "spec_info": 1, "reward": 2}))).samples
    assert sample["reward"] == 2
    assert "spec_info" not in sample


def test_json_form_carries_the_tensors_inside_the_sample():
    sample = sample_of(turn(0, None, [1, 2], [3]))
    document = json.loads(encode_json(payload_of_samples(sample)))
    assert document["samples"][0]["tokens"] == [1, 2, 3]
    assert document["samples"][0]["rollout_routed_experts"] is None
    assert document["empty_reason"] is None
