"""Every recorded samples reply of the reference, reproduced from what its engine was fed and answered."""

import orjson
import pytest

from sessions_app.errors import BadRequest, SamplesFailed
from tests.samples.byte_tokenizer import decode
from tests.samples.vector_sessions import VECTORS, SamplesRow, samples_rows, without_times
from trainer_export.samples.arguments import parse_arguments
from trainer_export.samples.codec import decode_samples, encode_samples
from trainer_export.samples.codec.safetensors import read
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.payload import SamplesPayload, samples_payload
from trainer_export.samples.rules import AssemblyRules

FILES = sorted(path.name for path in VECTORS.glob("v[12]_*.jsonl") if '/samples"' in path.read_text())
ROWS = [pytest.param(row, id=f"{name}:{row.line}") for name in FILES for row in samples_rows(name)]
HOOKS = resolve_hooks("drop_retries", "default")


def payload_of(row: SamplesRow) -> SamplesPayload:
    recorded = row.response.get("samples", {"meta": {"samples": [], "session_metadata": {}}})["meta"]
    metadata = {key: value for key, value in recorded["session_metadata"].items() if key != "agent"}
    mismatches = {
        sample["metadata"]["leaf"]["node_id"]: sample["metadata"]["tito_session_mismatch"]
        for sample in recorded["samples"]
        if "leaf" in sample["metadata"]
    }
    forest = row.recorded.forest(metadata=metadata, mismatches=mismatches)
    return samples_payload(forest, parse_arguments(row.body), HOOKS, AssemblyRules(decode))


@pytest.mark.parametrize("row", [param for param in ROWS if param.values[0].response["status"] == 200])
def test_payload_equals_the_recorded_one(row: SamplesRow):
    blob = encode_samples(payload_of(row))
    arrays = read(blob)
    meta = orjson.loads(arrays.pop("_samples_meta").tobytes())
    expected = row.response["samples"]
    assert without_times(meta)["samples"] == expected["meta"]["samples"]
    assert meta["session_metadata"] == expected["meta"]["session_metadata"]
    assert meta["empty_reason"] == expected["meta"]["empty_reason"]
    assert {
        name: {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.tolist()}
        for name, array in arrays.items()
    } == expected["tensors"]
    assert [list(sample) for sample in meta["samples"]] == [
        list(sample) for sample in expected["meta"]["samples"]
    ]
    assert len(decode_samples(blob).samples) == len(meta["samples"])


@pytest.mark.parametrize("row", [param for param in ROWS if param.values[0].response["status"] == 422])
def test_refusal_has_the_recorded_text_with_our_hook_names(row: SamplesRow):
    with pytest.raises(SamplesFailed) as refusal:
        payload_of(row)
    expected = row.response["text"]
    expected = expected.replace("miles.rollout.session.v2.picker_hub.drop_retries", "drop_retries")
    expected = expected.replace("miles.rollout.session.v2.postprocessor_hub.default_postprocess", "default")
    assert str(refusal.value) == expected


@pytest.mark.parametrize("row", [param for param in ROWS if param.values[0].response["status"] == 500])
def test_what_crashed_the_reference_is_a_clear_refusal(row: SamplesRow):
    with pytest.raises(BadRequest) as refusal:
        payload_of(row)
    assert str(refusal.value)


def test_all_three_kinds_of_rows_are_there():
    statuses = [param.values[0].response["status"] for param in ROWS]
    assert [statuses.count(status) for status in (200, 422, 500)] == [34, 3, 3]
