"""The native sample as a JSON Schema (draft 2020-12). `docs/sample-schema.md` says the same in words.

Shape only: what JSON Schema cannot say (lengths that belong together, sums, spans) is checked by `validate`.
"""

from typing import Any

from sessions_app.history.causes import Cause
from trainer_export.samples.reasons import Reason
from trainer_export.samples.rows import SCHEMA
from trainer_export.samples.values import JsonObject, Status

_TEXT: JsonObject = {"type": "string"}
_COUNT: JsonObject = {"type": "integer", "minimum": 0}
_OPTIONAL_TEXT: JsonObject = {"type": ["string", "null"]}
_OPTIONAL_COUNT: JsonObject = {"type": ["integer", "null"], "minimum": 0}
_ANY: JsonObject = {}
STOPS = ("truncated", "aborted", "pending", "replay_missing", "max_seq_len")


def _object(properties: JsonObject, **more: Any) -> JsonObject:
    """An object with exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


REWARD = _object({"name": _TEXT, "value": {"type": "number"}, "weight": {"type": "number"}, "source": _TEXT})

TURN = _object(
    {
        "seq": _COUNT,
        "parent": _OPTIONAL_COUNT,
        "response_id": _OPTIONAL_TEXT,
        "prompt_length": _COUNT,
        "completion_length": _COUNT,
        "kept": _COUNT,
        "trained": _COUNT,
        "finish_reason": _OPTIONAL_TEXT,
        "weight_version": _ANY,
        "weight_version_dispatch": _OPTIONAL_TEXT,
        "agent": _TEXT,
        "rewards": _list(REWARD),
    }
)

HEALER = _object(
    dict.fromkeys(("healed_turns", "healed_prefix_tokens", "nonlinear", "close_unresolved"), _COUNT)
)

METADATA: JsonObject = {
    "type": "object",
    "properties": {
        "linear_healer": HEALER,
        "history_causes": {
            "type": "object",
            "propertyNames": {"enum": ["retry", "fork", "rollback", "reset", "passthrough"]},
            "additionalProperties": {
                "type": "object",
                "propertyNames": {"enum": [str(cause) for cause in Cause]},
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
        },
    },
}
"""Whatever the driver adds stands beside these two."""

SPECULATIVE: JsonObject = {
    "oneOf": [
        {"type": "null"},
        _object(
            {"accepted": _COUNT, "drafted": _COUNT, "verifications": _COUNT, "completion_tokens": _COUNT}
        ),
    ]
}

REPLAY_ROWS: JsonObject = {
    "oneOf": [
        {"type": "null"},
        _object(
            {
                "shape": {"type": "array", "items": _COUNT, "minItems": 3, "maxItems": 3},
                "dtype": {"const": "int32"},
                "base64": _TEXT,
            }
        ),
    ]
}

SAMPLE_SCHEMA: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "TITO sample",
    **_object(
        {
            "schema": {"const": SCHEMA},
            "sample_id": _TEXT,
            "session_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "rollout_id": _TEXT,
            "group_id": _OPTIONAL_TEXT,
            "attempt_id": _OPTIONAL_TEXT,
            "labels": {"type": "object", "additionalProperties": _TEXT},
            "leaf": _COUNT,
            "path": {"type": "array", "items": _COUNT, "minItems": 1},
            "root_class": _OPTIONAL_TEXT,
            "agent": _TEXT,
            "status": {"enum": [str(status) for status in Status]},
            "stopped_at": _OPTIONAL_COUNT,
            "stopped_reason": {"enum": [None, *STOPS]},
            "tokens": {"type": "array", "items": _COUNT, "minItems": 1},
            "response_length": _COUNT,
            "loss_mask": _list({"enum": [0, 1]}),
            "logprobs": _list({"type": "number"}),
            "response": _TEXT,
            "reward": _ANY,
            "rewards": _list(REWARD),
            "weight_versions": _list(_ANY),
            "turns": {"type": "array", "items": TURN, "minItems": 1},
            "generated": _COUNT,
            "trained": _COUNT,
            "masked": {
                "type": "object",
                "propertyNames": {"enum": [str(reason) for reason in Reason]},
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
            "unsampled": _COUNT,
            "cached_tokens": _COUNT,
            "prompt_tokens": _COUNT,
            "speculative": SPECULATIVE,
            "metadata": METADATA,
            "routed_experts": REPLAY_ROWS,
            "indexer_topk": REPLAY_ROWS,
            "leaf_index": _COUNT,
            "leaf_count": {"type": "integer", "minimum": 1},
            "rollout_weight": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        }
    ),
}
