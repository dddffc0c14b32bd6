"""One sampling step: from logits to an id and its logprob.

Invariant: the reported logprob is that of the distribution the id was drawn from, after temperature, top-k,
top-p and min-p. At temperature 0 nothing is drawn, so the model's own logprob (temperature 1) is reported, as
engines do.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one request is sampled."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    """-1 = all."""
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    max_new_tokens: int = 4096
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """One sampled id."""

    token: int
    logprob: float
    """Of the distribution sampled from."""
    raw_logprob: float
    """Of the model's own distribution."""


def draw(logits: torch.Tensor, sampling: Sampling, seen: torch.Tensor, source: torch.Generator) -> Draw:
    """The next id for logits of shape (vocabulary,); `seen` are the ids of the context."""
    raw = torch.log_softmax(logits.float().cpu(), dim=-1)
    scores = _penalised(logits.float().cpu(), seen, sampling.repetition_penalty)
    if sampling.temperature == 0:
        token = int(scores.argmax())
        return Draw(token, float(raw[token]), float(raw[token]))
    logprobs = torch.log_softmax(_filtered(scores / sampling.temperature, sampling), dim=-1)
    token = int(torch.multinomial(logprobs.exp(), 1, generator=source))
    return Draw(token, float(logprobs[token]), float(raw[token]))


def _penalised(scores: torch.Tensor, seen: torch.Tensor, penalty: float) -> torch.Tensor:
    if penalty == 1.0:
        return scores
    picked = scores[seen]
    return scores.index_put((seen,), torch.where(picked > 0, picked / penalty, picked * penalty))


def _filtered(scores: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Scores with everything that may not be drawn at minus infinity; the best one always stays."""
    if 0 < sampling.top_k < scores.numel():
        scores = scores.masked_fill(scores < scores.topk(sampling.top_k).values[-1], -torch.inf)
    if sampling.top_p < 1.0:
        ordered, order = scores.softmax(dim=-1).sort(descending=True)
        beyond = ordered.cumsum(dim=-1) - ordered >= sampling.top_p
        scores = scores.index_fill(0, order[beyond], -torch.inf)
    if sampling.min_p > 0.0:
        probabilities = scores.softmax(dim=-1)
        scores = scores.masked_fill(probabilities < sampling.min_p * probabilities.max(), -torch.inf)
    return scores
