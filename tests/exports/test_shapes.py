"""Shapes against what their trainers define: types in Parquet, padding, masks, where the reward stands; and
that the validator sees what is wrong.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.samples.builders import RULES, forest_of, turn
from trainer_export.batches import verl_batch
from trainer_export.jobs.rows import Frozen, batches
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import session_rows
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.values import Reward
from trainer_export.shapes import SHAPES
from trainer_export.shapes.base import Place, Row
from trainer_export.shapes.checking import problems_of
from trainer_export.writers import open_writer, parquet
from trainer_export.writers.reading import read_rows

LONGS, FLOATS = pa.list_(pa.int64()), pa.list_(pa.float32())
PLACE = Place(0, 0, 0)


def native() -> SampleRow:
    """A completion, an observation, a second completion; rewarded, with replay rows."""
    replay = np.arange(7 * 2, dtype="<i4").tobytes()
    forest = forest_of(
        turn(0, None, [1, 2], [3, 4], routed_experts=np.arange(3 * 2, dtype="<i4").tobytes()),
        turn(1, 0, [5, 6], [7, 8], routed_experts=replay, weight_version="3"),
        rewards=(Reward("reward", 0.5),),
    )
    hooks = resolve_hooks("keep_all", "default")
    (row,) = session_rows(forest, hooks, replace(RULES, r3_layers=2)).rows
    return row


def cut(name: str) -> Row:
    (row,) = SHAPES[name].cut(native(), PLACE)
    return row


def types(name: str) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in parquet.schema_of(SHAPES[name])}


def test_a_row_for_verl_is_one_row_of_a_dataproto() -> None:
    row = cut("verl")
    assert row["prompts"].tolist() == [1, 2]
    assert row["responses"].tolist() == [3, 4, 5, 6, 7, 8]
    assert np.asarray(row["response_mask"]).tolist() == [1, 1, 0, 0, 1, 1]
    assert row["attention_mask"].tolist() == [1] * 8
    assert row["position_ids"].tolist() == list(range(8))
    assert row["rm_scores"].tolist() == [0, 0, 0, 0, 0, 0.5]
    assert np.asarray(row["rollout_log_probs"])[[2, 3]].tolist() == [0.0, 0.0]
    found = types("verl")
    tensors = ("prompts", "responses", "input_ids", "attention_mask", "position_ids", "response_mask")
    assert {name: found[name] for name in tensors} == dict.fromkeys(tensors, LONGS)
    assert (found["rollout_log_probs"], found["rm_scores"]) == (FLOATS, FLOATS)


def test_a_batch_read_from_parquet_is_padded_as_a_dataproto_is(tmp_path: Path) -> None:
    """Prompts left, responses right; positions count what is attended to, from 0."""
    written(tmp_path, "parquet", "verl", [cut("verl")])
    (read,) = read_rows("parquet", tmp_path / "x.parquet", SHAPES["verl"])
    tensors, others = verl_batch([read, read], 99, prompt_length=4, response_length=8)
    attended = tensors["attention_mask"][0]
    assert attended.tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    assert tensors["input_ids"][0].tolist() == [99, 99, 1, 2, 3, 4, 5, 6, 7, 8, 99, 99]
    assert tensors["position_ids"][0].tolist() == np.clip(np.cumsum(attended) - 1, 0, None).tolist()
    assert tensors["response_mask"][0].tolist() == [1, 1, 0, 0, 1, 1, 0, 0]
    assert tensors["rm_scores"][0].tolist() == [0, 0, 0, 0, 0, 0.5, 0, 0]
    assert {tensors[name].dtype for name in ("rm_scores", "rollout_log_probs")} == {np.dtype(np.float32)}
    assert others["uid"].tolist() == ["f" * 32] * 2


def test_a_row_for_trl() -> None:
    row, found = cut("trl"), types("trl")
    assert (row["prompt_ids"].tolist(), row["completion_ids"].tolist()) == ([1, 2], [3, 4, 5, 6, 7, 8])
    assert np.asarray(row["completion_mask"]).tolist() == [1, 1, 0, 0, 1, 1]
    assert (len(row["logprobs"]), row["reward"]) == (6, 0.5)
    assert [found[name] for name in ("prompt_ids", "completion_ids", "completion_mask")] == [LONGS] * 3
    assert (found["logprobs"], found["reward"]) == (FLOATS, pa.float64())


def test_a_row_for_miles_and_slime_has_their_fields_and_statuses() -> None:
    """Those of the public `Sample` that a finished row can have; `from_dict` takes the rest as it comes."""
    row = cut("miles")
    assert {
        "group_index", "index", "prompt", "tokens", "response", "response_length", "label", "reward",
        "loss_mask", "weight_versions", "rollout_log_probs", "rollout_routed_experts", "remove_sample",
        "status", "metadata", "train_metadata", "session_id", "non_generation_time", "spec_info",
        "prefix_cache_info",
    } <= set(row)  # fmt: skip
    assert len(row["loss_mask"]) == len(row["rollout_log_probs"]) == row["response_length"] == 6
    assert row["rollout_routed_experts"].shape == (7, 2, 1)
    assert row["weight_versions"] == ["3"]
    assert set(row["spec_info"]) == {
        "spec_accept_token_num", "spec_draft_token_num", "spec_verify_ct", "completion_token_num",
    }  # fmt: skip
    assert set(row["prefix_cache_info"]) == {"cached_tokens", "total_prompt_tokens"}


def written(folder: Path, format: str, shape: str, rows: list[Row]) -> Path:
    file = folder / f"x.{format}"
    writer = open_writer(format, file, SHAPES[shape])
    for row in rows:
        writer.write(row)
    writer.close()
    return file


@pytest.mark.parametrize("format", ["parquet", "jsonl", "safetensors"])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_every_shape_comes_back_valid_from_every_format_with_its_types(
    tmp_path: Path, shape: str, format: str
) -> None:
    made = [cut(shape), cut(shape)]
    read = list(read_rows(format, written(tmp_path, format, shape, made), SHAPES[shape]))
    assert [problems_of(SHAPES[shape], row) for row in [*made, *read]] == [[]] * 4
    if format == "parquet":
        assert pq.read_schema(tmp_path / "x.parquet").equals(parquet.schema_of(SHAPES[shape]))


@pytest.mark.parametrize(
    ("shape", "changed", "said"),
    [
        ("verl", {"attention_mask": np.zeros(8, np.int64)}, "attention_mask is not a one for each"),
        ("verl", {"position_ids": np.arange(1, 9)}, "position_ids do not count input_ids from 0"),
        ("verl", {"rm_scores": np.full(6, 0.5)}, "rm_scores say something before the last"),
        ("verl", {"input_ids": np.arange(8)}, "input_ids are not prompts and responses"),
        ("verl", {"prompts": np.array([1.5])}, "prompts is no array of whole numbers"),
        ("trl", {"completion_mask": np.array([1, 2, 0, 0, 1, 1])}, "other values than 0 and 1"),
        ("trl", {"logprobs": np.zeros(5)}, "logprobs has 5 values"),
        ("trl", {"logprobs": np.full(6, np.nan)}, "logprobs are not all finite"),
        ("trl", {"logprobs": np.zeros(6, np.int64)}, "logprobs is no array of floats"),
        ("miles", {"tokens": None}, "tokens is null"),
        ("miles", {"group_index": "x"}, "group_index is str"),
        ("miles", {"more": 1}, "columns differ"),
    ],
)
def test_the_validator_sees_what_is_wrong(shape: str, changed: dict[str, Any], said: str) -> None:
    (problem, *_) = problems_of(SHAPES[shape], cut(shape) | changed)
    assert said in problem


def test_row_groups_are_cut_by_replay_rows_too(tmp_path: Path, monkeypatch) -> None:
    """They outweigh tokens by far."""
    monkeypatch.setattr(parquet, "_GROUP_VALUES", 70)
    row = cut("native") | {"routed_experts": np.zeros((7, 2, 5), np.int32)}
    written(tmp_path, "parquet", "native", [row] * 4)
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 4


def test_rollouts_are_read_together_up_to_a_size_and_never_divided(monkeypatch) -> None:
    monkeypatch.setattr("trainer_export.jobs.rows._BATCH_TOKENS", 100)
    sizes = [("a", 60), ("a", 60), ("b", 30), ("c", 60), ("d", None), ("e", 500), ("f", 1)]
    frozen = [
        Frozen(position, UUID(int=position), f"r:{name}", name, 1, 0, True, (0, 0, 0, 0), size)
        for position, (name, size) in enumerate(sizes)
    ]
    assert [[one.rollout for one in batch] for batch in batches(frozen)] == [
        ["a", "a"], ["b", "c", "d"], ["e"], ["f"],
    ]  # fmt: skip
