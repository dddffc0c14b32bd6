"""A completion that several rows share trains in one: the row of its earliest committed kept leaf."""

from collections.abc import Iterable, Sequence

import numpy as np

from trainer_export.samples.align import given_up
from trainer_export.samples.sample import Mask, Sample, Span


def owners(samples: Iterable[Sample]) -> dict[int, int]:
    """Node seq to the smallest leaf seq among the samples whose path contains it.

    A path that was realigned over a completion does not contain it any more.
    """
    found: dict[int, int] = {}
    for sample in samples:
        leaf = sample.leaf.last.seq
        for seq in _contained(sample):
            found[seq] = min(leaf, found.get(seq, leaf))
    return found


def _contained(sample: Sample) -> Iterable[int]:
    lost = given_up(sample.leaf)
    return [turn.seq for turn in sample.leaf.turns if turn.seq not in lost]


def own_once(samples: Sequence[Sample]) -> None:
    """Masks in each sample the completions that another sample owns."""
    owner = owners(samples)
    for sample in samples:
        mask_spans(sample, [span for span in sample.spans if owner.get(span.seq) != sample.leaf.last.seq])


def mask_spans(sample: Sample, spans: Sequence[Span]) -> None:
    """Sets the loss mask of these completions to 0."""
    if not spans:
        return
    mask: Mask = np.array(sample.loss_mask)
    for span in spans:
        start = max(span.start - sample.response_start, 0)
        mask[start : max(span.start + span.length - sample.response_start, 0)] = 0
    sample.loss_mask = mask
