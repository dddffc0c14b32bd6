"""What counts as a reward."""

import json

import pytest

from tests.traces.making import REWARD, call, rewards, session, span, triplets
from trainer_export.traces.rewards.emission import reward_attributes

PREFIX = "agentlightning.reward"


def reward_of(attributes, name=REWARD):
    spans = [session(), call("c", "s", 1, 2), span("r", "s", 5.0, name=name) | {"attributes": attributes}]
    return rewards(spans)["chatcmpl-c"]


def error_of(attributes):
    spans = [session(), call("c", "s", 1, 2), span("r", "s", 5.0, name=REWARD) | {"attributes": attributes}]
    return triplets(spans)["error"]


@pytest.mark.parametrize("value", [0.0, 1, -2.5, "1.5", True])
def test_dimensions_on_any_span(value):
    attributes = {
        f"{PREFIX}.0.name": "p",
        f"{PREFIX}.0.value": value,
        f"{PREFIX}.1.name": "q",
        f"{PREFIX}.1.value": 9,
    }
    assert reward_of(attributes, "anything") == float(value)


def test_links_and_tags_are_not_read():
    attributes = {
        f"{PREFIX}.0.name": "p",
        f"{PREFIX}.0.value": 1.0,
        "agentlightning.link.0.key_match": "gen_ai.response.id",
        "agentlightning.link.0.value_match": "chatcmpl-other",
        "agentlightning.tag.0": "x",
    }
    assert reward_of(attributes) == 1.0


@pytest.mark.parametrize(
    "attributes",
    [
        {f"{PREFIX}.1.name": "p", f"{PREFIX}.1.value": 1.0},
        {f"{PREFIX}.0.value": 1.0},
        {f"{PREFIX}.0.name": "p"},
        {f"{PREFIX}.0.name": "p", f"{PREFIX}.0.value": "much"},
        {f"{PREFIX}.0": 1.0},
        {f"{PREFIX}_note": "looks alike"},
    ],
)
def test_malformed_dimensions_abort(attributes):
    assert error_of(attributes)["type"] == "ValidationError"


def test_bare_key_aborts_with_its_own_text():
    assert error_of({PREFIX: 1.0}) == {
        "type": "ValueError",
        "message": f"Cannot unflatten attribute with key exactly equal to prefix: {PREFIX}",
    }


@pytest.mark.parametrize("key", ["agentops.task.output", "agentops.entity.output"])
def test_output_of_an_operation(key):
    assert reward_of({key: json.dumps({"type": "reward", "value": 0.5})}, "task") == 0.5
    assert reward_of({key: json.dumps({"type": "reward", "value": None}), "reward": 1.0}) is None
    assert reward_of({key: json.dumps({"type": "other", "value": 0.5})}, "task") is None
    assert reward_of({key: "{broken"}, "task") is None


def test_task_output_comes_before_entity_output():
    attributes = {
        "agentops.entity.output": json.dumps({"type": "reward", "value": 2.0}),
        "agentops.task.output": json.dumps({"type": "reward", "value": 1.0}),
    }
    assert reward_of(attributes) == 1.0


def test_old_annotation():
    assert reward_of({"reward": 0.25}) == 0.25
    assert reward_of({"reward": 0.25}, "other") is None


def test_dimensions_come_before_all_else():
    attributes = {"reward": 3.0, f"{PREFIX}.0.name": "p", f"{PREFIX}.0.value": 1.0}
    assert reward_of(attributes) == 1.0


def test_emitted_attributes_read_back():
    assert reward_of(reward_attributes(True)) == 1.0
    attributes = reward_attributes({"b": 2, "a": 0.5}, "a")
    assert reward_of(attributes) == 0.5
    assert [attributes[f"{PREFIX}.{position}.name"] for position in range(2)] == ["a", "b"]


@pytest.mark.parametrize(
    ("reward", "primary_key", "error", "text"),
    [
        ("1", None, TypeError, "Reward must be a number, got: <class 'str'>"),
        ({"a": "1"}, "a", ValueError, "Reward value must be a number, got: <class 'str'> for key a"),
        ({"a": 1}, "b", ValueError, "Primary key 'b' not found in reward dict keys: ['a']"),
        (
            {"a": 1},
            None,
            ValueError,
            "When emitting a multi-dimensional reward as a dict, primary_key must be provided.",
        ),
    ],
)
def test_what_cannot_be_emitted(reward, primary_key, error, text):
    with pytest.raises(error) as raised:
        reward_attributes(reward, primary_key)
    assert str(raised.value) == text
