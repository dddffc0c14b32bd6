"""A turn that was copied with *Copy as test case* on the page of a node, as a test: a fresh render of its
messages is what it was.
"""

import json
from typing import Any

from django.conf import settings

from sessions_app.api.wiring import configured, renderer_of
from sessions_app.models import ModelProfile
from sessions_app.rendering.protocol import Renderer


class NotHere(Exception):
    """The case is of a tokenizer that this machine has not."""


def check_case(text: str) -> None:
    """Fails where the case no longer holds. Raises NotHere."""
    case = json.loads(text)
    renderer = _renderer(case).with_kwargs(case["template_kwargs"])
    expected = case["expectation"]
    served = [*expected["fed_ids"], *expected["sampled_ids"]]
    assert len(expected["logprobs"]) == len(expected["sampled_ids"])
    whole = [*case["messages"], case["reply"]]
    fresh = renderer.render(whole, case["tools"], add_generation_prompt=False).tolist()
    if expected["fresh_render"] == "equal":
        assert fresh[: len(served)] == served
    elif expected["fresh_render"] == "differs":
        first = expected["first_difference"]
        assert fresh[:first] == served[:first]
        assert fresh[first : first + 1] != served[first : first + 1]


def _renderer(case: dict[str, Any]) -> Renderer:
    profile = ModelProfile(name="pasted", **case["profile"])
    try:
        renderer = renderer_of(configured(settings.TITO, profile))
    except Exception as error:
        raise NotHere(str(error)) from error
    if renderer.tokenizer_fingerprint != case["tokenizer_fingerprint"]:
        raise NotHere(f"its ids are of tokenizer {case['tokenizer_fingerprint'][:12]}")
    return renderer
