"""What a post-processor gave back: samples of the leaves it was given, with fields of the kinds they had.

What it may not change are facts: the leaf, where its completions stand and why the sample ends. They are as
they were whatever it did to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from trainer_export.samples.sample import PrefixCacheInfo, Sample, Span, Stop
from trainer_export.samples.values import Leaf, Speculative

_PER_RESPONSE_TOKEN = ("loss_mask", "rollout_log_probs")
_KINDS: dict[str, tuple[type, ...]] = {
    "weight_versions": (list, tuple),
    "prefix_cache_info": (PrefixCacheInfo,),
    "spec_info": (Speculative, type(None)),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of a sample whatever a hook says."""

    leaf: Leaf
    spans: tuple[Span, ...]
    stop: Stop | None


def facts_of(sample: Sample) -> Facts:
    """To be taken before any hook has seen the sample."""
    return Facts(sample.leaf, sample.spans, sample.stop)


def check_returned(row: Any, facts: Mapping[int, Facts]) -> None:
    """`facts`: by leaf. Raises TypeError, ValueError, and AttributeError for a sample that lacks a field."""
    if not isinstance(row, Sample):
        raise TypeError(f"postprocessor must return samples, got {type(row).__name__}")
    for field in fields(Sample):
        getattr(row, field.name)
    known = facts.get(row.leaf.last.seq) if isinstance(row.leaf, Leaf) else None
    if known is None:
        raise ValueError("postprocessor must return samples of the leaves it was given")
    row.leaf, row.spans, row.stop = known.leaf, known.spans, known.stop
    _check_kinds(row)
    _check_lengths(row)


def _check_kinds(row: Sample) -> None:
    if not isinstance(row.metadata, dict):
        raise TypeError(f"metadata must be a JSON object, got {type(row.metadata).__name__}")
    for name, kinds in _KINDS.items():
        if not isinstance(getattr(row, name), kinds):
            raise TypeError(f"{name} must be a {kinds[0].__name__}, got {type(getattr(row, name)).__name__}")


def _check_lengths(row: Sample) -> None:
    if not 0 <= row.response_length <= len(row.tokens):
        raise ValueError(f"response_length {row.response_length} does not fit {len(row.tokens)} tokens")
    for field in _PER_RESPONSE_TOKEN:
        values = getattr(row, field)
        if values is not None and len(values) != row.response_length:
            raise ValueError(f"{field} has {len(values)} values, response_length is {row.response_length}")
