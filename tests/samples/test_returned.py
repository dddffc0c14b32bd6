"""What a post-processor may give back, and what becomes of native rows when it is nonsense: a refusal in the
hook's words or masked tokens, never another exception, and the counts add up.
"""

import asyncio
import copy
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from sessions_app.errors import SamplesFailed
from sessions_app.json_text import dumps
from tests.samples.builders import RULES, forest_of, turn
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.codec import encode_samples
from trainer_export.samples.hooks import Hooks, resolve_hooks
from trainer_export.samples.native import SessionRows, session_rows
from trainer_export.samples.payload import samples_payload
from trainer_export.samples.sample import PrefixCacheInfo, Sample, Span
from trainer_export.samples.validate import problems
from trainer_export.samples.values import Speculative
from trainer_export.samples.weights import weigh

FOREST = forest_of(turn(0, None, [1], [2, 3]), turn(1, 0, [1], [4, 5]), turn(2, 0, [9], [6]))
OTHER = forest_of(turn(0, None, [7], [8, 9]), turn(5, 0, [1], [4, 5]))
KEEP_ALL = resolve_hooks("keep_all", "default")
Change = Callable[[Sample], Any]


def hooks(postprocessor: Callable[[list[Sample], Any], Any]) -> Hooks:
    return Hooks("keep_all", KEEP_ALL.picker, "ours", postprocessor)


def changing(change: Change) -> Hooks:
    """The first row changed, the second as it is."""

    def postprocessor(samples: list[Sample], session_metadata: Any) -> list[Sample]:
        change(samples[0])
        return samples

    return hooks(postprocessor)


def setting(**values: Any) -> Hooks:
    def change(sample: Sample) -> None:
        for name, value in values.items():
            setattr(sample, name, value)

    return changing(change)


def made(chosen: Hooks) -> SessionRows:
    """Native rows, each of them valid, every generated token accounted for."""
    result = session_rows(FOREST, chosen, RULES)
    for row in weigh(result.rows):
        assert problems(json.loads(dumps(row.to_json()))) == []
    count = result.report.count
    assert count.generated == count.trained + sum(count.masked.values()) == 5
    return result


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"x": value}
    return value


def refusal(chosen: Hooks) -> str:
    with pytest.raises(SamplesFailed) as refused:
        session_rows(FOREST, chosen, RULES)
    return str(refused.value)


def foreign(samples: list[Sample], session_metadata: Any) -> list[Sample]:
    return [*samples, *samples_payload(OTHER, SamplesArguments(), KEEP_ALL, RULES).samples]


def test_rows_of_another_session_are_refused() -> None:
    assert refusal(hooks(foreign)) == (
        "session sample hook failed (picker=keep_all, postprocessor=ours): "
        "postprocessor must return samples of the leaves it was given"
    )


def test_what_the_picker_left_out_does_not_come_back() -> None:
    held: list[Sample] = []

    def first_only(leaves: list[Sample], session_metadata: Any) -> list[Sample]:
        held.extend(leaves)
        return leaves[:1]

    both = Hooks("first_only", first_only, "ours", lambda samples, session_metadata: list(held))
    assert "samples of the leaves it was given" in refusal(both)


def test_a_row_that_looks_like_this_sessions_trains_nothing_that_was_not_sampled_here() -> None:
    """Ids of another session under the seqs of this one."""
    stranger = samples_payload(
        forest_of(turn(0, None, [7], [8, 9]), turn(1, 0, [1], [4, 5])), SamplesArguments(), KEEP_ALL, RULES
    )
    result = made(hooks(lambda samples, session_metadata: [*stranger.samples, samples[1]]))
    assert [row.trained for row in result.rows] == [0, 3]
    assert result.rows[0].masked == {"context": 4}


@pytest.mark.parametrize(
    "fault",
    [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), RecursionError("deep")],
)
def test_what_would_end_a_thread_is_a_refusal(fault: BaseException) -> None:
    def postprocessor(samples: list[Sample], session_metadata: Any) -> list[Sample]:
        raise fault

    assert refusal(hooks(postprocessor)).endswith(f"postprocessor=ours): {fault}")


def swap(samples: list[Sample], session_metadata: Any) -> list[Sample]:
    samples[0].leaf, samples[1].leaf = samples[1].leaf, samples[0].leaf
    return samples


@pytest.mark.parametrize(
    "chosen",
    [
        setting(spans=()),
        setting(spans=(Span(99, 0, 100),)),
        setting(spans=(Span(0, -5, 100), Span(1, 3, -1))),
        setting(stop="x"),
    ],
)
def test_facts_stay_what_they_are(chosen: Hooks) -> None:
    untouched = made(hooks(lambda samples, session_metadata: samples))
    assert [row.loss_mask.tolist() for row in made(chosen).rows] == [
        row.loss_mask.tolist() for row in untouched.rows
    ]


def test_leaves_that_are_swapped_train_nothing_in_the_wrong_context() -> None:
    count = made(hooks(swap)).report.count
    assert (count.trained, count.masked) == (2, {"context": 2, "postprocessor": 1})


def twice(samples: list[Sample], session_metadata: Any) -> list[Sample]:
    return [*samples, copy.deepcopy(samples[0]), samples[0]]


def test_copies_train_once_under_ids_of_their_own() -> None:
    rows = made(hooks(twice)).rows
    assert [row.trained for row in rows] == [4, 1, 0, 0]
    assert [row.sample_id.partition(":")[2] for row in rows] == ["1", "2", "1.1", "1.2"]


def cut(sample: Sample) -> None:
    sample.tokens, sample.response_length = sample.tokens[:-1], sample.response_length - 1
    sample.loss_mask, sample.rollout_log_probs = sample.loss_mask[:-1], sample.rollout_log_probs[:-1]


def test_a_row_may_be_cut_at_its_end() -> None:
    row = made(changing(cut)).rows[0]
    assert (row.trained, row.masked, row.turns[1].kept) == (3, {"postprocessor": 1}, 1)


def without_response(sample: Sample) -> None:
    sample.response_length, sample.loss_mask, sample.rollout_log_probs = 0, [], []


def test_a_row_may_lose_its_response() -> None:
    row = made(changing(without_response)).rows[0]
    assert (row.trained, row.masked["postprocessor"], [turn.kept for turn in row.turns]) == (0, 2, [0, 0])


def grown(sample: Sample) -> None:
    sample.tokens = np.concatenate([sample.tokens, [1, 2]])
    sample.response_length += 2
    sample.loss_mask = [1] * sample.response_length
    sample.rollout_log_probs = [0.0] * sample.response_length


def test_ids_that_a_hook_appends_are_never_trained() -> None:
    row = made(changing(grown)).rows[0]
    assert (row.trained, row.unsampled, row.loss_mask[-2:].tolist()) == (0, 3, [0, 0])
    assert row.masked == {"logprob": 4}


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (setting(metadata=[]), "metadata must be a JSON object, got list"),
        (setting(metadata=None), "metadata must be a JSON object, got NoneType"),
        (setting(prefix_cache_info={}), "prefix_cache_info must be a PrefixCacheInfo, got dict"),
        (setting(spec_info={}), "spec_info must be a Speculative, got dict"),
        (setting(weight_versions="12"), "weight_versions must be a list, got str"),
        (setting(leaf=None), "postprocessor must return samples of the leaves it was given"),
        (changing(lambda sample: delattr(sample, "status")), "'Sample' object has no attribute 'status'"),
    ],
)
def test_fields_of_another_kind_are_refused_everywhere(chosen: Hooks, text: str) -> None:
    expected = f"session sample hook failed (picker=keep_all, postprocessor=ours): {text}"
    assert refusal(chosen).startswith(expected)
    with pytest.raises(SamplesFailed) as refused:
        samples_payload(FOREST, SamplesArguments(), chosen, RULES)
    assert str(refused.value).startswith(expected)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"tokens": [-1] * 6}, "tokens must be ids from 0 to 2147483647"),
        ({"tokens": [2**40] * 6}, "tokens must be ids from 0 to 2147483647"),
        (
            {"tokens": [], "response_length": 0, "loss_mask": [], "rollout_log_probs": []},
            "tokens must not be null or empty",
        ),
        (
            {"rollout_routed_experts": np.zeros((2, 1, 1), np.int32)},
            "rollout_routed_experts has 2 rows for 6",
        ),
        ({"status": "weird"}, "status must be one of pending, completed, truncated, aborted, got 'weird'"),
        ({"response": None}, "response must be text, got NoneType"),
        ({"reward": object()}, "samples cannot be written as JSON: "),
        ({"metadata": nested(500)}, "samples cannot be written as JSON: "),
        ({"prefix_cache_info": PrefixCacheInfo("x")}, "cached_tokens must be a whole number from 0, got 'x'"),
        ({"prefix_cache_info": PrefixCacheInfo(0, -1)}, "total_prompt_tokens must be a whole number from 0"),
        ({"prefix_cache_info": PrefixCacheInfo(2**63)}, "cached_tokens must be a whole number from 0"),
        ({"spec_info": Speculative(1.5)}, "accepted must be a whole number from 0, got 1.5"),
        ({"weight_versions": [{1, 2}]}, "samples cannot be written as JSON: "),
    ],
)
def test_what_no_native_row_can_hold_is_refused_there(values: dict[str, Any], text: str) -> None:
    assert refusal(setting(**values)).startswith(text)


@pytest.mark.parametrize(
    "values",
    [
        {"reward": float("nan")}, {"reward": 10**400}, {"reward": {"a": [1]}}, {"reward": "\ud800"},
        {"loss_mask": None}, {"loss_mask": [2] * 5}, {"rollout_log_probs": [float("nan")] * 5},
        {"response": "\ud800"}, {"weight_versions": (None, 2.5, "x")}, {"response_length": np.int64(5)},
    ],
)  # fmt: skip
def test_odd_values_that_can_be_held_are(values: dict[str, Any]) -> None:
    made(setting(**values))


def test_metadata_that_hold_themselves_are_refused_as_samples() -> None:
    def loop(samples: list[Sample], session_metadata: Any) -> list[Sample]:
        session_metadata["self"] = session_metadata
        return samples

    payload = samples_payload(FOREST, SamplesArguments(), hooks(loop), RULES)
    with pytest.raises(SamplesFailed, match="samples cannot be written as JSON"):
        encode_samples(payload)


def test_a_picker_that_empties_its_list_has_picked_nothing() -> None:
    def emptying(leaves: list[Sample], session_metadata: Any) -> list[Sample]:
        chosen = leaves[:1]
        leaves.clear()
        return chosen

    result = made(replace(KEEP_ALL, picker=emptying))
    assert [(one.leaf, one.reason) for one in result.report.dropped] == [(2, "not_picked")]


def test_facts_are_taken_before_the_picker_sees_a_sample() -> None:
    def careless(leaves: list[Sample], session_metadata: Any) -> list[Sample]:
        for sample in leaves:
            sample.spans = ()
        return leaves

    assert made(replace(KEEP_ALL, picker=careless)).report.count.trained == 5


def test_a_sample_that_claims_another_leaf_leaves_its_own_out() -> None:
    def claiming(samples: list[Sample], session_metadata: Any) -> list[Sample]:
        samples[0].leaf = samples[1].leaf
        return samples

    result = made(hooks(claiming))
    assert [(one.leaf, one.reason) for one in result.report.dropped] == [(1, "postprocessor_dropped")]


def test_a_generator_that_does_not_end_is_refused() -> None:
    endless = replace(KEEP_ALL, picker=lambda leaves, session_metadata: repeat(leaves[0]))
    assert "without duplicates" in refusal(endless)
    copies = hooks(lambda samples, session_metadata: repeat(samples[0]))
    assert refusal(copies).endswith("postprocessor returned more than 1048576 samples")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")


@pytest.mark.parametrize(("error", "said"), [(Mute(), "Mute"), (ValueError("x" * 20_000), "x" * 10_000)])
def test_an_exception_that_cannot_be_told_is_named_and_a_long_one_cut(error: Exception, said: str) -> None:
    def raising(samples: list[Sample], session_metadata: Any) -> list[Sample]:
        raise error

    expected = f"session sample hook failed (picker=keep_all, postprocessor=ours): {said}"
    assert refusal(hooks(raising)) == expected


def test_a_mask_set_on_the_wire_is_passed_on_as_it_is() -> None:
    payload = samples_payload(FOREST, SamplesArguments(), setting(loss_mask=[1, 1, 1, 1, 1]), RULES)
    assert payload.samples[0].loss_mask == [1, 1, 1, 1, 1]
    assert encode_samples(replace(payload, session_metadata={}))
