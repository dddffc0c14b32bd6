"""What holds for every chain: replay rows through trims, cuts and merges; realigned contexts."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.samples.builders import RULES, forest_of, turn
from tests.samples.forests import IDS, MAX_TRIM, forests
from tests.samples.test_properties import LIMITS, trained_places
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.assemble import assemble
from trainer_export.samples.forest import leaves_of, path_ids, path_of
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.native import session_rows
from trainer_export.samples.reconcile import reconcile
from trainer_export.samples.superseded import superseded_by
from trainer_export.samples.validate import problems
from trainer_export.samples.values import Payload, SessionForest, Turn
from trainer_export.samples.weights import weigh

RULES = replace(RULES, max_trim_tokens=MAX_TRIM, r3_layers=2)
KEEP_ALL = resolve_hooks("keep_all", "default")


def row_of(seq: int, position: int) -> list[int]:
    """The replay row that turn `seq` has for a position: it tells both."""
    return [seq, position, -seq, -position]


def payload(seq: int, begin: int, end: int) -> Payload:
    return Payload.of(np.array([row_of(seq, at) for at in range(begin, end)], dtype="<i4").tobytes())


def fed_and_sampled(by_seq: dict[int, Turn], seq: int) -> int:
    """Ids of the whole turn, what a later one trims included."""
    return path_ids(path_of(by_seq, seq)).size


def with_full_rows(forest: SessionForest, missing: frozenset[int]) -> SessionForest:
    by_seq = {one.seq: one for one in forest.turns}
    turns = tuple(
        one
        if one.seq in missing
        else replace(one, routed_experts=payload(one.seq, 0, fed_and_sampled(by_seq, one.seq) - 1))
        for one in forest.turns
    )
    return replace(forest, turns=turns)


@given(forests(("tree",)), st.frozensets(st.integers(0, 11), max_size=2), LIMITS)
def test_replay_rows_are_those_of_the_last_turn_in_the_sample(
    forest: SessionForest, missing: frozenset[int], limit: int | None
):
    for leaf in leaves_of(with_full_rows(forest, missing)):
        sample = assemble(leaf, replace(RULES, max_seq_len=limit))
        if sample is None:
            continue
        last = sample.spans[-1].seq
        if sample.rollout_routed_experts is None:
            assert last in missing
            continue
        wanted = [row_of(last, at) for at in range(len(sample.tokens) - 1)]
        assert sample.rollout_routed_experts.reshape(-1, 4).tolist() == wanted
        held = [span.seq for span in sample.spans]
        first = next(at for at, seq in enumerate(held) if seq not in missing)
        assert not missing & set(held[first:]), "nothing is merged behind rows that are held without rows"


@given(forests(("tree",)), LIMITS)
def test_additional_replay_rows_are_those_of_the_turn_that_first_held_the_position(
    forest: SessionForest, limit: int | None
):
    by_seq = {one.seq: one for one in forest.turns}
    for leaf in leaves_of(forest):
        covered, turns, wanted = 0, [], []
        for one in leaf.turns:
            end = fed_and_sampled(by_seq, one.seq) - 1
            rows = payload(one.seq, covered, max(covered, end))
            turns.append(replace(one, routed_experts=rows, routed_experts_start=covered))
            wanted += [row_of(one.seq, at) for at in range(covered, end)]
            covered = end
        if any(fed_and_sampled(by_seq, one.seq) < 2 for one in leaf.turns):
            continue
        sample = assemble(
            replace(leaf, turns=tuple(turns)), replace(RULES, max_seq_len=limit, additional_r3=True)
        )
        if sample is not None:
            assert sample.rollout_routed_experts is not None
            rows = sample.rollout_routed_experts.reshape(-1, 4).tolist()
            assert rows == wanted[: len(sample.tokens) - 1]


@st.composite
def unhealed(draw: st.DrawFn) -> SessionForest:
    """Chains whose turns were rendered anew: each a root that continues an earlier one, its prompt equal to
    what was held up to some point.
    """
    turns: list[Turn] = []
    for seq in range(draw(st.integers(1, 7))):
        before = draw(st.one_of(st.none(), st.sampled_from(turns))) if turns else None
        prompt = draw(st.lists(IDS, min_size=1, max_size=4))
        if before is not None:
            held = [*before.prompt_delta.tolist(), *before.completion.tolist()]
            prompt = held[: draw(st.integers(0, len(held)))] + prompt
        made = turn(seq, None, prompt, draw(st.lists(IDS, max_size=6)))
        turns.append(replace(made, continues=None if before is None else before.seq))
    return forest_of(*turns, policy=draw(st.sampled_from(["tree", "linear"])), healed=False)


@given(unhealed(), st.integers(0, 8), LIMITS)
def test_realigned_chains_train_only_what_was_sampled_in_that_context(
    forest: SessionForest, threshold: int, limit: int | None
):
    """The truth is what each request was fed, as it was stored: whole prompts of roots."""
    made = session_rows(
        forest, KEEP_ALL, RULES, SamplesArguments(limit), fork_threshold_tokens=threshold or None
    )
    fed = {one.seq: one.prompt_delta.tolist() for one in forest.turns}
    sampled = {one.seq: one for one in forest.turns}
    places: Counter[tuple[int, int]] = Counter()
    for row in weigh(made.rows):
        assert problems(row.to_json() | {"path": list(row.path)}) == []
        start = len(row.tokens) - row.response_length
        for seq, place in trained_places(row):
            context = [*fed[seq], *sampled[seq].completion[: place + 1].tolist()]
            assert row.tokens[: len(context)].tolist() == context
            assert row.logprobs[len(context) - 1 - start] == sampled[seq].logprobs[place]
            places[seq, place] += 1
    assert not places or max(places.values()) == 1
    count = made.report.count
    assert count.generated == sum(one.completion.size for one in forest.turns)
    assert count.generated == count.trained + sum(count.masked.values())
    assert count.trained == len(places)


@given(unhealed(), st.integers(1, 8))
def test_only_short_completions_realign_and_only_the_last_response_gives_way(
    forest: SessionForest, threshold: int
):
    before: dict[int | None, Turn] = {one.seq: one for one in forest.turns}
    for one in reconcile(forest, threshold).turns:
        if not one.realigns:
            assert one is before[one.seq]
            continue
        assert one.completion.size < threshold
        assert one.trim == before[before[one.seq].continues].completion.size


@given(unhealed())
def test_without_a_threshold_every_drifted_turn_is_a_row(forest: SessionForest):
    assert reconcile(forest, None) is forest
    assert len(session_rows(forest, KEEP_ALL, RULES).rows) == len(forest.turns)


@given(forests(("tree",)))
def test_what_each_picker_keeps_follows_its_rule(forest: SessionForest):
    def kept(picker: str) -> list[int]:
        rows = session_rows(forest, resolve_hooks(picker, "default"), RULES).rows
        return [row.leaf for row in rows]

    leaves = leaves_of(forest)
    every = [leaf.last.seq for leaf in leaves]
    children: dict[int | None, list[int]] = {}
    for one in forest.turns:
        children.setdefault(one.parent, []).append(one.seq)
    assert kept("keep_all") == every
    last_child = [
        leaf.last.seq
        for leaf in leaves
        if leaf.last.parent is None or children[leaf.last.parent][-1] == leaf.last.seq
    ]
    assert sorted(kept("drop_retries")) == last_child
    assert kept("drop_superseded") == [leaf.last.seq for leaf in leaves if superseded_by(leaf) is None]
    trained = {}
    for leaf in leaves:
        sample = assemble(leaf, RULES)
        assert sample is not None
        trained[leaf.last.seq] = int(np.count_nonzero(sample.loss_mask))
    (longest,) = kept("longest")
    assert longest == max(seq for seq in every if trained[seq] == max(trained.values()))
    assert kept("main_only") == [leaf.last.seq for leaf in leaves if leaf.turns[0].root_class == "main"]


@given(forests(("tree", "linear")), st.integers(0, 11))
def test_a_node_that_was_tampered_with_trains_nothing_nor_does_what_is_below(
    forest: SessionForest, place: int
):
    """One stored id changed after its commit."""
    at = place % len(forest.turns)
    victim = forest.turns[at]
    changed = replace(victim, prompt_delta=victim.prompt_delta + 1)
    tampered = replace(forest, turns=(*forest.turns[:at], changed, *forest.turns[at + 1 :]))
    by_seq = {one.seq: one for one in tampered.turns}
    below = {one.seq for one in tampered.turns if changed.seq in {up.seq for up in path_of(by_seq, one.seq)}}
    rows = session_rows(tampered, KEEP_ALL, RULES).rows
    assert not {seq for row in rows for seq, _ in trained_places(row)} & below
