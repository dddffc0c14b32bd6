"""Is a document a native sample, in shape and in what belongs together? Writers and tests ask before and
after."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from trainer_export.samples.json_shape import mismatches
from trainer_export.samples.schema import SAMPLE_SCHEMA
from trainer_export.samples.values import JsonObject


def problems(document: Any) -> list[str]:
    """Everything that is wrong with a document (lists or arrays); empty for a valid sample."""
    wrong = list(mismatches(SAMPLE_SCHEMA, document))
    return wrong or [*_lengths(document), *_counts(document), *_spans(document), *_place(document)]


def _lengths(row: JsonObject) -> Iterator[str]:
    length = row["response_length"]
    if length > len(row["tokens"]):
        yield f"response_length {length} exceeds the {len(row['tokens'])} tokens"
    for name in ("loss_mask", "logprobs"):
        if len(row[name]) != length:
            yield f"{name} has {len(row[name])} values, response_length is {length}"
    if not np.isfinite(np.asarray(row["logprobs"], np.float64)).all():
        yield "logprobs are not all finite"
    for name in ("routed_experts", "indexer_topk"):
        if row[name] is not None and row[name]["shape"][0] != len(row["tokens"]) - 1:
            yield f"{name} has {row[name]['shape'][0]} rows for {len(row['tokens'])} tokens"


def _counts(row: JsonObject) -> Iterator[str]:
    if row["trained"] != np.count_nonzero(row["loss_mask"]):
        yield f"trained is {row['trained']}, the mask trains {np.count_nonzero(row['loss_mask'])}"
    if row["generated"] != row["trained"] + sum(row["masked"].values()):
        yield "generated is not trained plus masked"
    for name, parts in (("generated", "completion_length"), ("trained", "trained")):
        if row[name] != sum(turn[parts] for turn in row["turns"]):
            yield f"{name} is not the sum over the turns"


def _spans(row: JsonObject) -> Iterator[str]:
    """The mask trains nothing outside of the kept completions, and in each as much as its turn says."""
    start = len(row["tokens"]) - row["response_length"]
    outside = np.array(row["loss_mask"])
    for turn in row["turns"]:
        place = slice(turn["prompt_length"] - start, turn["prompt_length"] - start + turn["kept"])
        if turn["kept"] and not 0 <= place.start <= place.stop <= outside.size:
            yield f"turn {turn['seq']} lies outside of the response"
        elif turn["kept"] > turn["completion_length"]:
            yield f"turn {turn['seq']} keeps more than it sampled"
        elif turn["trained"] != (np.count_nonzero(outside[place]) if turn["kept"] else 0):
            yield f"turn {turn['seq']} does not train what it says"
        elif turn["kept"]:
            outside[place] = 0
    if outside.any():
        yield "the mask trains tokens that nothing sampled"


def _place(row: JsonObject) -> Iterator[str]:
    seqs = [turn["seq"] for turn in row["turns"]]
    if seqs != list(row["path"]) or seqs[-1] != row["leaf"]:
        yield "path, turns and leaf disagree"
    if any(parent >= child for parent, child in pairwise(seqs)):
        yield "path is not in commit order"
    if (row["stopped_at"] is None) != (row["stopped_reason"] is None):
        yield "stopped_at and stopped_reason belong together"
    if row["leaf_index"] >= row["leaf_count"]:
        yield "leaf_index is not below leaf_count"
    if not math.isclose(row["rollout_weight"] * row["leaf_count"], 1.0):
        yield "rollout_weight is not 1 / leaf_count"
