"""R3: the expert (and indexer) choices of the sampling pass, shaped for replay. One row per token but the
last.

Full payloads cover prompt and completion of their turn; in additional mode each payload holds only the rows
that were not held before, so the rows of a sample are the payloads of its path, one after the other.
"""

from collections.abc import Sequence

import numpy as np

from sessions_app.errors import SamplesFailed
from trainer_export.samples.sample import Rows
from trainer_export.samples.values import Turn


def full_rows(payload: bytes, rows: int, layers: int) -> Rows:
    """A payload as (rows, layers, k), k from its length. Raises SamplesFailed with numpy's words on a wrong
    size."""
    try:
        values = np.frombuffer(payload, dtype="<i4").astype(np.int32, copy=False)
        width = values.size // (rows * layers) if rows * layers else 0
        return values.reshape(rows, layers, width)
    except ValueError as error:
        raise SamplesFailed(str(error)) from None


def routed_rows(turn: Turn, rows: int, layers: int | None) -> Rows | None:
    """The routed experts of one whole turn; None without a payload."""
    if turn.routed_experts is None:
        return None
    return full_rows(turn.routed_experts, rows, _configured(layers))


def indexer_rows(turn: Turn, rows: int) -> Rows | None:
    """The indexer's choices of one whole turn; None without a payload."""
    if turn.indexer_topk is None:
        return None
    if turn.indexer_layers is None:
        raise SamplesFailed(
            "Server returned indexer_topk without indexer_topk_num_layers; "
            "sglang-miles must include the layer count in meta_info."
        )
    return full_rows(turn.indexer_topk, rows, turn.indexer_layers)


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
        rows = full_rows(payload, held - 1 - covered, _configured(layers))
        if len(rows) or needed == 0:
            chunks.append(rows)
        covered = held - 1
    return _joined(chunks, covered, needed)


def _configured(layers: int | None) -> int:
    if layers is None:
        raise SamplesFailed(
            "a reply carries routed_experts, but TITO_R3_LAYERS is not set: its rows cannot be shaped"
        )
    return layers


def _checked_payload(index: int, turn: Turn, covered: int, end: int) -> bytes:
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
    if bool(payload) != bool(end - start):
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
