"""R3: the expert (and indexer) choices of the sampling pass, shaped for replay. One row per token but the
last.

Full payloads cover prompt and completion of their turn; in additional mode each payload holds only the rows
that were not held before, so the rows of a sample are the payloads of its path, one after the other. Sizes
are checked for every turn; the bytes themselves are touched only where they become the rows of a sample.
"""

from collections.abc import Sequence

import numpy as np

from sessions_app.errors import SamplesFailed
from trainer_export.samples.sample import Rows
from trainer_export.samples.values import Payload, Turn

_ITEM = np.dtype("<i4")


def row_width(size: int, rows: int, layers: int) -> int:
    """k of a payload of `size` bytes as (rows, layers, k). Raises SamplesFailed with numpy's words."""
    values, odd = divmod(size, _ITEM.itemsize)
    if odd:
        raise SamplesFailed("buffer size must be a multiple of element size")
    width = values // (rows * layers) if rows > 0 and layers else 0
    if rows < 0 or values != rows * layers * width:
        raise SamplesFailed(f"cannot reshape array of size {values} into shape ({rows},{layers},{width})")
    return width


def full_rows(payload: Payload, rows: int, layers: int) -> Rows:
    """A payload that was read as (rows, layers, k), k from its size. Raises SamplesFailed for a wrong one."""
    width = row_width(payload.size, rows, layers)
    data = b"".join(payload.parts)
    if len(data) != payload.size:
        raise SamplesFailed(f"{len(data)} of {payload.size} bytes of replay rows are there")
    values = np.frombuffer(data, dtype=_ITEM).astype(np.int32, copy=False)
    return values.reshape(rows, layers, width)


def checked_routed(turn: Turn, rows: int, layers: int | None) -> Payload | None:
    """The routed experts of one whole turn, if their size is right; None without a payload."""
    if turn.routed_experts is not None:
        row_width(turn.routed_experts.size, rows, configured(layers))
    return turn.routed_experts


def checked_indexer(turn: Turn, rows: int) -> Payload | None:
    """The indexer's choices of one whole turn, if their size is right; None without a payload."""
    if turn.indexer_topk is None:
        return None
    if turn.indexer_layers is None:
        raise SamplesFailed(
            "Server returned indexer_topk without indexer_topk_num_layers; "
            "sglang-miles must include the layer count in meta_info."
        )
    row_width(turn.indexer_topk.size, rows, turn.indexer_layers)
    return turn.indexer_topk


def additional_rows(turns: Sequence[Turn], needed: int, layers: int | None) -> Rows | None:
    """The rows of a sample of `needed` + 1 tokens; None where no turn of the path carries a payload."""
    if all(turn.routed_experts is None for turn in turns):
        return None
    chunks: list[Rows] = []
    covered = held = 0
    for index, turn in enumerate(turns):
        if chunks and covered >= needed:
            break
        held += turn.prompt_delta.size + turn.completion.size - turn.trim
        payload = _checked_payload(index, turn, covered, held - 1)
        rows = full_rows(payload, held - 1 - covered, configured(layers))
        if len(rows) or needed == 0:
            chunks.append(rows)
        covered = held - 1
    return _joined(chunks, covered, needed)


def configured(layers: int | None) -> int:
    """The layers of a routed-experts row. Raises SamplesFailed where they are not known."""
    if layers is None:
        raise SamplesFailed(
            "a reply carries routed_experts, but TITO_R3_LAYERS is not set: its rows cannot be shaped"
        )
    return layers


def _checked_payload(index: int, turn: Turn, covered: int, end: int) -> Payload:
    record = f"additional R3: record {index}"
    payload, start = turn.routed_experts, turn.routed_experts_start
    if payload is None:
        raise SamplesFailed(f"{record} has no routed_experts payload")
    if start is None:
        raise SamplesFailed(f"{record} request carries no routed_experts_start_len")
    if start != covered:
        raise SamplesFailed(f"{record} starts at row {start}; expected {covered}")
    if end < start:
        raise SamplesFailed(f"{record} has invalid offsets (start={start}, end={end})")
    if bool(payload.size) != bool(end - start):
        raise SamplesFailed(f"{record} payload presence does not match {end - start} rows")
    return payload


def _joined(chunks: list[Rows], covered: int, needed: int) -> Rows:
    if covered < needed:
        raise SamplesFailed(
            f"additional R3 covers {covered} rows but the merged sample needs {needed} (len(tokens) - 1)"
        )
    try:
        return np.concatenate(chunks)[:needed]
    except ValueError as error:
        raise SamplesFailed(str(error)) from None
