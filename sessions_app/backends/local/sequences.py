"""Generations in progress: groups of requests that are stepped together, one id each at a time.

Requests that wait at the same moment form one left-padded batch. Groups take turns, so that a late request
starts at once; a request that ends, or that nobody waits for any more, leaves its group between two tokens.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch

from sessions_app.backends.local.decoding import Draw, Sampling, draw

_TAIL_TOKENS = 16
"""Decoded again after each id to look for a stop string, beyond the string's own length."""


@dataclass(slots=True)
class Sequence:
    """One request."""

    prompt: list[int]
    sampling: Sampling
    result: "Future[Sequence]" = field(default_factory=Future)
    draws: list[Draw] = field(default_factory=list)
    finish_reason: str = ""
    matched: int | str | None = None
    """The stop id or string that ended it."""
    abandoned: bool = False
    """Set by any thread; ends it as `abort` before the next id."""
    begun: float = field(default_factory=time.monotonic)

    @property
    def ids(self) -> list[int]:
        """Ids sampled so far."""
        return [each.token for each in self.draws]


@dataclass(frozen=True, slots=True)
class Stops:
    """What ends generations of this model."""

    eos: frozenset[int]
    decode: Callable[[list[int]], str]

    def check(self, sequence: Sequence) -> None:
        """Sets the finish reason if the last id ended the sequence."""
        token, sampling = sequence.draws[-1].token, sequence.sampling
        ends = sampling.stop_token_ids | (frozenset() if sampling.ignore_eos else self.eos)
        if token in ends:
            sequence.finish_reason, sequence.matched = "stop", token
        elif found := self._stop_string(sequence):
            sequence.finish_reason, sequence.matched = "stop", found
        elif len(sequence.draws) >= sampling.max_new_tokens:
            sequence.finish_reason = "length"

    def _stop_string(self, sequence: Sequence) -> str:
        stops = sequence.sampling.stop
        if not stops:
            return ""
        tail = sequence.ids[-(_TAIL_TOKENS + max(map(len, stops))) :]
        text = self.decode(tail)
        return next((stop for stop in stops if stop in text), "")


class Group:
    """Sequences of one batch and their shared key-value cache."""

    def __init__(self, model: Any, sequences: list[Sequence], pad: int, stops: Stops) -> None:
        self._model = model
        self._stops = stops
        self.sequences = sequences
        width = max(len(sequence.prompt) for sequence in sequences)
        rows = [[pad] * (width - len(each.prompt)) + each.prompt for each in sequences]
        kept = [[0] * (width - len(each.prompt)) + [1] * len(each.prompt) for each in sequences]
        self._inputs = torch.tensor(rows, device=model.device)
        self._mask = torch.tensor(kept, device=model.device)
        self._positions = (self._mask.cumsum(dim=-1) - 1).clamp(min=0)
        self._cache: Any = None
        self._sources = [_source(sequence.sampling.seed) for sequence in sequences]

    def step(self) -> None:
        """One id for each sequence; those that ended leave."""
        self._leave()
        if not self.sequences:
            return
        logits = self._forward()
        for row, sequence in enumerate(self.sequences):
            seen = torch.tensor(sequence.prompt + sequence.ids)
            sequence.draws.append(draw(logits[row], sequence.sampling, seen, self._sources[row]))
            self._stops.check(sequence)
        self._advance()
        self._leave()

    def _forward(self) -> torch.Tensor:
        output = self._model(
            input_ids=self._inputs,
            attention_mask=self._mask,
            position_ids=self._positions,
            cache=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self._cache = output.cache
        return output.logits[:, -1]

    def _advance(self) -> None:
        last = [[sequence.draws[-1].token] for sequence in self.sequences]
        self._inputs = torch.tensor(last, device=self._model.device)
        self._mask = torch.cat([self._mask, torch.ones_like(self._inputs)], dim=-1)
        self._positions = self._positions[:, -1:] + 1

    def _leave(self) -> None:
        """Settles the sequences that ended and drops their rows."""
        for sequence in self.sequences:
            if sequence.abandoned and not sequence.finish_reason:
                sequence.finish_reason = "abort"
        staying = [row for row, sequence in enumerate(self.sequences) if not sequence.finish_reason]
        if len(staying) == len(self.sequences):
            return
        for sequence in self.sequences:
            if sequence.finish_reason:
                sequence.result.set_result(sequence)
        self._keep(staying)

    def _keep(self, rows: list[int]) -> None:
        index = torch.tensor(rows, dtype=torch.long, device=self._model.device)
        self.sequences = [self.sequences[row] for row in rows]
        self._sources = [self._sources[row] for row in rows]
        self._inputs, self._mask = self._inputs[index], self._mask[index]
        self._positions = self._positions[index]
        if self._cache is not None and rows:
            self._cache.batch_select_indices(index)


def _source(seed: int | None) -> torch.Generator:
    source = torch.Generator()
    if seed is None:
        source.seed()
    else:
        source.manual_seed(seed)
    return source
