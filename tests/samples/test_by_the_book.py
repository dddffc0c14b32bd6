"""Assembly against the rules as they are written down, carried out naively: every turn a sample of its own
with its whole prompt, cut, then merged pair by pair. Same samples or the same refusal, for any forest.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.errors import SamplesFailed
from tests.samples.builders import RULES, as_text, ids
from tests.samples.forests import MAX_TRIM, forests
from tests.samples.test_properties import LIMITS
from trainer_export.samples.assemble import assemble
from trainer_export.samples.forest import leaves_of
from trainer_export.samples.rules import AssemblyRules
from trainer_export.samples.sample import Sample
from trainer_export.samples.values import CutContinuation, Leaf, Payload, SessionForest, Turn

STATUS = {"stop": "completed", "tool_calls": "completed", "length": "truncated", "abort": "aborted"}


@dataclass
class Book:
    """A sample by the book."""

    turn: Turn
    tokens: list[int]
    response: str
    mask: list[int]
    logprobs: list[float]
    status: str
    versions: list[Any]
    cached: int
    prompted: int
    rows: int | None
    """Replay rows, None for none."""

    @property
    def prompt(self) -> int:
        return len(self.tokens) - len(self.mask)

    def shortened(self, count: int) -> None:
        """Without its last tokens, in every field."""
        end = len(self.tokens) - count
        kept = len(self.mask) - count
        self.response = as_text(ids(self.tokens[self.prompt : end])) if kept else ""
        self.tokens, self.mask, self.logprobs = self.tokens[:end], self.mask[:kept], self.logprobs[:kept]
        self.rows = None if self.rows is None else self.rows - count


def turn_sample(turn: Turn, prompt: list[int]) -> Book:
    out = turn.completion.tolist()
    return Book(
        turn=turn,
        tokens=prompt + out,
        response=as_text(turn.completion) if out else "",
        mask=[1] * len(out),
        logprobs=turn.logprobs.tolist(),
        status=STATUS.get(turn.finish_reason or "", "pending"),
        versions=[] if turn.weight_version is None else [turn.weight_version],
        cached=turn.cached_tokens,
        prompted=turn.prompt_tokens,
        rows=None if turn.indexer_topk is None else len(prompt) + len(out) - 1,
    )


def turn_samples(leaf: Leaf, allowed_trim: int) -> list[Book]:
    accumulated = leaf.accumulated_ids.tolist()
    held: list[int] = []
    made = []
    for turn in leaf.turns:
        prompt = held[: len(held) - turn.trim] + turn.prompt_delta.tolist()
        out = turn.completion.tolist()
        held = prompt + out
        matched = 0
        while matched < len(out) and accumulated[len(prompt) + matched : len(prompt) + matched + 1] == [
            out[matched]
        ]:
            matched += 1
        trim, last = len(out) - matched, turn is leaf.turns[-1]
        if trim > (0 if last else allowed_trim):
            raise AssertionError(f"trim_count {trim} exceeds allowed={0 if last else allowed_trim} ")
        made.append(turn_sample(turn, prompt))
        if trim:
            made[-1].shortened(trim)
    return made


def within(samples: list[Book], limit: int | None) -> list[Book]:
    for position, sample in enumerate(samples):
        over = 0 if limit is None else len(sample.tokens) - limit
        if over > 0:
            if len(sample.mask) <= over:
                return samples[:position]
            sample.shortened(over)
            sample.status = "truncated"
            return samples[: position + 1]
    return samples


def merged(a: Book, b: Book) -> Book:
    observed = b.tokens[len(a.tokens) : b.prompt]
    if b.prompt - len(a.tokens) <= 0:
        raise AssertionError(f"obs_len must be > 0, got {b.prompt - len(a.tokens)}")
    if b.tokens[: len(a.tokens)] != a.tokens:
        raise AssertionError("b.tokens must start with a.tokens")
    return Book(
        turn=b.turn,
        tokens=b.tokens,
        response=a.response + as_text(ids(observed)) + b.response,
        mask=a.mask + [0] * len(observed) + b.mask,
        logprobs=a.logprobs + [0.0] * len(observed) + b.logprobs,
        status=b.status,
        versions=a.versions + b.versions,
        cached=a.cached + b.cached,
        prompted=a.prompted + b.prompted,
        rows=b.rows,
    )


def by_the_book(leaf: Leaf, rules: AssemblyRules) -> Book | None:
    samples = within(turn_samples(leaf, rules.max_trim_tokens), rules.max_seq_len)
    if not samples:
        return None
    whole, *rest = samples
    for following in rest:
        closed = whole.status == "truncated" and following.turn.cut_continuation is CutContinuation.CLOSE
        if whole.status != "completed" and not closed:
            break
        if whole.rows is not None and following.rows is None:
            break
        whole = merged(whole, following)
    return whole


def fields_of(sample: Sample) -> tuple[Any, ...]:
    rows = sample.rollout_indexer_topk
    return (
        sample.tokens.tolist(),
        sample.response,
        sample.loss_mask.tolist(),
        sample.rollout_log_probs.tolist(),
        str(sample.status),
        sample.weight_versions,
        sample.prefix_cache_info.cached_tokens,
        sample.prefix_cache_info.total_prompt_tokens,
        None if rows is None else len(rows),
    )


def expected_of(book: Book) -> tuple[Any, ...]:
    return (
        book.tokens,
        book.response,
        book.mask,
        book.logprobs,
        book.status,
        book.versions,
        book.cached,
        book.prompted,
        book.rows,
    )


def with_riders(forest: SessionForest, draw: list[int]) -> SessionForest:
    """Counters, weight versions, and replay rows on most turns."""
    lengths: dict[int | None, int] = {None: 0}
    turns = []
    for turn in forest.turns:
        size = lengths[turn.parent] - turn.trim + turn.prompt_delta.size + turn.completion.size
        lengths[turn.seq] = size
        drawn = draw[turn.seq]
        rider = replace(turn, cached_tokens=drawn, prompt_tokens=2 * drawn)
        if drawn % 3:
            rider = replace(rider, weight_version=str(drawn))
        if drawn % 4 and size > 1:
            rider = replace(rider, indexer_topk=Payload.of(bytes(4 * (size - 1))), indexer_layers=1)
        turns.append(rider)
    return replace(forest, turns=tuple(turns))


@given(
    forests(("tree", "linear")),
    LIMITS,
    st.integers(0, MAX_TRIM),
    st.lists(st.integers(0, 11), min_size=12, max_size=12),
)
def test_every_leaf_is_assembled_by_the_book(
    forest: SessionForest, limit: int | None, allowed_trim: int, draw: list[int]
):
    rules = replace(RULES, max_seq_len=limit, max_trim_tokens=allowed_trim)
    for leaf in leaves_of(with_riders(forest, draw)):
        try:
            wanted = by_the_book(leaf, rules)
        except AssertionError as refusal:
            with pytest.raises(SamplesFailed, match=f"^{re.escape(str(refusal))}"):
                assemble(leaf, rules)
            continue
        made = assemble(leaf, rules)
        assert (made is None) == (wanted is None)
        if made is not None and wanted is not None:
            assert fields_of(made) == expected_of(wanted)
