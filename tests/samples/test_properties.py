"""What holds for every forest, picker and budget: trained once, accounted for, in its own context,
whatever the order."""

import json
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.json_text import dumps
from tests.samples.builders import RULES
from tests.samples.forests import MAX_TRIM, forests
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.assemble import assemble
from trainer_export.samples.codec import decode_samples, encode_samples
from trainer_export.samples.forest import leaves_of, path_ids, path_of
from trainer_export.samples.hooks import Hooks, resolve_hooks
from trainer_export.samples.native import SessionRows, session_rows
from trainer_export.samples.ownership import owners
from trainer_export.samples.payload import gather, samples_payload
from trainer_export.samples.pickers import PICKERS
from trainer_export.samples.rows import SampleRow
from trainer_export.samples.validate import problems
from trainer_export.samples.values import SessionForest
from trainer_export.samples.weights import weigh

RULES = replace(RULES, max_trim_tokens=MAX_TRIM)
LIMITS = st.one_of(st.none(), st.integers(1, 30))
HOOKS = st.builds(
    resolve_hooks,
    st.sampled_from(sorted(PICKERS)),
    st.sampled_from(["default", "agent_match:a", "tests.samples.hook_functions.identity"]),
)


def made(forest: SessionForest, hooks: Hooks, limit: int | None) -> SessionRows:
    return session_rows(forest, hooks, RULES, SamplesArguments(limit))


def trained_places(row: SampleRow) -> list[tuple[int, int]]:
    """(node, index in its completion) of every trained token."""
    start = len(row.tokens) - row.response_length
    return [
        (part.seq, place)
        for part in row.turns
        for place in range(part.kept)
        if row.loss_mask[part.prompt_length - start + place]
    ]


@given(forests(), HOOKS, LIMITS)
def test_no_generated_token_is_trained_twice_and_all_are_accounted_for(
    forest: SessionForest, hooks: Hooks, limit: int | None
):
    result = made(forest, hooks, limit)
    places = Counter(place for row in result.rows for place in trained_places(row))
    assert not places or max(places.values()) == 1
    count = result.report.count
    assert count.generated == sum(item.completion.size for item in forest.turns)
    assert count.trained == len(places) == sum(int(np.sum(row.loss_mask)) for row in result.rows)
    assert count.generated == count.trained + sum(count.masked.values())
    assert result.report.rows + len(result.report.dropped) == result.report.leaves


@given(forests(), HOOKS, LIMITS)
def test_every_trained_token_stands_in_the_context_and_with_the_logprob_it_was_sampled_with(
    forest: SessionForest, hooks: Hooks, limit: int | None
):
    by_seq = {turn.seq: turn for turn in forest.turns}
    for row in made(forest, hooks, limit).rows:
        start = len(row.tokens) - row.response_length
        for seq, place in trained_places(row):
            turn = by_seq[seq]
            fed_and_sampled = path_ids(path_of(by_seq, seq))
            fed = fed_and_sampled.size - turn.completion.size
            assert row.tokens[: fed + place + 1].tolist() == fed_and_sampled[: fed + place + 1].tolist()
            assert row.logprobs[fed + place - start] == turn.logprobs[place]


@given(forests(), st.sampled_from(sorted(PICKERS)), LIMITS)
def test_the_default_postprocessor_needs_no_help_from_the_proof(
    forest: SessionForest, picker: str, limit: int | None
):
    hooks = resolve_hooks(picker, "default")
    samples = samples_payload(forest, SamplesArguments(limit), hooks, RULES).samples
    rows = made(forest, hooks, limit).rows
    for sample, row in zip(samples, rows, strict=True):
        assert sample.loss_mask.tolist() == row.loss_mask.tolist()
        assert row.unsampled == 0


@given(forests(("tree",)), LIMITS)
def test_each_kept_completion_is_trained_by_its_owner_and_by_no_other(
    forest: SessionForest, limit: int | None
):
    hooks = resolve_hooks("keep_all", "default")
    gathered = gather(forest, SamplesArguments(limit), hooks, RULES)
    owner = owners(gathered.rows)
    for sample in gathered.rows:
        for span in sample.spans:
            start = span.start - sample.response_start
            mask = sample.loss_mask[start : start + span.length]
            assert set(mask.tolist()) <= {int(owner[span.seq] == sample.leaf.last.seq)}


@given(forests(), HOOKS, LIMITS)
def test_rows_fit_the_schema_and_their_payload_survives_the_wire(
    forest: SessionForest, hooks: Hooks, limit: int | None
):
    for row in weigh(made(forest, hooks, limit).rows):
        assert problems(row.to_json()) == []
        assert problems(json.loads(dumps(row.to_json()))) == []
    payload = samples_payload(forest, SamplesArguments(limit), hooks, RULES)
    decoded = decode_samples(encode_samples(payload))
    for sample, entry in zip(payload.samples, decoded.samples, strict=True):
        assert entry["tokens"].tolist() == sample.tokens.tolist()
        assert entry["loss_mask"].tolist() == sample.loss_mask.tolist()
        assert entry["rollout_log_probs"].tolist() == sample.rollout_log_probs.tolist()


@given(forests(("tree", "linear")), LIMITS, st.randoms(use_true_random=False))
def test_the_order_in_which_a_picker_returns_leaves_decides_nothing_but_the_order_of_rows(
    forest: SessionForest, limit: int | None, random: Random
):
    straight = resolve_hooks("keep_all", "default")
    shuffled = replace(straight, picker=lambda leaves, meta: random.sample(leaves, len(leaves)))
    one, other = made(forest, straight, limit), made(forest, shuffled, limit)
    assert one.report == other.report
    assert {row.sample_id: row.loss_mask.tolist() for row in one.rows} == {
        row.sample_id: row.loss_mask.tolist() for row in other.rows
    }
    assert {row.sample_id: row.leaf_index for row in weigh(one.rows)} == {
        row.sample_id: row.leaf_index for row in weigh(other.rows)
    }


@given(forests(("tree",)), LIMITS)
def test_a_budget_only_ever_takes_from_the_end(forest: SessionForest, limit: int | None):
    for leaf in leaves_of(forest):
        whole = assemble(leaf, RULES)
        part = assemble(leaf, replace(RULES, max_seq_len=limit))
        assert whole is not None
        if part is None:
            continue
        size = part.tokens.size
        assert limit is None or size <= limit
        assert part.tokens.tolist() == whole.tokens[:size].tolist()
        assert part.loss_mask.tolist() == whole.loss_mask[: part.response_length].tolist()
        assert whole.response.startswith(part.response)


@given(forests(("tree",)))
def test_weights_of_a_session_add_up_to_one(forest: SessionForest):
    rows = weigh(made(forest, resolve_hooks("keep_all", "default"), None).rows)
    assert np.isclose(sum(row.rollout_weight for row in rows), 1.0)
    assert sorted(row.leaf_index for row in rows) == list(range(len(rows)))
