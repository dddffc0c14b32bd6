"""Reading an engine's JSON reply: what most protocols share. Checks live in `validation`."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from sessions_app import errors
from sessions_app.backends import json_wire, validation

ROUTED_EXPERTS, INDEXER_TOPK = "routed_experts", "indexer_topk"
RIDERS = (ROUTED_EXPERTS, INDEXER_TOPK)
"""Replay payloads of `meta_info`: stored outside the hot row, never handed to clients."""
EXTENSION = "sglext"
_LARGEST = 2**31 - 1
"""What a column of the store can hold."""
_EXTRAS = ("spec_", "indexer_topk_num_layers", "matched_stop", "raw_logprobs")


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a 200."""
    try:
        parsed = json_wire.loads(body)
    except ValueError:
        raise errors.UpstreamInvalidReply("invalid engine reply: the body is not JSON") from None
    return validation.json_object(parsed, "the body")


def first_choice(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """`choices[0]`; a reply without the key counts as one empty choice, as in the reference."""
    choices = validation.json_list(parsed.get("choices", [{}]), "choices")
    if not choices:
        raise errors.UpstreamInvalidReply("invalid engine reply: choices is empty")
    return validation.json_object(choices[0], "choices[0]")


def usage(parsed: Mapping[str, Any]) -> Mapping[str, Any]:
    """The usage block; empty where there is none."""
    value = parsed.get("usage")
    return value if isinstance(value, dict) else {}


def finish(holder: dict[str, Any], name: str) -> str | None:
    """The raw finish reason: the key must be there, null is accepted."""
    return validation.optional_text(validation.required(holder, "finish_reason", name), name)


def response_id(parsed: Mapping[str, Any], key: str = "id") -> str | None:
    """The engine's id; "" if missing, None if null."""
    value = parsed.get(key, "")
    return value if value is None else str(value)


def weight_version(meta: Mapping[str, Any]) -> str | None:
    """As reported, as text; None = not reported."""
    value = meta.get("weight_version")
    return value if value is None else str(value)


def optional_count(meta: Mapping[str, Any], key: str) -> int:
    """A count that nothing depends on; 0 where it is missing or odd."""
    value = meta.get(key)
    return value if type(value) is int and 0 <= value <= _LARGEST else 0


def optional_seconds(meta: Mapping[str, Any], key: str) -> float | None:
    """A duration that nothing depends on."""
    value = meta.get(key)
    return float(value) if isinstance(value, int | float) and 0 <= value <= _LARGEST else None


def extras(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Speculative counters and the like."""
    return {key: value for key, value in meta.items() if key.startswith(_EXTRAS)}


def extensions(parsed: dict[str, Any], choice: dict[str, Any]) -> list[dict[str, Any]]:
    """The `sglext` blocks of newer SGLang builds, which stand beside `meta_info` and say some of it again."""
    blocks = (parsed.get(EXTENSION), choice.get(EXTENSION))
    return [block for block in blocks if isinstance(block, dict)]


def take_riders(*holders: dict[str, Any]) -> dict[str, bytes]:
    """Move the replay payloads out of `meta_info` and `sglext`: a null keeps the place of each. What is no
    base64 is refused: it has no use."""
    riders: dict[str, bytes] = {}
    for holder in holders:
        for kind in RIDERS:
            if holder.get(kind) is None:
                continue
            payload = decoded_rider(holder[kind], f"meta_info.{kind}")
            if riders.setdefault(kind, payload) != payload:
                raise errors.UpstreamInvalidReply(f"invalid engine reply: two sources of {kind} disagree")
            holder[kind] = None
    return riders


def client_reply(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A chat reply as clients see it: no replay payload anywhere. Shares what it does not change."""
    choices = [_without_riders(choice) for choice in reply.get("choices", [])]
    return {**_bare(reply, EXTENSION), "choices": choices}


def _without_riders(choice: Any) -> Any:
    return _bare(_bare(choice, "meta_info"), EXTENSION) if isinstance(choice, dict) else choice


def _bare(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The holder with one of its objects freed of replay payloads."""
    inner = holder.get(name)
    if not isinstance(inner, dict) or not any(kind in inner for kind in RIDERS):
        return holder
    return {**holder, name: {key: value for key, value in inner.items() if key not in RIDERS}}


def decoded_rider(value: object, name: str) -> bytes:
    """The bytes of a replay payload."""
    try:
        return base64.b64decode(validation.optional_text(value, name) or "", validate=True)
    except binascii.Error:
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {name} is no base64") from None
