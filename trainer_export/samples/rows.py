"""Native rows: what every export shape is cut from. One row per sample, proven, with all that is known about
it.

Invariant: `generated` = `trained` + the sum of `masked`, for each row and, every token once, for the
session.
"""

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sessions_app.packing import Ids, Logprobs
from trainer_export.samples.sample import Mask, Rows
from trainer_export.samples.values import JsonObject, Reward, Speculative

SCHEMA = "tito.sample/1"
"""Name and version of the native schema; the number grows when a field changes its meaning or goes."""


@dataclass(frozen=True, slots=True)
class RowTurn:
    """One turn of the row's path."""

    seq: int
    parent: int | None
    response_id: str | None
    prompt_length: int
    """Ids the engine was fed; index of the first sampled id in `tokens` where the turn is in the row."""
    completion_length: int
    """Ids the engine sampled."""
    kept: int
    """Sampled ids that stand in the row; 0 for a turn behind the row's end."""
    trained: int
    finish_reason: str | None
    weight_version: Any
    weight_version_dispatch: str | None
    agent: str
    rewards: tuple[Reward, ...]
    """Rewards of this very turn."""


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One training row."""

    sample_id: str
    """`session:leaf`; the same whenever the same row is exported again."""
    session_id: str
    rollout_id: str
    """The session's own id where it was given none."""
    group_id: str | None
    attempt_id: str | None
    labels: Mapping[str, str]
    leaf: int
    """Seq of the leaf."""
    path: tuple[int, ...]
    """Seqs from the root to the leaf."""
    root_class: str | None
    agent: str
    """Label of the agent that sent the leaf's request."""
    status: str
    stopped_at: int | None
    """Seq of the turn that ended the row before its path ends; None if the whole path is in it."""
    stopped_reason: str | None
    tokens: Ids
    response_length: int
    """Tokens from the first completion on; what `loss_mask` and `logprobs` count."""
    loss_mask: Mask
    logprobs: Logprobs
    response: str
    reward: Any
    """The sample's reward: a number, or whatever JSON the driver gave; None = none."""
    rewards: tuple[Reward, ...]
    """What was reported for the session and for the leaf."""
    weight_versions: tuple[Any, ...]
    turns: tuple[RowTurn, ...]
    generated: int
    """Sampled ids on the path."""
    trained: int
    masked: Mapping[str, int]
    """Sampled ids on the path that this row does not train, by reason."""
    unsampled: int
    """Positions that a hook wanted to train though nothing was sampled there; masked."""
    cached_tokens: int
    prompt_tokens: int
    speculative: Speculative | None
    metadata: JsonObject
    routed_experts: Rows | None
    indexer_topk: Rows | None
    leaf_index: int = 0
    """Place among the rows of the rollout."""
    leaf_count: int = 1
    """Rows of the rollout."""
    rollout_weight: float = 1.0
    """1 / leaf_count: summed over its rows, each rollout counts once."""

    def to_json(self) -> JsonObject:
        """The row as a document of the native schema; arrays stay arrays for the JSON writer."""
        document: JsonObject = {"schema": SCHEMA}
        document |= {name: getattr(self, name) for name in self.__slots__}
        document["labels"], document["masked"] = dict(self.labels), dict(self.masked)
        for name in ("path", "weight_versions"):
            document[name] = list(document[name])
        document["rewards"] = [asdict(reward) for reward in self.rewards]
        document["turns"] = [
            asdict(turn) | {"rewards": [asdict(reward) for reward in turn.rewards]} for turn in self.turns
        ]
        document["speculative"] = asdict(self.speculative) if self.speculative else None
        for name in ("routed_experts", "indexer_topk"):
            document[name] = None if document[name] is None else packed_rows(document[name])
        return document


def packed_rows(rows: Rows) -> JsonObject:
    """Replay rows as they stand in JSON."""
    data = np.ascontiguousarray(rows, dtype="<i4").tobytes()
    return {"shape": list(rows.shape), "dtype": "int32", "base64": base64.b64encode(data).decode()}
