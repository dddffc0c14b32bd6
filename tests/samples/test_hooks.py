"""The contract of picker and post-processor: what resolves, what is refused, and with which words."""

import json

import pytest

from sessions_app.errors import SamplesFailed
from tests.samples.builders import RULES, forest_of, turn
from trainer_export.jobs.filtering import filtered
from trainer_export.jobs.filters import Filters
from trainer_export.samples.arguments import SamplesArguments
from trainer_export.samples.codec import encode_samples
from trainer_export.samples.hooks import resolve_hooks
from trainer_export.samples.payload import SamplesPayload, samples_payload

OURS = "tests.samples.hook_functions."
PURITY = "pick hook must return a subset of its input samples without duplicates (pure selection)"
FOREST = forest_of(turn(0, None, [1], [2, 3]), turn(1, None, [1], [4, 5]))


def run(picker: str = "keep_all", postprocessor: str = "default") -> SamplesPayload:
    return samples_payload(FOREST, SamplesArguments(), resolve_hooks(picker, postprocessor), RULES)


def leaves(payload: SamplesPayload) -> list[int]:
    return [sample.leaf.last.seq for sample in payload.samples]


def test_a_custom_picker_decides_the_order():
    assert leaves(run(OURS + "newest_first")) == [1, 0]
    assert leaves(run(OURS + "as_generator")) == [0, 1]
    assert leaves(run(OURS + "instance")) == [0, 1]


def test_a_custom_postprocessor_may_set_lists():
    payload = run(postprocessor=OURS + "list_mask")
    assert [sample.loss_mask for sample in payload.samples] == [[0, 1], [0, 1]]
    assert encode_samples(payload)


@pytest.mark.parametrize(
    ("picker", "text"),
    [
        (OURS + "twice", PURITY),
        (OURS + "clone", PURITY),
        (OURS + "numbers", PURITY),
        (OURS + "boom", "picker exploded"),
        (OURS + "nothing", "'NoneType' object is not iterable"),
        (OURS + "number", "'int' object is not iterable"),
        (OURS + "hidden_coroutine", "hook returned a coroutine; a synchronous hook is required"),
    ],
)
def test_a_picker_that_breaks_the_contract_is_named_with_its_fault(picker: str, text: str):
    with pytest.raises(SamplesFailed) as refusal:
        run(picker)
    assert refusal.value.status == 422
    expected = f"session sample hook failed (picker={picker}, postprocessor=default): {text}"
    assert str(refusal.value) == expected
    exporting, _ = filtered(resolve_hooks(picker, "default"), Filters(status=["completed"]), None)
    with pytest.raises(SamplesFailed) as refusal:
        samples_payload(FOREST, SamplesArguments(), exporting, RULES)
    assert str(refusal.value) == expected


@pytest.mark.parametrize(
    ("postprocessor", "text"),
    [
        (OURS + "key_error", "'post'"),
        (OURS + "number", "'int' object is not iterable"),
        (OURS + "numbers", "postprocessor must return samples, got int"),
        (OURS + "short_mask", "loss_mask has 1 values, response_length is 2"),
        (OURS + "long_logprobs", "rollout_log_probs has 3 values, response_length is 2"),
        (OURS + "endless_response", "response_length 1000000 does not fit 3 tokens"),
        (OURS + "hidden_coroutine", "hook returned a coroutine; a synchronous hook is required"),
    ],
)
def test_a_postprocessor_that_breaks_the_contract_is_named_with_its_fault(postprocessor: str, text: str):
    with pytest.raises(SamplesFailed) as refusal:
        run(postprocessor=postprocessor)
    assert str(refusal.value) == (
        f"session sample hook failed (picker=keep_all, postprocessor={postprocessor}): {text}"
    )


@pytest.mark.parametrize(
    "hooks",
    [
        {"picker": OURS + "keep_none"},
        {"postprocessor": OURS + "drop_all"},
        {"postprocessor": OURS + "nothing"},
    ],
)
def test_hooks_that_keep_nothing_give_an_empty_reply(hooks: dict[str, str]):
    payload = run(**hooks)
    assert payload.samples == []
    assert payload.empty_reason == "all_truncated"


def test_a_mask_of_negative_numbers_is_refused_when_it_is_written():
    payload = run(postprocessor=OURS + "negative_mask")
    with pytest.raises(SamplesFailed) as refusal:
        encode_samples(payload)
    assert str(refusal.value) == "loss_mask values do not fit wire dtype uint8"


def test_hooks_see_and_may_change_the_session_metadata():
    payload = run(postprocessor=OURS + "list_mask")
    assert payload.samples[0].metadata["seen"] == list(payload.session_metadata)


PICKERS = "drop_retries, drop_superseded, keep_all, longest, main_only"


@pytest.mark.parametrize("selector", ["", "Keep_All", "nosuch", "default", "agent_match:x"])
def test_an_unknown_name_is_refused_with_the_choices(selector: str):
    with pytest.raises(ValueError, match="TITO_SAMPLE_PICKER") as refusal:
        resolve_hooks(selector, "default")
    assert str(refusal.value) == (
        f"invalid TITO_SAMPLE_PICKER {selector!r}; "
        f"use one of {PICKERS}, or a dotted import path such as package.module.hook"
    )


@pytest.mark.parametrize(
    ("selector", "cause"),
    [
        ("no_such_package.hook", "No module named 'no_such_package'"),
        (OURS + "absent", "module 'tests.samples.hook_functions' has no attribute 'absent'"),
        (OURS + "NOT_CALLABLE", f"load_function('{OURS}NOT_CALLABLE') did not resolve to a callable"),
        (
            OURS + "async_hook",
            f"load_function('{OURS}async_hook') resolved to an async function; a synchronous one is required",
        ),
        (
            OURS + "async_generator",
            f"load_function('{OURS}async_generator') resolved to an async function; "
            "a synchronous one is required",
        ),
        (
            OURS + "async_instance",
            f"load_function('{OURS}async_instance') resolved to an async function; "
            "a synchronous one is required",
        ),
        (".", "Empty module name"),
        ("tests.samples.leaving.hook", "this module leaves"),
    ],
)
def test_a_dotted_path_that_does_not_resolve_is_refused_with_the_cause(selector: str, cause: str):
    with pytest.raises(ValueError, match="TITO_SAMPLE_POSTPROCESSOR") as refusal:
        resolve_hooks("keep_all", selector)
    assert str(refusal.value) == (
        f"failed to resolve TITO_SAMPLE_POSTPROCESSOR {selector!r}; "
        f"use one of default, or a dotted import path such as package.module.hook: {cause}"
    )


def test_a_request_cannot_name_code():
    with pytest.raises(ValueError, match="invalid TITO_SAMPLE_PICKER"):
        resolve_hooks(OURS + "newest_first", "default", allow_dotted=False)
    assert resolve_hooks("longest", "agent_match:plan", allow_dotted=False).picker_name == "longest"


def test_agent_match_needs_a_pattern_that_compiles():
    with pytest.raises(ValueError, match="agent_match pattern"):
        resolve_hooks("keep_all", "agent_match:(")
    with pytest.raises(ValueError, match="invalid TITO_SAMPLE_POSTPROCESSOR"):
        resolve_hooks("keep_all", "agent_match")


def test_texts_stay_json_safe():
    with pytest.raises(SamplesFailed) as refusal:
        run(OURS + "boom")
    assert json.dumps({"error": str(refusal.value)})
