"""The recorded malformed 200s of the reference: its texts where it had one, a code where it had none."""

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_app import errors
from sessions_app.backends.dispatch import Answer
from sessions_app.backends.sglang import read_chat
from tests.backends.requests import make_request

FILE = Path(__file__).parents[1] / "vectors" / "history" / "v1_17_upstream_malformed_200.jsonl"
STEPS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()[1:]]
ASKED = [step for step in STEPS if step["upstream_reply"]]


def read(step: dict[str, Any]) -> Any:
    reply = step["upstream_reply"][0]
    body = json.dumps(reply["json"]) if "json" in reply else reply["text"]
    prompt = step["upstream_request"][0]["json"]["input_ids"]
    return read_chat(Answer(body.encode(), {}, ""), make_request(prompt), 274)


@pytest.mark.parametrize("step", [step for step in ASKED if step["response"]["status"] == 502])
def test_the_references_502s_keep_their_texts(step):
    with pytest.raises(errors.UpstreamError) as caught:
        read(step)
    assert str(caught.value) == step["response"]["json"]["error"]


@pytest.mark.parametrize("step", [step for step in ASKED if step["response"]["status"] == 500])
def test_its_bare_500s_become_typed_502s(step):
    with pytest.raises(errors.UpstreamError) as caught:
        read(step)
    assert caught.value.status == 502
    assert caught.value.code in ("upstream_invalid_reply", "upstream_missing_token_ids")


@pytest.mark.parametrize("step", [step for step in ASKED if step["response"]["status"] == 200])
def test_what_it_accepted_is_accepted(step):
    assert read(step).reply == step["response"]["json"]


def test_every_recorded_kind_is_there():
    assert {step["response"]["status"] for step in ASKED} == {200, 500, 502}
