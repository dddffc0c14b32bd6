"""Routed experts as vLLM sends them (`--enable-return-routed-experts`): on the choice, an array of ids by
token, layer and rank as a base64 `.npy`, one row for every id of prompt and completion but the last.

Invariant: what is kept is little-endian int32, like SGLang's, and begins with the row that was asked for.
Rows that are not as many as the ids are refused: they would be replayed on other tokens.
"""

import io
from typing import Any

import numpy as np

from sessions_app import errors
from sessions_app.backends.reply import ROUTED_EXPERTS, decoded_rider

START = "routed_experts_prompt_start"
"""Of newer servers: leading rows that are not to be sent. Others send all of them."""
_NAME = "choices[0].routed_experts"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def start_field(start: int | None) -> dict[str, int]:
    """What a request says about leading rows that are known."""
    return {START: start} if start else {}


def take_routed_experts(choice: dict[str, Any], total: int, start: int | None) -> dict[str, bytes]:
    """Move the rows out of a choice; a null keeps their place. `total`: ids of prompt and completion;
    `start`: the first row that was asked for."""
    if choice.get(ROUTED_EXPERTS) is None:
        return {}
    rows = _array(decoded_rider(choice[ROUTED_EXPERTS], _NAME))
    choice[ROUTED_EXPERTS] = None
    return {ROUTED_EXPERTS: _from_start(rows, total - 1, start or 0).astype("<i4").tobytes()}


def _from_start(rows: np.ndarray, every: int, start: int) -> np.ndarray:
    if len(rows) == every - start:
        return rows
    if len(rows) == every:
        return rows[start:]
    raise errors.UpstreamInvalidReply(
        f"invalid engine reply: {_NAME} has {len(rows)} rows where {every - start} or {every} were due"
    )


def _array(data: bytes) -> np.ndarray:
    """Three dimensions of integers. The size that the header claims is compared with what is there."""
    try:
        stream = io.BytesIO(data)
        shape, by_column, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
        values = np.frombuffer(data, dtype, offset=stream.tell())
        array = values.reshape(shape, order="F" if by_column else "C")
    except (ValueError, KeyError, SyntaxError):
        raise errors.UpstreamInvalidReply(f"invalid engine reply: {_NAME} is no .npy array") from None
    if array.ndim != 3 or array.dtype.kind not in "iu":
        raise errors.UpstreamInvalidReply(
            f"invalid engine reply: {_NAME} must hold integers by token, layer and rank"
        )
    return array
